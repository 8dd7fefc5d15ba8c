//go:build amd64 && !purego

package nn

import "golang.org/x/sys/cpu"

// useAVX2 and useAVX512 select the kernels, useAVX512 those of products only. Tests
// switch them to compare the implementations.
var (
	useAVX2   = cpu.X86.HasAVX2 && cpu.X86.HasFMA
	useAVX512 = useAVX2 && cpu.X86.HasAVX512F
)

// rowBlock is how many of the rows that are left the next kernel call takes.
func rowBlock(left int) int {
	switch {
	case useAVX512 && left >= 8:
		return 8
	case !useAVX512 && left >= 6 && left != 8: // 4+4 keeps the FMA units busier than 6+2
		return 6
	case left >= 4:
		return 4
	}
	return 1
}

func (t *tile) run() {
	if !useAVX2 {
		t.generic()
		return
	}
	var add *float32
	if t.add != nil {
		add = &t.add[0]
	}
	var relu uint64
	if t.relu {
		relu = 1
	}
	src, dst, w, bias := &t.src[0], &t.dst[0], &t.w[0], &t.bias[0]
	ss, gs, ds, as := 4*t.srcStride, 4*t.segStride, 4*t.dstStride, 4*t.addStride
	if useAVX512 {
		switch t.rows {
		case 8:
			tile512x8(dst, ds, src, ss, gs, t.segs, t.k, w, bias, add, as, relu)
		case 4:
			tile512x4(dst, ds, src, ss, gs, t.segs, t.k, w, bias, add, as, relu)
		case 1:
			tile512x1(dst, ds, src, ss, gs, t.segs, t.k, w, bias, add, as, relu)
		}
		return
	}
	switch t.rows {
	case 6:
		tile6(dst, ds, src, ss, gs, t.segs, t.k, w, bias, add, as, relu)
	case 4:
		tile4(dst, ds, src, ss, gs, t.segs, t.k, w, bias, add, as, relu)
	case 1:
		tile1(dst, ds, src, ss, gs, t.segs, t.k, w, bias, add, as, relu)
	}
}

func expSlice(dst, src []float32) {
	n := 0
	if useAVX2 {
		if n = len(src) &^ 7; n > 0 {
			_ = dst[n-1]
			expAVX2(&dst[0], &src[0], n)
		}
	}
	genericExp(dst[n:], src[n:])
}

func tanhSlice(dst, src []float32) {
	n := 0
	if useAVX2 {
		if n = len(src) &^ 7; n > 0 {
			_ = dst[n-1]
			tanhAVX2(&dst[0], &src[0], n)
		}
	}
	genericTanh(dst[n:], src[n:])
}

func accumulate(sw, sx, sxx, e, x []float32, m float32) {
	if !useAVX2 || len(sw)%8 != 0 || len(sw) == 0 {
		genericAccumulate(sw, sx, sxx, e, x, m)
		return
	}
	accumulateAVX2(&sw[0], &sx[0], &sxx[0], &e[0], &x[0], m, len(sw))
}

func recurrent(dst, x, w, bias []float32) {
	if !useAVX2 {
		genericRecurrent(dst, x, w, bias)
		return
	}
	_ = w[len(dst)*len(x)-1]
	recurrentAVX2(&dst[0], &x[0], &w[0], &bias[0], len(dst)/gruLanes, len(x))
}

func gates(next, state, a, b []float32) {
	if !useAVX2 {
		genericGates(next, state, a, b)
		return
	}
	_, _, _ = next[len(state)-1], a[3*len(state)-1], b[3*len(state)-1]
	gatesAVX2(&next[0], &state[0], &a[0], &b[0], len(state))
}
