// Gen writes the AVX2+FMA and AVX-512 kernels of package nn: go generate ./localserver/engine/nn
package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!purego")
	for _, rows := range []int{6, 4, 1} { // see rowBlock
		tile(rows)
	}
	for _, rows := range []int{8, 4, 1} {
		tile512(rows)
	}
	recurrent()
	c := newExpConsts()
	gates(c)
	slice("expAVX2", "expAVX2 sets dst[i] = e^src[i]; n is a multiple of 8.", c.exp)
	slice("tanhAVX2", "tanhAVX2 sets dst[i] = tanh(src[i]); n is a multiple of 8.", c.tanh)
	accumulate()
	Generate()
}

// tileArgs are the arguments of a tile's function, in registers.
type tileArgs struct {
	seg, stride, segStride, segs, w, bias Register
	s3, s5, s7                            Register // multiples of stride, as far as rows need them
}

const tileSignature = "func(dst *float32, dstStride int, src *float32, srcStride, segStride, segs, k int, w, bias, add *float32, addStride int, relu uint64)"

// beginTile declares a function of type tile in gemm.go; strides are in bytes.
func beginTile(name string, rows int) tileArgs {
	TEXT(name, NOSPLIT, tileSignature)
	Pragma("noescape")
	Doc(fmt.Sprintf("%s computes %d rows of one panel of 16 outputs; strides are in bytes.", name, rows))
	a := tileArgs{seg: Load(Param("src"), GP64()), stride: Load(Param("srcStride"), GP64()), segStride: Load(Param("segStride"), GP64()),
		segs: Load(Param("segs"), GP64()), w: Load(Param("w"), GP64()), bias: Load(Param("bias"), GP64())}
	multiple := func(base Register, scale uint8) Register {
		r := GP64()
		LEAQ(Mem{Base: base, Index: a.stride, Scale: scale}, r)
		return r
	}
	if rows > 3 {
		a.s3 = multiple(a.stride, 2)
	}
	if rows > 5 {
		a.s5 = multiple(a.stride, 4)
	}
	if rows > 7 {
		a.s7 = multiple(a.s3, 4)
	}
	return a
}

// at is where row r reads when the first one reads at x.
func (a tileArgs) at(x Register, r int) Mem {
	switch r {
	case 0:
		return Mem{Base: x}
	case 1, 2, 4:
		return Mem{Base: x, Index: a.stride, Scale: uint8(r)}
	case 3, 6:
		return Mem{Base: x, Index: a.s3, Scale: uint8(r / 3)}
	case 5:
		return Mem{Base: x, Index: a.s5, Scale: 1}
	}
	return Mem{Base: x, Index: a.s7, Scale: 1}
}

// loop runs body for every input; body reads the inputs at x and their weights at a.w.
func (a tileArgs) loop(body func(x Register)) {
	x, k := GP64(), GP64()
	Label("segment")
	MOVQ(a.seg, x)
	Load(Param("k"), k)
	Label("input")
	body(x)
	ADDQ(Imm(4), x)
	ADDQ(Imm(64), a.w)
	DECQ(k)
	JNZ(LabelRef("input"))
	ADDQ(a.segStride, a.seg)
	DECQ(a.segs)
	JNZ(LabelRef("segment"))
}

// finish adds what is to be added, applies relu and stores. Every row of acc is 64 bytes, in registers of equal size.
func finish(acc [][]VecVirtual, zero VecVirtual, clear func()) {
	size := 64 / len(acc[0])
	add := Load(Param("add"), GP64())
	TESTQ(add, add)
	JZ(LabelRef("activation"))
	addStride := Load(Param("addStride"), GP64())
	for r := range acc {
		for h, v := range acc[r] {
			VADDPS(Mem{Base: add, Disp: size * h}, v, v)
		}
		if r+1 < len(acc) {
			ADDQ(addStride, add)
		}
	}
	Label("activation")
	relu := Load(Param("relu"), GP64())
	TESTQ(relu, relu)
	JZ(LabelRef("store"))
	clear()
	for r := range acc {
		for _, v := range acc[r] {
			VMAXPS(zero, v, v) // the second source (zero) where either is NaN
		}
	}
	Label("store")
	dst := Load(Param("dst"), GP64())
	dstStride := Load(Param("dstStride"), GP64())
	for r := range acc {
		for h, v := range acc[r] {
			VMOVUPS(v, Mem{Base: dst, Disp: size * h})
		}
		if r+1 < len(acc) {
			ADDQ(dstStride, dst)
		}
	}
	VZEROUPPER()
	RET()
}

