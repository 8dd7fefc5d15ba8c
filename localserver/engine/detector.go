package engine

// What the speech detector goes by, in dB and frames of 10 ms.
const (
	floorShare  = 0.08 // of the remembered frames lie below the noise floor
	peakShare   = 0.97 // and this many below the speech peak
	aboveFloor  = 9.0  // speech is this much above the floor,
	rangeShare  = 0.4  // or this much of the way to the peak, if that is less
	belowPeak   = 35.0 // but never further below the peak,
	leastRange  = 12.0 // which is at least this much above the floor
	leastSpeech = -65.0
	hangover    = 10
	remembered  = 1500
	levelBins   = 128 // of 1 dB, from -100 dB on
)

// detector tells speech from the noise floor that it follows: percentiles of
// the level over the last 15 s.
type detector struct {
	recent [remembered]uint8
	count  [levelBins]int
	n      int
	hang   int
}

// speech takes the next frame's level, smoothed, in dB of full scale.
func (d *detector) speech(level float64) bool {
	bin := uint8(min(max(level+100, 0), levelBins-1))
	slot := d.n % remembered
	if d.n >= remembered {
		d.count[d.recent[slot]]--
	}
	d.recent[slot] = bin
	d.count[bin]++
	d.n++

	floor := d.percentile(floorShare)
	peak := max(d.percentile(peakShare), floor+leastRange)
	threshold := max(floor+min(aboveFloor, rangeShare*(peak-floor)), peak-belowPeak, leastSpeech)
	if level > threshold {
		d.hang = hangover
	} else {
		d.hang--
	}
	return d.hang > 0
}

func (d *detector) percentile(share float64) float64 {
	left := int(share * float64(min(d.n, remembered)))
	for bin, n := range d.count {
		if left -= n; left < 0 {
			return float64(bin) - 99.5
		}
	}
	return 0
}
