package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func values(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// near compares within tol of the larger of 1 and |want|.
func near(t *testing.T, what string, got, want []float32, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= tol*max(1, math.Abs(float64(want[i])))) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// everyKernel runs a test with each of this machine's kernels and with plain Go.
func everyKernel(t *testing.T, f func(t *testing.T)) {
	for _, name := range []string{"avx512", "avx2", "neon", "go"} {
		t.Run(name, func(t *testing.T) {
			if !setKernels(t, name) {
				t.Skip("this machine has no such kernels")
			}
			f(t)
		})
	}
}

func TestMatrixAgainstDefinition(t *testing.T) {
	everyKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for _, c := range []struct{ segs, k, n, groups, rows int }{
			{1, 1, 1, 1, 1}, {3, 3, 16, 2, 32}, {1, 96, 14, 1, 125}, {5, 64, 96, 1, 7}, {3, 48, 32, 3, 8}, {1, 512, 96, 1, 2},
			{2, 5, 17, 2, 3}, {1, 7, 33, 1, 4}, {3, 9, 48, 1, 5}, {1, 3, 16, 1, 11},
		} {
			w, bias := values(r, c.segs*c.k*c.n), values(r, c.n)
			at := func(s, k, o int) float32 { return w[(o*c.segs+s)*c.k+k] }
			m := NewMatrix(c.segs, c.k, c.n, bias, at)
			segStride := c.k + 3
			srcStride, dstStride := c.segs*segStride+2, m.Padded()+5
			srcGroup, dstGroup := c.rows*srcStride+1, c.rows*dstStride+2
			src, add := values(r, c.groups*srcGroup), values(r, c.groups*dstGroup)
			for mode := range 4 {
				dst := make([]float32, c.groups*dstGroup)
				rows := Rows{Groups: c.groups, N: c.rows, Src: src, SrcGroup: srcGroup, SrcStride: srcStride, SegStride: segStride,
					Dst: dst, DstGroup: dstGroup, DstStride: dstStride, ReLU: mode&1 != 0}
				if mode&2 != 0 {
					rows.Add, rows.AddGroup, rows.AddStride = add, dstGroup, dstStride
				}
				m.Apply(rows)
				for g := range c.groups {
					for i := range c.rows {
						want := make([]float32, c.n)
						for o := range want {
							sum := float64(bias[o])
							for s := range c.segs {
								for k := range c.k {
									sum += float64(at(s, k, o)) * float64(src[g*srcGroup+i*srcStride+s*segStride+k])
								}
							}
							if rows.Add != nil {
								sum += float64(add[g*dstGroup+i*dstStride+o])
							}
							if rows.ReLU {
								sum = max(sum, 0)
							}
							want[o] = float32(sum)
						}
						near(t, fmt.Sprintf("%+v mode %d row %d/%d", c, mode, g, i), dst[g*dstGroup+i*dstStride:][:c.n], want, 2e-5)
					}
				}
			}
		}
	})
}

// TestRowsAreIndependent: a row gives the same bits whatever rows are computed with it.
func TestRowsAreIndependent(t *testing.T) {
	everyKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(2, 1))
		m := Dense(96, 48, values(r, 96*48), values(r, 48))
		src := values(r, 96*20)
		one, many := make([]float32, 48), make([]float32, 48*20)
		m.Apply(Rows{Groups: 1, N: 20, Src: src, SrcStride: 96, Dst: many, DstStride: 48})
		for n := 1; n <= 12; n++ {
			for i := 0; i+n <= 20; i++ {
				got := make([]float32, 48*n)
				m.Apply(Rows{Groups: 1, N: n, Src: src[i*96:], SrcStride: 96, Dst: got, DstStride: 48})
				copy(one, many[i*48:])
				near(t, "row", got[:48], one, 0)
			}
		}
	})
}

func TestReLUOfNaNIsZero(t *testing.T) {
	everyKernel(t, func(t *testing.T) {
		m := Dense(1, 16, values(rand.New(rand.NewPCG(3, 1)), 16), nil)
		dst := make([]float32, 16)
		m.Apply(Rows{Groups: 1, N: 1, Src: []float32{float32(math.NaN())}, Dst: dst, ReLU: true})
		near(t, "relu of NaN", dst, make([]float32, 16), 0)
	})
}