// tile computes rows x 16 outputs with AVX2 and FMA.
func tile(rows int) {
	a := beginTile(fmt.Sprintf("tile%d", rows), rows)
	acc := make([][]VecVirtual, rows)
	for r := range acc {
		for h := range 2 {
			acc[r] = append(acc[r], YMM())
			if r == 0 {
				VMOVUPS(Mem{Base: a.bias, Disp: 32 * h}, acc[r][h])
			} else {
				VMOVAPS(acc[0][h], acc[r][h])
			}
		}
	}
	w0, w1, b := YMM(), YMM(), YMM()
	a.loop(func(x Register) {
		VMOVUPS(Mem{Base: a.w}, w0)
		VMOVUPS(Mem{Base: a.w, Disp: 32}, w1)
		for r := range rows {
			VBROADCASTSS(a.at(x, r), b)
			VFMADD231PS(w0, b, acc[r][0])
			VFMADD231PS(w1, b, acc[r][1])
		}
	})
	finish(acc, b, func() { VXORPS(b, b, b) })
}

// tile512 computes rows x 16 outputs with AVX-512.
func tile512(rows int) {
	a := beginTile(fmt.Sprintf("tile512x%d", rows), rows)
	acc := make([][]VecVirtual, rows)
	for r := range acc {
		acc[r] = []VecVirtual{ZMM()}
		if r == 0 {
			VMOVUPS(Mem{Base: a.bias}, acc[0][0])
		} else {
			VMOVAPS(acc[0][0], acc[r][0])
		}
	}
	w := ZMM()
	a.loop(func(x Register) {
		VMOVUPS(Mem{Base: a.w}, w)
		for r := range rows {
			VFMADD231PS_BCST(a.at(x, r), w, acc[r][0])
		}
	})
	finish(acc, w, func() { VPXORD(w, w, w) })
}

// recurrent computes a matrix by one vector, 96 outputs at a time.
func recurrent() {
	TEXT("recurrentAVX2", NOSPLIT, "func(dst, x, w, bias *float32, panels, k int)")
	Pragma("noescape")
	Doc("recurrentAVX2 sets dst = bias + W x for panels*96 outputs and k inputs.")
	dst, x0, w, bias := Load(Param("dst"), GP64()), Load(Param("x"), GP64()), Load(Param("w"), GP64()), Load(Param("bias"), GP64())
	panels, k0 := Load(Param("panels"), GP64()), Load(Param("k"), GP64())
	x, k, b := GP64(), GP64(), YMM()
	acc := make([]VecVirtual, 12)
	for i := range acc {
		acc[i] = YMM()
	}
	Label("panel")
	for i, a := range acc {
		VMOVUPS(Mem{Base: bias, Disp: 32 * i}, a)
	}
	MOVQ(x0, x)
	MOVQ(k0, k)
	Label("input")
	VBROADCASTSS(Mem{Base: x}, b)
	for i, a := range acc {
		VFMADD231PS(Mem{Base: w, Disp: 32 * i}, b, a)
	}
	ADDQ(Imm(4), x)
	ADDQ(U32(384), w)
	DECQ(k)
	JNZ(LabelRef("input"))
	for i, a := range acc {
		VMOVUPS(a, Mem{Base: dst, Disp: 32 * i})
	}
	ADDQ(U32(384), dst)
	ADDQ(U32(384), bias)
	DECQ(panels)
	JNZ(LabelRef("panel"))
	VZEROUPPER()
	RET()
}

// expConsts are the constants of exp in activation.go, in memory.
type expConsts map[string]Mem

func newExpConsts() expConsts {
	consts := expConsts{}
	for _, c := range []struct {
		name string
		v    float32
	}{{"limit", 60}, {"low", -60}, {"log2e", 1.44269504088896341}, {"ln2high", 0.693359375}, {"ln2low", -2.12194440e-4},
		{"c0", 1.9875691500e-4}, {"c1", 1.3981999507e-3}, {"c2", 8.3334519073e-3}, {"c3", 4.1665795894e-2},
		{"c4", 1.6666665459e-1}, {"c5", 5.0000001201e-1}, {"one", 1}} {
		consts[c.name] = eight(c.name, math.Float32bits(c.v))
	}
	consts["bias"] = eight("bias", 127)
	consts["sign"] = eight("sign", 1<<31)
	return consts
}

// eight is a constant in all lanes.
func eight(name string, bits uint32) Mem {
	m := GLOBL(name+"x8", RODATA|NOPTR)
	for i := range 8 {
		DATA(4*i, U32(bits))
	}
	return m
}

