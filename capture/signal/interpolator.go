package signal

import "math"

// An Interpolator reads a signal between its samples, with the filter of the resampler. It keeps the last second.
type Interpolator struct {
	filter *Resampler
	hist   []float32 // from sample number base on
	base   int64
}

// NewInterpolator returns one for a signal that was silent before its first sample.
func NewInterpolator() *Interpolator {
	f := &Interpolator{filter: NewResampler(SampleRate, SampleRate+1)}
	f.hist = make([]float32, f.filter.taps)
	f.base = -int64(len(f.hist))
	return f
}

// Push appends samples to the signal.
func (f *Interpolator) Push(samples []float32) { f.hist = append(f.hist, samples...) }

// End is the first position, in samples, that needs samples that are not there yet.
func (f *Interpolator) End() float64 {
	return float64(f.base + int64(len(f.hist)) - int64(f.filter.taps/2))
}

// At is the signal at a position before End, in samples; 0 before its begin, and where it is forgotten.
func (f *Interpolator) At(position float64) float32 {
	whole := math.Floor(position)
	first := int64(whole) - int64(f.filter.taps/2) + 1 - f.base
	if first < 0 {
		return 0
	}
	x := f.hist[first : first+int64(f.filter.taps)]
	return f.filter.interpolate((position-whole)*betweenPhases, x)
}

// Forget drops the samples before a position, when there is a second of them.
func (f *Interpolator) Forget(position float64) {
	if drop := int64(position) - int64(f.filter.taps) - f.base; drop > SampleRate {
		drop = min(drop, int64(len(f.hist)))
		f.hist = append(f.hist[:0], f.hist[drop:]...)
		f.base += drop
	}
}
