package capture

import "math"

// measure returns the level of samples; without samples, silence.
func measure(samples []float32) Level {
	if len(samples) == 0 {
		return Level{}
	}
	var sum float64
	var peak float32
	for _, x := range samples {
		sum += float64(x) * float64(x)
		if x < 0 {
			x = -x
		}
		peak = max(peak, x)
	}
	return Level{RMS: float32(math.Sqrt(sum / float64(len(samples)))), Peak: peak}
}
