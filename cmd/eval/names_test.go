package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// TestTheRowOfNames: rates and the median time, and a dash where the meetings have
// no enrolled people or no strangers.
func TestTheRowOfNames(t *testing.T) {
	some := recognised{Shares: [rates]share{withNames: {1, 8}, withoutNames: {2, 8}}}
	turn := func(speaker string, start, end float64) protocol.FileTurn {
		return protocol.FileTurn{Turn: protocol.Turn{Speaker: speaker, Start: start, End: end}}
	}
	some.compare(
		[]protocol.FileTurn{turn("Ann", 0, 4), turn("Ben", 4, 6), turn("Cal", 6, 8)},
		[]protocol.FileTurn{turn("Ann", 0, 3), turn("Ben", 3, 4), turn("SPEAKER_02", 4, 7), turn("Ann", 7, 8)},
		map[string]bool{"Ann": true, "Ben": true}, map[string]float64{"Ann": 2.5})
	for want, r := range map[string]recognised{
		"m 2 80 never 50.0 16.7 50.0 12.5 25.0": some,
		"m 2 80 – – – – – –":                    {},
		"m 2 80 2.5 s – – – – –":                {delays: []float64{math.Inf(1), 1, 2.5}},
	} {
		var b strings.Builder
		testkit.NoError(t, writeNames(&b, []namesRow{{"m", "2", "80", map[string]recognised{"one": r}}}))
		testkit.Equal(t, lastLine(b.String()), want)
	}
}

// lastLine is the last line of a table, with one space between its columns.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(strings.Fields(lines[len(lines)-1]), " ")
}

// TestErrorsByMeeting: the rate of all meetings is not the mean of theirs, and its
// standard error is that of a jackknife over the meetings, nearly. A difference is that
// of the same meetings, so it has an error of its own.
func TestErrorsByMeeting(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	now, earlier := namesRow{Each: map[string]recognised{}}, namesRow{Each: map[string]recognised{"gone": {}}}
	var names []string
	var all, before share
	for i := range 60 {
		whole := 60 + 60*r.Float64()
		part := whole * (0.6 + 0.3*r.Float64())
		was := part - whole*(0.02+0.01*r.Float64())
		names = append(names, string(rune('A'+i)))
		now.Each[names[i]] = recognised{Shares: [rates]share{right: {part, whole}}}
		earlier.Each[names[i]] = recognised{Shares: [rates]share{right: {was, whole}}}
		all.Part, all.Whole = all.Part+part, all.Whole+whole
		before.Part += was
	}
	mean, err := meanError(now.linearised(right, names))
	jackknife, n := 0.0, float64(len(names))
	for _, name := range names {
		s := now.Each[name].Shares[right]
		d := (all.Part-s.Part)/(all.Whole-s.Whole) - mean
		jackknife += d * d * (n - 1) / n
	}
	jackknife = math.Sqrt(jackknife)
	if math.Abs(mean-all.Part/all.Whole) > 1e-9 || math.Abs(err/jackknife-1) > 0.03 {
		t.Errorf("%.4f ± %.5f instead of %.4f ± %.5f", mean, err, all.Part/all.Whole, jackknife)
	}
	var b strings.Builder
	testkit.NoError(t, writeNamesAgainst(&b, []namesRow{now}, namesTable{Rows: []namesRow{earlier}}))
	want := fmt.Sprintf("60 %+.1f ± 0.0 – – – –", 100*(all.Part-before.Part)/all.Whole)
	testkit.Equal(t, lastLine(b.String()), want)
}

// TestNamesAreMeasured: a meeting in two recording conditions is one meeting, and a run
// less itself is nothing.
func TestNamesAreMeasured(t *testing.T) {
	talk := filepath.Join(makeSet(t), "real-dev")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "enrolled.json"), `{"talk": {"2": ["A"], "8": ["A"], "50": ["A"]}}`)
	for _, folder := range []string{"clean", "far"} {
		testkit.NoError(t, os.CopyFS(filepath.Join(dir, folder), os.DirFS(talk)))
	}
	args := []string{"--enrolment", dir, "--people", talk, "--windows", filepath.Join(t.TempDir(), "windows"),
		"--meetings", filepath.Join(dir, "clean") + "," + filepath.Join(dir, "far")}
	testkit.NoError(t, os.Link(filepath.Join(talk, "talk.wav"), filepath.Join(talk, "A.wav")))
	text := testkit.Must(eval(t, append(args, "--json")...))(t)
	var table namesTable
	testkit.NoError(t, json.Unmarshal([]byte(text), &table))
	if len(table.Rows) != 3*3*2 {
		t.Fatalf("%d rows", len(table.Rows))
	}
	one, both := table.Rows[1], table.Rows[5]
	if one.Meetings != "clean" || both.Meetings != "all" || both.Threshold != "perfect" || len(both.Each) != 1 {
		t.Fatalf("%+v and %+v", one, both)
	}
	a, b := one.Each["talk"].Shares[right], both.Each["talk"].Shares[right]
	if a.Whole < 3 || a.Part < 0.9*a.Whole || math.Abs(b.Whole-2*a.Whole) > 1e-9 {
		t.Errorf("%+v in one condition, %+v in two", a, b)
	}
	path := filepath.Join(dir, "earlier.json")
	write(t, path, text)
	text = testkit.Must(eval(t, append(args, "--against", path)...))(t)
	if want := "all 50 perfect 1 +0.0 +0.0 – +0.0 +0.0"; !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
		t.Errorf("no %q in\n%s", want, text)
	}
	write(t, path, "[]")
	if _, err := eval(t, append(args, "--against", path)...); err == nil || !strings.Contains(err.Error(), "earlier.json") {
		t.Errorf("a file of another mode: %v", err)
	}
}

// TestTheCalibrationFindsTheOdds learns from comparisons of which the log odds are
// known: 4 times the score, less 2, and half the similarity to the cohort.
func TestTheCalibrationFindsTheOdds(t *testing.T) {
	truth := voiceprint.Calibration{-2, 4, 0, 0, 0.5, 0}
	var all []comparison
	for i := range 400 {
		score := func(k int) float64 { return float64((i*(37+k)+11*k)%101)/50 - 0.5 }
		similarity := float64(i%7) / 10
		people := []voiceprint.Calibration{voiceprint.Features(score(0), 10, 15, similarity), voiceprint.Features(score(1), 4, 15, similarity)}
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
		people = append(people, clustering.Unit((*[clustering.Dim]float32)(&e)))
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
