package voiceprint

import (
	"math"

	"hubbub/localserver/engine/clustering"
)

// Calibration turns the score of a speaker and a voiceprint into log odds: the
// weights of Features in a logistic regression with a class for each person and
// one for strangers. `make calibrate` learns it; it belongs to the weights.
type Calibration [6]float64

// minDuration bounds the common duration from below, in seconds.
const minDuration = 0.5

// Features are what the log odds are a linear function of: 1, the score, the
// binary logarithm of the common duration of the speaker's and the voiceprint's
// speech in seconds, the score times that, the speaker's similarity to the cohort, and
// the score times that. The common duration is half the harmonic mean: the variances of two means
// add. The more speech, and the more similar the speaker is to the cohort, the more a
// score says: little speech, and a voice or a channel that the cohort does not have,
// are far from all of it. Such features are quality measures (Mandasari et al.,
// "Quality measure functions for calibration of speaker recognition systems in various
// duration conditions", IEEE TASLP 2013).
func Features(score, speaker, print, cohortSimilarity float64) Calibration {
	common := math.Log2(max(speaker*print/(speaker+print), minDuration))
	return Calibration{1, score, common, score * common, cohortSimilarity, score * cohortSimilarity}
}

// LogOdds are the log odds that speaker and voiceprint are one person, against a
// stranger, when both are as likely beforehand; x are their Features.
func (c *Calibration) LogOdds(x Calibration) (sum float64) {
	for i := range x {
		sum += c[i] * x[i]
	}
	return sum
}

// Scores appends to out the score of a speaker's centroid and each of the people:
// the cosine with the most similar embedding of the voiceprint, less the similarity
// of the centroid to the cohort, which it returns as well; all of them projected.
func Scores(centroid *clustering.Embedding, people []Person, out []float64) (scores []float64, cohortSimilarity float64) {
	speaker := project(centroid)
	cohortSimilarity = toCohort(&speaker, projectedCohort())
	for i := range people {
		v := &people[i].Voiceprint
		best := -1.0
		for k := range v.projected {
			best = max(best, v.projected[k].Dot(&speaker))
		}
		out = append(out, best-cohortSimilarity)
	}
	return out, cohortSimilarity
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
const DefaultThreshold = 0.9

// Confidences are the probabilities that a speaker is each of the people, in their order;
// the rest to 1 is that the speaker is a stranger. duration is the speech behind the
// centroid in seconds. The memory of out is used again.
func Confidences(centroid *clustering.Embedding, duration float64, people []Person, out []float64) []float64 {
	out, cohortSimilarity := Scores(centroid, people, out[:0])
	for i, score := range out {
		out[i] = calibration.LogOdds(Features(score, duration, people[i].Voiceprint.duration, cohortSimilarity))
	}
	Probabilities(out)
	return out
}

// Probabilities makes probabilities of the log odds of people; the rest to 1 is
// that of a stranger. Beforehand a stranger is as likely as all people together.
func Probabilities(logOdds []float64) {
	stranger := math.Log(float64(max(1, len(logOdds))))
	top := stranger
	for _, x := range logOdds {
		top = max(top, x)
	}
	sum := math.Exp(stranger - top)
	for i, x := range logOdds {
		logOdds[i] = math.Exp(x - top)
		sum += logOdds[i]
	}
	for i := range logOdds {
		logOdds[i] /= sum
	}
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
