package nn

import (
	"math/rand/v2"
	"testing"
)

// conv2D is the definition: x [C][F][T] -> [N][F'][T'], zero padding size/2.
func conv2D(x []float32, c, f, t int, w, bias []float32, n, size, fs, ts int) (y []float32, fo, to int) {
	pad := size / 2
	fo, to = (f+2*pad-size)/fs+1, (t+2*pad-size)/ts+1
	y = make([]float32, n*fo*to)
	for o := range n {
		for i := range fo {
			for j := range to {
				sum := float64(bias[o])
				for ch := range c {
					for df := range size {
						for dt := range size {
							a, b := i*fs+df-pad, j*ts+dt-pad
							if a >= 0 && a < f && b >= 0 && b < t {
								sum += float64(w[((o*c+ch)*size+df)*size+dt]) * float64(x[(ch*f+a)*t+b])
							}
						}
					}
				}
				y[(o*fo+i)*to+j] = float32(sum)
			}
		}
	}
	return y, fo, to
}

// TestConv2DStream pushes a stream in uneven steps; after each, the whole output is
// that of the convolution of the signal so far.
func TestConv2DStream(t *testing.T) {
	for _, c := range []struct{ size, fs, ts int }{{3, 1, 1}, {3, 2, 2}, {3, 2, 1}, {1, 2, 2}, {1, 2, 1}} {
		r := rand.New(rand.NewPCG(7, uint64(c.size*100+c.fs*10+c.ts)))
		in := Plane{Bands: 6, C: 4, Padded: true}
		out := Plane{Bands: 6 / c.fs, C: 16, Padded: true}
		w, bias := values(r, 16*4*c.size*c.size), values(r, 16)
		conv := NewConv2D(in, out, c.size, c.fs, c.ts, w, bias)
		src, dst := NewTrack(in.Size(), 1, 4), NewTrack(out.Size(), 1, 10)
		var all []float32 // [T][band][channel]
		for step := range 60 {
			n := r.IntN(9)
			if step == 30 {
				n = 70
			}
			fresh := values(r, n*24)
			all = append(all, fresh...)
			src.Push(fresh, 24, in.C)
			conv.Step(src, dst, nil, false)
			src.Read()
			T := len(all) / 24
			if T == 0 {
				continue
			}
			x := make([]float32, len(all))
			for i, v := range all {
				x[(i%4*6+i/4%6)*T+i/24] = v
			}
			want, fo, to := conv2D(x, 4, 6, T, w, bias, 16, c.size, c.fs, c.ts)
			if dst.Len() != to {
				t.Fatalf("%+v: %d frames, want %d", c, dst.Len(), to)
			}
			for j := max(dst.First(), dst.Final()-10); j < to; j++ {
				got, frame := make([]float32, 0, fo*16), dst.Frame(j)
				exp := make([]float32, 0, fo*16)
				for i := range fo {
					got = append(got, frame[16*(1+i):16*(2+i)]...)
					for o := range 16 {
						exp = append(exp, want[(o*fo+i)*to+j])
					}
				}
				near(t, "frame", got, exp, 1e-5)
				near(t, "zeros above", frame[:16], make([]float32, 16), 0)
				near(t, "zeros below", frame[16*(fo+1):], make([]float32, 16), 0)
			}
		}
		if cap(dst.buf) > out.Size()*400 {
			t.Errorf("%+v: the track grew to %d values", c, cap(dst.buf))
		}
	}
}

func TestConv1DStream(t *testing.T) {
	for _, c := range []struct{ kernel, stride, dilation int }{{3, 1, 1}, {3, 1, 8}, {5, 2, 1}, {1, 1, 1}, {3, 2, 2}} {
		r := rand.New(rand.NewPCG(8, uint64(c.kernel*100+c.stride*10+c.dilation)))
		w, bias := values(r, 16*4*c.kernel), values(r, 16)
		conv := NewConv1D(4, 16, c.kernel, c.stride, c.dilation, w, bias)
		edge := c.dilation * (c.kernel / 2)
		src, dst := NewTrack(4, edge, 2*edge), NewTrack(16, 0, 5)
		var all []float32
		for range 80 {
			fresh := values(r, r.IntN(7)*4)
			all = append(all, fresh...)
			src.Push(fresh, 4, 0)
			conv.Step(src, dst, nil, true)
			src.Read()
			T := len(all) / 4
			if dst.Final()-dst.First() < min(5, dst.Final()) {
				t.Fatalf("%+v: of %d final frames those from %d on can be read", c, dst.Final(), dst.First())
			}
			for j := max(dst.First(), dst.Final()-5); j < dst.Len(); j++ {
				want := make([]float32, 16)
				for o := range want {
					sum := float64(bias[o])
					for k := range c.kernel {
						if at := j*c.stride - edge + k*c.dilation; at >= 0 && at < T {
							for ch := range 4 {
								sum += float64(w[(o*4+ch)*c.kernel+k]) * float64(all[at*4+ch])
							}
						}
					}
					want[o] = float32(max(sum, 0))
				}
				near(t, "frame", dst.Frame(j), want, 1e-5)
			}
			if T > 0 && dst.Len() != (T+2*edge-c.dilation*(c.kernel-1)-1)/c.stride+1 {
				t.Fatalf("%+v: %d frames of %d", c, dst.Len(), T)
			}
		}
	}
}
