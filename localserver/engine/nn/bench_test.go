package nn

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkMatrix runs the product of a 96-channel 3x3 convolution over 12 frames of 8 bands.
func BenchmarkMatrix(b *testing.B) {
	const ch = 96
	for _, name := range []string{"avx512", "avx2", "neon", "go"} {
		b.Run(name, func(b *testing.B) {
			if !setKernels(b, name) {
				b.Skip("this machine has no such kernels")
			}
			r := rand.New(rand.NewPCG(1, 1))
			m := NewMatrix(3, 3*ch, ch, nil, func(_, _, _ int) float32 { return float32(r.NormFloat64()) })
			src, dst := values(r, 12*10*ch*3), make([]float32, 12*8*ch)
			for b.Loop() {
				m.Apply(Rows{Groups: 12, N: 8, Src: src, SrcGroup: 10 * ch, SrcStride: ch, SegStride: 10 * ch, Dst: dst, DstGroup: 8 * ch, DstStride: ch, ReLU: true})
			}
			b.ReportMetric(12*8*ch*ch*9*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
		})
	}
}

// BenchmarkRecurrent is one step of a 96-unit GRU.
func BenchmarkRecurrent(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	g := NewGRU(96, 96, values(r, 288*96), values(r, 288*96), values(r, 288), values(r, 288))
	in, out, scratch := values(r, 288*125), make([]float32, 96*125), make([]float32, 4*96)
	for b.Loop() {
		g.Run(in, 288, out, 96, 125, false, scratch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/125, "ns/step")
}

func BenchmarkExp(b *testing.B) {
	v := values(rand.New(rand.NewPCG(1, 1)), 512)
	dst := make([]float32, 512)
	for b.Loop() {
		Exp(dst, v)
	}
}
