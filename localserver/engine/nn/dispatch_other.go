//go:build (!amd64 && !arm64) || purego

package nn

func rowBlock(left int) int                             { return left }
func (t *tile) run()                                    { t.generic() }
func expSlice(dst, src []float32)                       { genericExp(dst, src) }
func tanhSlice(dst, src []float32)                      { genericTanh(dst, src) }
func accumulate(sw, sx, sxx, e, x []float32, m float32) { genericAccumulate(sw, sx, sxx, e, x, m) }
func recurrent(dst, x, w, bias []float32)               { genericRecurrent(dst, x, w, bias) }
func gates(next, state, a, b []float32)                 { genericGates(next, state, a, b) }