func (c expConsts) exp(x VecVirtual) VecVirtual {
	n, r, y := YMM(), YMM(), YMM()
	VMINPS(c["limit"], x, x)
	VMAXPS(c["low"], x, x)
	VMULPS(c["log2e"], x, n)
	VROUNDPS(Imm(0), n, n) // to nearest, ties to even
	VMOVAPS(x, r)
	VFNMADD231PS(c["ln2high"], n, r)
	VFNMADD231PS(c["ln2low"], n, r)
	VMOVUPS(c["c0"], y)
	for _, p := range []string{"c1", "c2", "c3", "c4", "c5"} {
		VFMADD213PS(c[p], r, y)
	}
	r2 := YMM()
	VMULPS(r, r, r2)
	VFMADD213PS(r, r2, y)
	VADDPS(c["one"], y, y)
	VCVTPS2DQ(n, n)
	VPADDD(c["bias"], n, n)
	VPSLLD(Imm(23), n, n)
	VMULPS(n, y, y)
	return y
}

func (c expConsts) sigmoid(x VecVirtual) VecVirtual {
	VXORPS(c["sign"], x, x)
	y, one := c.exp(x), YMM()
	VMOVUPS(c["one"], one)
	VADDPS(one, y, y)
	VDIVPS(y, one, y)
	return y
}

func (c expConsts) tanh(x VecVirtual) VecVirtual {
	VADDPS(x, x, x)
	y, one, two := c.exp(x), YMM(), YMM()
	VMOVUPS(c["one"], one)
	VADDPS(one, y, y)
	VADDPS(one, one, two)
	VDIVPS(y, two, y)
	VSUBPS(y, one, y)
	return y
}

func slice(name, doc string, f func(VecVirtual) VecVirtual) {
	TEXT(name, NOSPLIT, "func(dst, src *float32, n int)")
	Pragma("noescape")
	Doc(doc)
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	Label("loop")
	x := YMM()
	VMOVUPS(Mem{Base: src}, x)
	VMOVUPS(f(x), Mem{Base: dst})
	ADDQ(Imm(32), src)
	ADDQ(Imm(32), dst)
	SUBQ(Imm(8), n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// gates: see genericGates in gru.go.
func gates(c expConsts) {
	TEXT("gatesAVX2", NOSPLIT, "func(next, state, a, b *float32, n int)")
	Pragma("noescape")
	Doc("gatesAVX2 computes the next n states of a GRU; n is a multiple of 8.")
	next, state, a, b := Load(Param("next"), GP64()), Load(Param("state"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())
	n := Load(Param("n"), GP64())
	left := GP64()
	MOVQ(n, left)
	Label("loop")
	r, z, g, h := YMM(), YMM(), YMM(), YMM()
	VMOVUPS(Mem{Base: a}, r)
	VADDPS(Mem{Base: b}, r, r)
	r = c.sigmoid(r)
	VMOVUPS(Mem{Base: a, Index: n, Scale: 4}, z)
	VADDPS(Mem{Base: b, Index: n, Scale: 4}, z, z)
	z = c.sigmoid(z)
	VMOVUPS(Mem{Base: a, Index: n, Scale: 8}, g)
	VFMADD231PS(Mem{Base: b, Index: n, Scale: 8}, r, g)
	g = c.tanh(g)
	VMOVUPS(Mem{Base: state}, h)
	VSUBPS(g, h, h)
	VFMADD213PS(g, z, h) // h = h*z + g
	VMOVUPS(h, Mem{Base: next})
	for _, p := range []Register{next, state, a, b} {
		ADDQ(Imm(32), p)
	}
	SUBQ(Imm(8), left)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// accumulate: see Accumulate in activation.go.
func accumulate() {
	TEXT("accumulateAVX2", NOSPLIT, "func(sw, sx, sxx, e, x *float32, m float32, n int)")
	Pragma("noescape")
	Doc("accumulateAVX2 adds a frame to the sums of a weighted pooling; n is a multiple of 8.")
	sw, sx, sxx, e, x := Load(Param("sw"), GP64()), Load(Param("sx"), GP64()), Load(Param("sxx"), GP64()), Load(Param("e"), GP64()), Load(Param("x"), GP64())
	n := Load(Param("n"), GP64())
	m0, m := XMM(), YMM()
	Load(Param("m"), m0)
	VBROADCASTSS(m0, m)
	Label("loop")
	w, v, t := YMM(), YMM(), YMM()
	VMULPS(Mem{Base: e}, m, w)
	VADDPS(Mem{Base: sw}, w, t)
	VMOVUPS(t, Mem{Base: sw})
	VMOVUPS(Mem{Base: x}, v)
	VMULPS(v, w, w)
	VADDPS(Mem{Base: sx}, w, t)
	VMOVUPS(t, Mem{Base: sx})
	t2 := YMM()
	VMOVUPS(Mem{Base: sxx}, t2)
	VFMADD231PS(v, w, t2)
	VMOVUPS(t2, Mem{Base: sxx})
	for _, p := range []Register{sw, sx, sxx, e, x} {
		ADDQ(Imm(32), p)
	}
	SUBQ(Imm(8), n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
