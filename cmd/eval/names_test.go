package main

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/evaluation"
	"hubbub/localserver/engine/voiceprint"
)

// TestTheRowOfNames: shares and the median time, and a dash where the meetings have
// no enrolled people or no strangers.
func TestTheRowOfNames(t *testing.T) {
	some := recognised{}
	some.compare(
		[]evaluation.Turn{{Speaker: "Ann", Start: 0, End: 4}, {Speaker: "Ben", Start: 4, End: 6}, {Speaker: "Cal", Start: 6, End: 8}},
		[]evaluation.Turn{{Speaker: "Ann", Start: 0, End: 3}, {Speaker: "Ben", Start: 3, End: 4}, {Speaker: "SPEAKER_02", Start: 4, End: 7}, {Speaker: "Ann", Start: 7, End: 8}},
		map[string]bool{"Ann": true, "Ben": true}, map[string]float64{"Ann": 2.5})
	for want, r := range map[string]recognised{
		"m|2|80|50.0|16.7|50.0|never|0.0|0.0|": some,
		"m|2|80|–|–|–|–|0.0|0.0|":              {},
		"m|2|80|–|–|–|2.5 s|0.0|0.0|":          {delays: []float64{math.Inf(1), 1, 2.5}},
	} {
		var b strings.Builder
		r.row(&b, "m", "2", "80")
		if got := strings.ReplaceAll(b.String(), "\t", "|"); got != want+"\n" {
			t.Errorf("%s instead of %s", got, want)
		}
	}
}

// TestTheCalibrationFindsTheOdds learns from comparisons of which the log odds are
// known: 4 times the score, less 2.
func TestTheCalibrationFindsTheOdds(t *testing.T) {
	truth := voiceprint.Calibration{-2, 4}
	var all []comparison
	for i := range 400 {
		score := func(k int) float64 { return float64((i*(37+k)+11*k)%101)/50 - 0.5 }
		people := []voiceprint.Calibration{voiceprint.Features(score(0), 10, 15), voiceprint.Features(score(1), 4, 15)}
		c := comparison{x: people}
		p := c.probabilities(&truth)
		for who, weight := range []float64{p[0], p[1], 1 - p[0] - p[1]} {
			if who == 2 {
				who = -1
			}
			all = append(all, comparison{x: people, who: who, weight: weight})
		}
	}
	got := regress(all)
	for i := range got {
		if math.Abs(got[i]-truth[i]) > 0.01 {
			t.Errorf("%.3f instead of %.3f", got, truth)
			break
		}
	}
}

// TestTheCohortHasNobody: what is drawn lies where the people are, but none of it is
// as near to a person as another recording of the person would be.
func TestTheCohortHasNobody(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var people []clustering.Embedding
	for range 80 {
		var e clustering.Embedding
		for k := range e {
			e[k] = float32(r.NormFloat64() + 1)
		}
		e, _ = clustering.Centroid([]clustering.Speech{{Embedding: e, Duration: 1}})
		people = append(people, e)
	}
	nearest := 0.0
	for _, e := range drawCohort(people) {
		mean := 0.0
		for i := range people {
			x := people[i].Dot(&e)
			mean += x / float64(len(people))
			nearest = max(nearest, x)
		}
		if mean < 0.35 || mean > 0.65 { // two people have 0.5
			t.Errorf("an embedding has the mean cosine %.2f with the people", mean)
		}
	}
	if nearest > 0.85 {
		t.Errorf("an embedding has the cosine %.2f with a person", nearest)
	}
}
