package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/voiceprint"
)

// comparison is one speaker of a session at one time beside one voiceprint.
type comparison struct {
	x      voiceprint.Calibration // voiceprint.Features
	same   bool
	weight float64
}

// calibrateAt is the speech of a speaker, in seconds, at which it is compared.
var calibrateAt = []float64{1.2, 1.6, 2, 2.5, 3.2, 4, 5, 6.5, 8, 10, 13, 16, 20, 30}

// calibrate learns a voiceprint.Calibration by logistic regression and prints it
// with a reliability table. Pairs of one person and of two count the same.
func (e *enrolment) calibrate(out io.Writer) error {
	var all []comparison
	for i := range e.meetings {
		all = append(all, e.compare(&e.meetings[i])...)
	}
	var n [2]float64
	index := map[bool]int{true: 1}
	for _, c := range all {
		n[index[c.same]]++
	}
	for i := range all {
		all[i].weight = 1 / n[index[all[i].same]]
	}
	w := regress(all)
	fmt.Fprintf(out, "%.0f pairs of one person, %.0f of two\nCalibration{%.3f, %.3f, %.3f, %.3f}\n\n", n[1], n[0], w[0], w[1], w[2], w[3])
	fmt.Fprintln(out, "confidence   right   pairs (at even prior odds)")
	for low := 0.0; low < 0.999; low += 0.1 {
		var right, total, sum float64
		count := 0
		for _, c := range all {
			if p := sigmoid(dot(w, c.x)); p >= low && p < low+0.1+1e-9 {
				count++
				total += c.weight
				sum += p * c.weight
				if c.same {
					right += c.weight
				}
			}
		}
		fmt.Fprintf(out, "%3.0f to %3.0f %%  %5.1f %%  %d\n", 100*low, 100*low+10, 100*right/total, count)
	}
	return nil
}

// voiceState is what the clustering knows of a speaker's voice at one time.
type voiceState struct {
	centroid clustering.Embedding
	duration float64 // seconds
}

// clusterVoices runs the clustering over a meeting. It returns the state of each
// speaker at the durations of calibrateAt, and for each speaker the seconds shared
// with each person of the reference.
func clusterVoices(w *windows) (states [clustering.MaxSpeakers][]voiceState, shared [clustering.MaxSpeakers]map[string]float64) {
	c := clustering.New(clustering.Default(), clustering.MaxSpeakers)
	for k := range shared {
		shared[k] = map[string]float64{}
	}
	const lag = 150 // frames
	committed := 0
	for _, step := range w.steps {
		if step == nil {
			continue
		}
		c.Add(step)
		for k := range c.Speakers() {
			if centroid, duration := c.Voice(step, k); len(states[k]) < len(calibrateAt) && duration >= calibrateAt[len(states[k])] {
				states[k] = append(states[k], voiceState{centroid, duration})
			}
		}
		end := step.First + len(step.Speech) - lag
		if end <= committed {
			continue
		}
		for i, active := range c.Activity(committed, nil)[:end-committed] {
			at := float64(committed+i) * frameTime
			for _, t := range w.rec.ref {
				if t.Start <= at && at < t.End {
					addActive(&shared, active, t.Speaker)
				}
			}
		}
		committed = end
		c.Discard(committed)
	}
	return states, shared
}

// addActive adds one frame of a person to the speakers that are active in it.
func addActive(shared *[clustering.MaxSpeakers]map[string]float64, active uint8, person string) {
	for k := range shared {
		if active>>k&1 != 0 {
			shared[k][person] += frameTime
		}
	}
}

// mainPerson is the person with most of the seconds; "" when nobody has 70 % of
// them.
func mainPerson(seconds map[string]float64) string {
	who, most, total := "", 0.0, 0.0
	for name, s := range seconds {
		total += s
		if s > most {
			who, most = name, s
		}
	}
	if most < 0.7*total {
		return ""
	}
	return who
}

// compare compares the speakers of a meeting with all voiceprints.
func (e *enrolment) compare(w *windows) (out []comparison) {
	var people []voiceprint.Person
	for _, name := range slices.Sorted(maps.Keys(e.people)) {
		people = append(people, voiceprint.Person{Label: name, Voiceprint: e.people[name]})
	}
	states, shared := clusterVoices(w)
	for k, list := range states {
		who := mainPerson(shared[k])
		if who == "" {
			continue
		}
		for _, s := range list {
			for i, x := range voiceprint.Scores(&s.centroid, people, nil) {
				p := people[i]
				out = append(out, comparison{x: voiceprint.Features(x, s.duration, p.Voiceprint.Seconds()), same: p.Label == who})
			}
		}
	}
	return out
}

// writeCohort writes the embeddings of all people as those of a cohort.
func (e *enrolment) writeCohort(path string) error {
	var raw []byte
	for _, name := range slices.Sorted(maps.Keys(e.people)) {
		raw = voiceprint.AppendCohort(raw, e.people[name])
	}
	return os.WriteFile(path, raw, 0o644)
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func dot(w, x voiceprint.Calibration) (sum float64) {
	for i := range w {
		sum += w[i] * x[i]
	}
	return sum
}

// regress is a logistic regression by Newton's method with a small ridge.
func regress(all []comparison) (w voiceprint.Calibration) {
	for range 50 {
		var grad voiceprint.Calibration
		var hess [len(voiceprint.Calibration{})]voiceprint.Calibration
		for i := range hess {
			hess[i][i] = 1e-6
			grad[i] = -1e-6 * w[i]
		}
		for _, c := range all {
			p := sigmoid(dot(w, c.x))
			y := 0.0
			if c.same {
				y = 1
			}
			for i := range w {
				grad[i] += c.weight * (y - p) * c.x[i]
				for j := range w {
					hess[i][j] += c.weight * p * (1 - p) * c.x[i] * c.x[j]
				}
			}
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

// solve solves a x = b for a symmetric positive definite a.
func solve(a [len(voiceprint.Calibration{})]voiceprint.Calibration, b voiceprint.Calibration) (x voiceprint.Calibration) {
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
