package embedding

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"hubbub/localserver/engine/weights"
	"hubbub/localserver/engine/weights/weightstest"
)

// A plain implementation of the network, on whole signals in PyTorch's layout
// [channel][band][frame] and with the tensors as exported.

type reference struct {
	t testing.TB
	f *weights.File
}

func (r reference) tensor(name string) []float32 { return r.f.Tensor(name, r.f.Shape(name)...) }

type image struct {
	c, f, t int
	v       []float32
}

func (r reference) conv(x image, name string, fs, ts int) image {
	w, bias, shape := r.tensor(name+".w"), r.tensor(name+".b"), r.f.Shape(name+".w")
	n, size := shape[0], shape[2]
	pad := size / 2
	y := image{n, (x.f+2*pad-size)/fs + 1, (x.t+2*pad-size)/ts + 1, nil}
	y.v = make([]float32, y.c*y.f*y.t)
	for o := range n {
		for i := range y.f {
			for j := range y.t {
				sum := float64(bias[o])
				for df := range size {
					for dt := range size {
						a, b := i*fs+df-pad, j*ts+dt-pad
						if a < 0 || a >= x.f || b < 0 || b >= x.t {
							continue
						}
						for c := range x.c {
							sum += float64(w[((o*x.c+c)*size+df)*size+dt]) * float64(x.v[(c*x.f+a)*x.t+b])
						}
					}
				}
				y.v[(o*y.f+i)*y.t+j] = float32(sum)
			}
		}
	}
	return y
}

func relu(x image) image {
	for i, v := range x.v {
		x.v[i] = max(v, 0)
	}
	return x
}

// trunk gives [TrunkSize][T/4] for frames [T][64].
func (r reference) trunk(frames []float32) image {
	T := len(frames) / bands
	x := image{1, bands, T, make([]float32, len(frames))}
	for i, v := range frames {
		x.v[i%bands*T+i/bands] = v
	}
	x = relu(r.conv(x, "emb.stem", 2, 2))
	for i, p := range plan {
		name := fmt.Sprintf("emb.blk%d", i)
		y := r.conv(relu(r.conv(x, name+".c1", p.freq, p.time)), name+".c2", 1, 1)
		if r.f.Shape(name+".sc.w") != nil {
			x = r.conv(x, name+".sc", p.freq, p.time)
		}
		for i := range y.v {
			y.v[i] += x.v[i]
		}
		x = relu(y)
	}
	return x
}

// head pools frames [from, from+len(mask)) of the trunk.
func (r reference) head(h image, from int, mask []float32) []float64 {
	const n = TrunkSize
	w1, b1, w2, b2 := r.tensor("emb.att1.w"), r.tensor("emb.att1.b"), r.tensor("emb.att2.w"), r.tensor("emb.att2.b")
	e := make([][]float64, len(mask))
	for i := range mask {
		a := make([]float64, attentionSize)
		for o := range a {
			a[o] = float64(b1[o])
			for k := range n {
				a[o] += float64(w1[o*n+k]) * float64(h.v[k*h.t+from+i])
			}
			a[o] = math.Tanh(a[o])
		}
		e[i] = make([]float64, n)
		for o := range n {
			e[i][o] = float64(b2[o])
			for k, v := range a {
				e[i][o] += float64(w2[o*attentionSize+k]) * v
			}
		}
	}
	stats := make([]float64, 2*n)
	for c := range n {
		top := math.Inf(-1)
		for i, m := range mask {
			if m > 0 {
				top = max(top, e[i][c])
			}
		}
		var sw, sx, sxx float64
		for i, m := range mask {
			if m > 0 {
				w, x := math.Exp(e[i][c]-top)*float64(m), float64(h.v[c*h.t+from+i])
				sw, sx, sxx = sw+w, sx+w*x, sxx+w*x*x
			}
		}
		stats[c] = sx / sw
		stats[n+c] = math.Sqrt(max(sxx/sw-stats[c]*stats[c], 1e-5))
	}
	wf, bf := r.tensor("emb.fc.w"), r.tensor("emb.fc.b")
	out, norm := make([]float64, Size), 0.0
	for o := range out {
		out[o] = float64(bf[o])
		for k, v := range stats {
			out[o] += float64(wf[o*2*n+k]) * v
		}
		norm += out[o] * out[o]
	}
	for o := range out {
		out[o] /= math.Sqrt(norm)
	}
	return out
}

// randomFile makes weights of the right shapes that keep the signal's size.
func randomFile(t testing.TB) *weights.File {
	t.Helper()
	r := rand.New(rand.NewPCG(11, 1))
	var ts []weightstest.Tensor
	add := func(name string, shape ...int) {
		fan, n := 1, 1
		for i, d := range shape {
			if n *= d; i > 0 {
				fan *= d
			}
		}
		v, scale := make([]float32, n), math.Sqrt(1.5/float64(fan))
		if len(shape) == 1 {
			scale = 0.1
		}
		for i := range v {
			v[i] = float32(r.NormFloat64() * scale)
		}
		ts = append(ts, weightstest.Tensor{Name: name, Shape: shape, Values: v})
	}
	conv := func(name string, out, in, size int) { add(name+".w", out, in, size, size); add(name+".b", out) }
	conv("emb.stem", 16, 1, 3)
	in := 16
	for i, p := range plan {
		name := fmt.Sprintf("emb.blk%d", i)
		conv(name+".c1", p.c, in, 3)
		conv(name+".c2", p.c, p.c, 3)
		if p.c != in {
			conv(name+".sc", p.c, in, 1)
		}
		in = p.c
	}
	add("emb.att1.w", attentionSize, TrunkSize)
	add("emb.att1.b", attentionSize)
	add("emb.att2.w", TrunkSize, attentionSize)
	add("emb.att2.b", TrunkSize)
	add("emb.fc.w", Size, 2*TrunkSize)
	add("emb.fc.b", Size)
	return weights.MustRead(weightstest.Encode("random", ts))
}

// frames is something like speech for the network: correlated, with pauses.
func frames(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 3))
	x := make([]float32, n*bands)
	for i := range x {
		x[i] = float32(r.NormFloat64() * (1 + math.Sin(float64(i/bands)/9)))
		if i >= bands {
			x[i] += x[i-bands] * .6
		}
	}
	return x
}
