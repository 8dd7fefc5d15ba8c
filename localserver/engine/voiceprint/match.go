package voiceprint

import (
	"math"

	"hubbub/localserver/engine/clustering"
)

// Calibration turns the cosine of a speaker's centroid and that of a voiceprint
// into the log odds that both are one person: the weights of Features in a
// logistic regression. `go run ./cmd/eval --calibrate` learns it; it belongs to
// the weights.
type Calibration [6]float64

const (
	// minDuration and maxDuration bound the durations that are compared, in
	// seconds: with more speech the cosine changes little.
	minDuration, maxDuration = 0.5, 20
)

// Features are what the log odds are a linear function of: 1, the cosine, the
// binary logarithms of the durations of the speaker's and the voiceprint's
// speech in seconds, and the cosine times each of these. The more speech, the
// more a cosine says.
func Features(cosine, speaker, print float64) Calibration {
	limited := func(s float64) float64 { return math.Log2(min(max(s, minDuration), maxDuration)) }
	s, p := limited(speaker), limited(print)
	return Calibration{1, cosine, s, p, cosine * s, cosine * p}
}

// logOdds are the log odds at even prior odds.
func (c *Calibration) logOdds(cosine, speaker, print float64) (sum float64) {
	for i, x := range Features(cosine, speaker, print) {
		sum += c[i] * x
	}
	return sum
}

// probability is the probability that a speaker is the person of a voiceprint, at
// even prior odds.
func probability(centroid *clustering.Embedding, duration float64, v Voiceprint) float64 {
	c := learnt
	return 1 / (1 + math.Exp(-c.logOdds(centroid.Dot(&v.centroid), duration, v.duration)))
}

// Person is a voiceprint with the label of its person.
type Person struct {
	Label      string
	Voiceprint Voiceprint
}

// Matching is how speakers are matched with people.
type Matching struct {
	// Threshold is the confidence, 0 to 1, that a match needs. At any threshold a
	// match must be more likely than that the speaker is a stranger.
	Threshold float64
	// Shared allows several speakers to match one person.
	Shared bool
}

// DefaultThreshold is the threshold of a live stream that gives none.
const DefaultThreshold = 0.8

// Confidences are the probabilities that a speaker is each of the people; the
// rest to 1 is that the speaker is a stranger. Beforehand a stranger is as likely
// as all people together.
func Confidences(centroid *clustering.Embedding, duration float64, people []Person, out []float64) []float64 {
	out = out[:0]
	c := learnt
	top := math.Log(float64(max(1, len(people)))) // a stranger
	for _, p := range people {
		x := c.logOdds(centroid.Dot(&p.Voiceprint.centroid), duration, p.Voiceprint.duration)
		top = max(top, x)
		out = append(out, x)
	}
	sum := math.Exp(math.Log(float64(max(1, len(people)))) - top)
	for i, x := range out {
		out[i] = math.Exp(x - top)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// Best is the most likely of the people whom allowed permits and its confidence;
// -1 when a stranger is more likely or the confidence is below the threshold.
func Best(confidences []float64, threshold float64, allowed func(i int) bool) (best int, confidence float64) {
	best, stranger := -1, 1.0
	for i, x := range confidences {
		stranger -= x
		if x > confidence && (allowed == nil || allowed(i)) {
			best, confidence = i, x
		}
	}
	if best >= 0 && (confidence < threshold || confidence <= stranger) {
		best = -1
	}
	return best, confidence
}

// Assign is the person of each speaker of whom the confidences are known, -1 for
// nobody. The most certain pair comes first.
func Assign(confidences [][]float64, m Matching) []int {
	persons, taken := make([]int, len(confidences)), map[int]bool{}
	for k := range persons {
		persons[k] = -1
	}
	for {
		speaker, person, most := -1, -1, -1.0
		for k, of := range confidences {
			if persons[k] >= 0 {
				continue
			}
			i, p := Best(of, m.Threshold, func(i int) bool { return m.Shared || !taken[i] })
			if i >= 0 && p > most {
				speaker, person, most = k, i, p
			}
		}
		if speaker < 0 {
			return persons
		}
		persons[speaker], taken[person] = person, true
	}
}
