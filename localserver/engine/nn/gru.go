package nn

// gruLanes is the number of outputs that the recurrent product computes at a time.
const gruLanes = 96

// GRU is one direction of a gated recurrent layer as PyTorch defines it: gates
// in the order reset, update, new, and the reset gate applied to the recurrent
// product of the new gate with its bias. (Cho et al., arXiv 1406.1078.)
type GRU struct {
	// Input is the product with the input, [3*Hidden] with bias. It does not
	// depend on the state, so a stream computes it once for each frame.
	Input  *Matrix
	Hidden int
	w      []float32 // recurrent, packed [3*Hidden/96][Hidden][96]
	bias   []float32
}

// NewGRU packs PyTorch weights: wih [3*hidden, in], whh [3*hidden, hidden].
// 3*hidden must be a multiple of 96.
func NewGRU(in, hidden int, wih, whh, bih, bhh []float32) *GRU {
	n := 3 * hidden
	if n%gruLanes != 0 || hidden%8 != 0 {
		panic("nn: size of the GRU is not a multiple of the kernels'")
	}
	g := &GRU{Input: Dense(in, n, wih, bih), Hidden: hidden, w: make([]float32, 0, n*hidden), bias: append([]float32(nil), bhh[:n]...)}
	for p := 0; p < n; p += gruLanes {
		for k := range hidden {
			for l := range gruLanes {
				g.w = append(g.w, whh[(p+l)*hidden+k])
			}
		}
	}
	return g
}

// Run runs over n frames from state zero: frame i reads its input product at
// in[i*inStride:] and writes its state to out[i*outStride:]. With backwards it
// starts at the last frame. scratch holds at least 4*Hidden floats.
func (g *GRU) Run(in []float32, inStride int, out []float32, outStride, n int, backwards bool, scratch []float32) {
	h := g.Hidden
	state, product := scratch[:h], scratch[h:4*h]
	clear(state)
	for i := range n {
		if backwards {
			i = n - 1 - i
		}
		recurrent(product, state, g.w, g.bias)
		next := out[i*outStride:][:h]
		gates(next, state, in[i*inStride:][:3*h], product)
		state = next
	}
}

// genericRecurrent sets dst = bias + W x, with W packed in panels of 96 outputs.
func genericRecurrent(dst, x, w, bias []float32) {
	copy(dst, bias)
	for p := 0; p < len(dst); p += gruLanes {
		acc := (*[gruLanes]float32)(dst[p:])
		for _, v := range x {
			row := (*[gruLanes]float32)(w)
			for l := range acc {
				acc[l] += v * row[l]
			}
			w = w[gruLanes:]
		}
	}
}

// genericGates computes the next state from input product a and recurrent product b.
func genericGates(next, state, a, b []float32) {
	h := len(state)
	for i := range h {
		r := sigmoid(a[i] + b[i])
		z := sigmoid(a[h+i] + b[h+i])
		n := tanh(a[2*h+i] + r*b[2*h+i])
		next[i] = n + z*(state[i]-n)
	}
}
