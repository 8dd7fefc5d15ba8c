package signal

import "slices"

// What the loudspeakers play reaches the microphone too: without headphones, the far
// side of a call would be on both tracks, and each of its speakers counted
// twice.
//
// The suppressor silences the microphone where there is nothing but that echo. It
// knows how loud the far side's signal was at every time of the last 0.4 s, and
// estimates by how much an echo is quieter: while the far side speaks alone, the
// ratio of the two levels is the echo's, and while somebody speaks here it is
// higher. So the lower ratios are those of the echo.

const (
	echoFrame = SampleRate / 50 // samples, 20 ms
	// maxEchoDelay is the latest echo that is looked for, in frames: 400 ms.
	maxEchoDelay = 20
	// echoMemory is how many frames with far speech the estimate is from: 8 s.
	echoMemory = 400
	// leastEcho is how many are needed for one: 3 s. Until then, unknownEcho is
	// assumed, 3 dB down.
	leastEcho   = 150
	unknownEcho = 0.5
	// farSpeech is the power above which the far side speaks: -50 dB.
	farSpeech = 1e-5
	// echoQuantile of the ratios is that of an echo.
	echoQuantile = 0.25
	// strongestEcho is the ratio above which it is no echo, but somebody here who
	// speaks all the time: the echo would be louder than what is played.
	strongestEcho = 2
	// echoMargin is how much louder than the estimated echo a frame may be and still
	// be an echo: 6 dB of power.
	echoMargin = 4
)

// An EchoSuppressor silences the echo of track 1 in track 0.
type EchoSuppressor struct {
	far [maxEchoDelay + 1]float64
	// ratios of the microphone's power to the far side's, by delay; the newest
	// echoMemory of each, by time and by size.
	ratios, sorted [maxEchoDelay + 1][]float64
	n              int
	delay          int
	gain           float64 // of the echo's power; 0 = no echo
}

// NewEchoSuppressor returns one that assumes an echo 3 dB down until it knows better.
func NewEchoSuppressor() *EchoSuppressor {
	return &EchoSuppressor{gain: unknownEcho, delay: -1}
}

// Suppress works in place on interleaved frames of two tracks; their number is a multiple of 320, 20 ms. Without a
// suppressor, nothing changes.
func (s *EchoSuppressor) Suppress(x []float32) {
	if s == nil {
		return
	}
	for ; len(x) >= 2*echoFrame; x = x[2*echoFrame:] {
		s.next(x[:2*echoFrame])
	}
}

func (s *EchoSuppressor) next(x []float32) {
	var near, far float64
	for i := 0; i < len(x); i += 2 {
		near += float64(x[i]) * float64(x[i])
		far += float64(x[i+1]) * float64(x[i+1])
	}
	near, far = near/echoFrame, far/echoFrame
	copy(s.far[1:], s.far[:maxEchoDelay])
	s.far[0] = far
	for d, power := range s.far {
		if power > farSpeech {
			s.remember(d, near/power)
		}
	}
	if s.n++; s.n%10 == 0 {
		s.estimate()
	}
	if s.gain == 0 {
		return
	}
	// The echo of one frame lies in two, and its delay is between two.
	loudest := 0.0
	from, to := max(0, s.delay-2), min(maxEchoDelay, s.delay+2)
	if s.delay < 0 { // not known yet
		from, to = 0, maxEchoDelay
	}
	for d := from; d <= to; d++ {
		loudest = max(loudest, s.far[d])
	}
	if loudest > farSpeech && near < echoMargin*s.gain*loudest {
		for i := 0; i < len(x); i += 2 {
			x[i] = 0
		}
	}
}

// remember adds a ratio of a delay in place of the oldest one.
func (s *EchoSuppressor) remember(d int, ratio float64) {
	if len(s.ratios[d]) == echoMemory {
		at, _ := slices.BinarySearch(s.sorted[d], s.ratios[d][0])
		s.sorted[d] = slices.Delete(s.sorted[d], at, at+1)
		s.ratios[d] = slices.Delete(s.ratios[d], 0, 1)
	}
	s.ratios[d] = append(s.ratios[d], ratio)
	at, _ := slices.BinarySearch(s.sorted[d], ratio)
	s.sorted[d] = slices.Insert(s.sorted[d], at, ratio)
}

// estimate finds the delay at which the ratio varies least, and the echo's ratio
// there.
func (s *EchoSuppressor) estimate() {
	best, gain, delay := 0.0, 0.0, 0
	for d, sorted := range s.sorted {
		if len(sorted) < leastEcho {
			continue
		}
		at := func(q float64) float64 { return sorted[int(q*float64(len(sorted)-1))] }
		low, high := at(echoQuantile/2), at(2*echoQuantile)
		if low <= 0 {
			continue
		}
		if spread := high / low; best == 0 || spread < best {
			best, gain, delay = spread, at(echoQuantile), d
		}
	}
	if best == 0 {
		return
	}
	s.gain, s.delay = 0, delay
	if gain < strongestEcho {
		s.gain = gain
	}
}
