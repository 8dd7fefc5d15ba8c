package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/voiceprint"
)

// comparison is one speaker of a session at one time beside the people who are
// enrolled for it.
type comparison struct {
	x      []voiceprint.Calibration // voiceprint.Features for each of the people
	who    int                      // who of them it is, -1 = a stranger
	weight float64
}

// calibrateAt is the speech of a speaker, in seconds, at which it is compared.
var calibrateAt = []float64{1.2, 1.6, 2, 2.5, 3.2, 4, 5, 6.5, 8, 10, 13, 16, 20, 30}

// calibrate learns a voiceprint.Calibration and prints it with its reliability.
func (e *enrolment) calibrate(out io.Writer) error {
	all := e.comparisons()
	w := regress(all)
	numbers := strings.ReplaceAll(strings.Trim(fmt.Sprintf("%.3f", w), "[]"), " ", ", ")
	fmt.Fprintf(out, "%d comparisons, %.4f nats each\nCalibration{%s}\n\n", len(all), crossEntropy(all, w), numbers)
	return reliability(out, all, w)
}

// crossEntropy is the mean of -log of the probability of who it is.
func crossEntropy(all []comparison, w voiceprint.Calibration) float64 {
	var sum, weight float64
	for _, c := range all {
		right, stranger := 0.0, 1.0
		for i, p := range c.probabilities(&w) {
			stranger -= p
			if i == c.who {
				right = p
			}
		}
		if c.who < 0 {
			right = stranger
		}
		sum -= c.weight * math.Log(max(right, 1e-12))
		weight += c.weight
	}
	return sum / weight
}

// reliability prints how often the most likely person is right, by confidence.
func reliability(out io.Writer, all []comparison, w voiceprint.Calibration) error {
	var right, weight [10]float64
	var count [10]int
	for _, c := range all {
		p := c.probabilities(&w)
		best := 0
		for i := range p {
			if p[i] > p[best] {
				best = i
			}
		}
		bin := min(int(10*p[best]), 9)
		count[bin]++
		weight[bin] += c.weight
		if best == c.who {
			right[bin] += c.weight
		}
	}
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "confidence\tright %\tcomparisons\t\n")
	for i := range count {
		fmt.Fprintf(tw, "%d to %d %%\t%s\t%d\t\n", 10*i, 10*i+10, percent(right[i], weight[i]), count[i])
	}
	return tw.Flush()
}

func percent(part, whole float64) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", 100*part/whole)
}

// probabilities are those of the people.
func (c *comparison) probabilities(w *voiceprint.Calibration) []float64 {
	p := make([]float64, len(c.x))
	for i, x := range c.x {
		p[i] = w.LogOdds(x)
	}
	voiceprint.Probabilities(p)
	return p
}

// clusterVoices runs the clustering over a meeting. It returns the centroids of each
// speaker at the durations of calibrateAt, and for each speaker the seconds shared
// with each person of the reference.
func clusterVoices(w *windows) (centroids [clustering.MaxSpeakers][]clustering.TimedEmbedding, shared [clustering.MaxSpeakers]map[string]float64) {
	c := clustering.New(clustering.Default(), clustering.MaxSpeakers)
	for k := range shared {
		shared[k] = map[string]float64{}
	}
	const lag = 150 // frames
	committed := 0
	for _, due := range w.Due {
		c.Add(due.Window)
		for k := range c.Speakers() {
			if s := c.Centroid(due.Window, k); len(centroids[k]) < len(calibrateAt) && s.Duration >= calibrateAt[len(centroids[k])] {
				centroids[k] = append(centroids[k], s)
			}
		}
		end := due.First + len(due.SpeechProbability) - lag
		if end <= committed {
			continue
		}
		for i, active := range c.Activity(committed, nil)[:end-committed] {
			at := float64(committed+i) * clustering.FrameSeconds
			for _, t := range w.rec.ref {
				if t.Start <= at && at < t.End {
					addActive(&shared, active, t.Speaker)
				}
			}
		}
		committed = end
		c.Discard(committed)
	}
	return centroids, shared
}

