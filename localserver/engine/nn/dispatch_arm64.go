//go:build !purego

package nn

// Every arm64 processor has NEON; tests switch it off to compare the
// implementations. The activations are in plain Go: they are a small part of the
// work.
var useNEON = true

// rowBlock is how many of the rows that are left the next kernel call takes.
func rowBlock(left int) int {
	if left >= 4 {
		return 4
	}
	return 1
}

//go:noescape
func tile4(dst *float32, dstStride int, src *float32, srcStride, segStride, segs, k int, w, bias, add *float32, addStride int, relu uint64)

//go:noescape
func tile1(dst *float32, dstStride int, src *float32, srcStride, segStride, segs, k int, w, bias, add *float32, addStride int, relu uint64)

//go:noescape
func recurrentNEON(dst, x, w, bias *float32, panels, k int)

func (t *tile) run() {
	if !useNEON {
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
	if t.rows == 4 {
		tile4(dst, ds, src, ss, gs, t.segs, t.k, w, bias, add, as, relu)
	} else {
		tile1(dst, ds, src, ss, gs, t.segs, t.k, w, bias, add, as, relu)
	}
}

func recurrent(dst, x, w, bias []float32) {
	if !useNEON {
		genericRecurrent(dst, x, w, bias)
		return
	}
	_ = w[len(dst)*len(x)-1]
	recurrentNEON(&dst[0], &x[0], &w[0], &bias[0], len(dst)/gruLanes, len(x))
}

func expSlice(dst, src []float32)  { genericExp(dst, src) }
func tanhSlice(dst, src []float32) { genericTanh(dst, src) }
func accumulate(sw, sx, sxx, e, x []float32, m float32) {
	genericAccumulate(sw, sx, sxx, e, x, m)
}
func gates(next, state, a, b []float32) { genericGates(next, state, a, b) }