func TestActivationsAgainstMath(t *testing.T) {
	everyKernel(t, func(t *testing.T) {
		var x []float32
		for v := -100.; v <= 100; v += 0.00731 {
			x = append(x, float32(v))
		}
		x = append(x, 0, 1e-30, -1e-30, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()))
		e, h := make([]float32, len(x)), make([]float32, len(x))
		Exp(e, x)
		Tanh(h, x)
		for i, v := range x {
			arg := math.Max(-expLimit, math.Min(expLimit, float64(v)))
			if v != v {
				arg = expLimit
			}
			tol := 2e-7
			if math.Abs(arg) > 10 {
				tol = 1e-6
			}
			if want := math.Exp(arg); math.Abs(float64(e[i])-want) > tol*want {
				t.Fatalf("exp(%v) = %v, want %v", v, e[i], want)
			}
			if want := math.Tanh(arg); math.Abs(float64(h[i])-want) > 3e-7 {
				t.Fatalf("tanh(%v) = %v, want %v", v, h[i], want)
			}
		}
		for n := range 20 { // lengths that are no multiple of the lanes
			dst := make([]float32, n)
			Exp(dst, x[100:100+n])
			near(t, "short exp", dst, e[100:100+n], 1e-6)
		}
	})
}

func TestAccumulate(t *testing.T) {
	everyKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(4, 1))
		const n = 64
		sums := [3][]float32{make([]float32, n), make([]float32, n), make([]float32, n)}
		var want [3][n]float64
		for range 50 {
			e, x, m := values(r, n), values(r, n), float32(r.Float64())
			Accumulate(sums[0], sums[1], sums[2], e, x, m)
			for i := range n {
				w := float64(m) * float64(e[i])
				want[0][i] += w
				want[1][i] += w * float64(x[i])
				want[2][i] += w * float64(x[i]) * float64(x[i])
			}
		}
		for k, s := range sums {
			for i := range n {
				if math.Abs(float64(s[i])-want[k][i]) > 1e-4 {
					t.Fatalf("sum %d of %d is %v, want %v", k, i, s[i], want[k][i])
				}
			}
		}
	})
}

func TestGRUAgainstDefinition(t *testing.T) {
	everyKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 1))
		const in, h, n = 40, 96, 37
		scale := func(v []float32) []float32 {
			for i := range v {
				v[i] *= 0.2
			}
			return v
		}
		wih, whh, bih, bhh := scale(values(r, 3*h*in)), scale(values(r, 3*h*h)), scale(values(r, 3*h)), scale(values(r, 3*h))
		x := values(r, n*in)
		g := NewGRU(in, h, wih, whh, bih, bhh)
		a := make([]float32, n*g.Input.Padded())
		g.Input.Apply(Rows{Groups: 1, N: n, Src: x, SrcStride: in, Dst: a, DstStride: g.Input.Padded()})
		for _, backwards := range []bool{false, true} {
			got := make([]float32, n*h)
			g.Run(a, g.Input.Padded(), got, h, n, backwards, make([]float32, 4*h))
			state := make([]float64, h)
			want := make([]float32, n*h)
			for i := range n {
				if backwards {
					i = n - 1 - i
				}
				gi, gh := make([]float64, 3*h), make([]float64, 3*h)
				for o := range 3 * h {
					gi[o], gh[o] = float64(bih[o]), float64(bhh[o])
					for k := range in {
						gi[o] += float64(wih[o*in+k]) * float64(x[i*in+k])
					}
					for k := range h {
						gh[o] += float64(whh[o*h+k]) * state[k]
					}
				}
				next := make([]float64, h)
				for o := range h {
					sig := func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }
					rr, z := sig(gi[o]+gh[o]), sig(gi[h+o]+gh[h+o])
					nn := math.Tanh(gi[2*h+o] + rr*gh[2*h+o])
					next[o] = (1-z)*nn + z*state[o]
					want[i*h+o] = float32(next[o])
				}
				state = next
			}
			near(t, fmt.Sprintf("backwards %v", backwards), got, want, 1e-5)
		}
	})
}
