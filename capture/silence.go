package capture

import "time"

// Silence says how silent a device is.
type Silence int

// The kinds of silence, each after silenceAfter.
const (
	NotSilent Silence = iota
	// Quiet is a device that has delivered nothing above the noise floor since it
	// was opened. Later, people who do not speak are no reason for a hint.
	Quiet
	// Muted is a device that delivers digital silence: samples that are zero.
	Muted
)

const (
	// silenceAfter is how long a device may be silent, in blocks: 8 s.
	silenceAfter = int64(8 * time.Second / ChunkDuration)
	// noiseFloor is the RMS level that a microphone exceeds when somebody speaks:
	// -60 dB of full scale.
	noiseFloor = 0.001
	// digitalSilence is half of the least step of 16-bit samples.
	digitalSilence = 0.5 / 32768
)

// silenceDetector detects the silence of a device.
type silenceDetector struct {
	zero  int64 // blocks of digital silence up to now
	quiet int64 // blocks since the device was opened
	above bool  // one was above the noise floor
}

// add takes the level of the next block of 100 ms.
func (s *silenceDetector) add(l Level) {
	s.above = s.above || l.RMS > noiseFloor
	s.quiet++
	s.zero++
	if l.Peak > digitalSilence {
		s.zero = 0
	}
}

func (s *silenceDetector) state() Silence {
	switch {
	case s.zero >= silenceAfter:
		return Muted
	case !s.above && s.quiet >= silenceAfter:
		return Quiet
	}
	return NotSilent
}