// addActive adds one frame of a person to the speakers that are active in it.
func addActive(shared *[clustering.MaxSpeakers]map[string]float64, active uint8, person string) {
	for k := range shared {
		if active>>k&1 != 0 {
			shared[k][person] += clustering.FrameSeconds
		}
	}
}

// mainPerson is the person with most of the seconds, these, and those of all people.
func mainPerson(seconds map[string]float64) (person string, most, total float64) {
	for name, s := range seconds {
		total += s
		if s > most {
			person, most = name, s
		}
	}
	return person, most, total
}

// comparisons compares the speakers of all meetings with the people who are
// enrolled for them. For each number of enrolled people, those of an enrolled
// person and those of a stranger weigh the same.
func (e *enrolment) comparisons() (all []comparison) {
	type group struct {
		size     string
		stranger bool
	}
	groups, total := []group{}, map[group]float64{}
	for i := range e.meetings {
		w := &e.meetings[i]
		centroids, shared := clusterVoices(w)
		for _, size := range enrolledSizes {
			people := e.of(w.rec.name, size)
			for k, list := range centroids {
				person, most, spoken := mainPerson(shared[k])
				if person == "" || most < 0.7*spoken { // of several people
					continue
				}
				who := slices.IndexFunc(people, func(p voiceprint.Person) bool { return p.Label == person })
				for j := range list {
					g := group{size, who < 0}
					groups, total[g] = append(groups, g), total[g]+1
					all = append(all, comparison{x: featuresOf(&list[j], people), who: who})
				}
			}
		}
	}
	for i := range all {
		all[i].weight = 1 / total[groups[i]]
	}
	return all
}

// featuresOf compares a speaker with people.
func featuresOf(s *clustering.TimedEmbedding, people []voiceprint.Person) (x []voiceprint.Calibration) {
	scores, cohortSimilarity := voiceprint.Scores(&s.Embedding, people, nil)
	for i, score := range scores {
		x = append(x, voiceprint.Features(score, s.Duration, people[i].Voiceprint.Seconds(), cohortSimilarity))
	}
	return x
}

// regress is a logistic regression by Newton's method with a small ridge.
func regress(all []comparison) (w voiceprint.Calibration) {
	for range 50 {
		var grad voiceprint.Calibration
		var hess hessian
		for i := range hess {
			hess[i][i] = 1e-6
			grad[i] = -1e-6 * w[i]
		}
		for i := range all {
			all[i].derive(&w, &grad, &hess)
		}
		step := solve(hess, grad)
		for i := range w {
			w[i] += step[i]
		}
		if slices.Max(step[:]) < 1e-8 && slices.Min(step[:]) > -1e-8 {
			break
		}
	}
	return w
}

// hessian are the second derivatives for a Calibration, negated.
type hessian [len(voiceprint.Calibration{})]voiceprint.Calibration

// derive adds the derivatives of a comparison's log-likelihood.
func (c *comparison) derive(w, grad *voiceprint.Calibration, hess *hessian) {
	var mean voiceprint.Calibration
	for n, p := range c.probabilities(w) {
		x := &c.x[n]
		for i := range w {
			mean[i] += p * x[i]
			for j := range w {
				hess[i][j] += c.weight * p * x[i] * x[j]
			}
		}
	}
	for i := range w {
		grad[i] -= c.weight * mean[i]
		if c.who >= 0 {
			grad[i] += c.weight * c.x[c.who][i]
		}
		for j := range w {
			hess[i][j] -= c.weight * mean[i] * mean[j]
		}
	}
}

// solve solves a x = b for a symmetric positive definite a.
func solve(a hessian, b voiceprint.Calibration) (x voiceprint.Calibration) {
	for i := range a {
		for j := i + 1; j < len(a); j++ {
			f := a[j][i] / a[i][i]
			for k := i; k < len(a); k++ {
				a[j][k] -= f * a[i][k]
			}
			b[j] -= f * b[i]
		}
	}
	for i := len(a) - 1; i >= 0; i-- {
		x[i] = b[i]
		for k := i + 1; k < len(a); k++ {
			x[i] -= a[i][k] * x[k]
		}
		x[i] /= a[i][i]
	}
	return x
}
