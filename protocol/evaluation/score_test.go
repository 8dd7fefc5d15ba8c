package evaluation

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

func TestScoreReproducesPublishedFigures(t *testing.T) {
	dir := "../../../shared/speech/scoring"
	if _, err := os.Stat(dir); err != nil {
		t.Skip("needs ../shared beside the repo")
	}
	ref := read(t, filepath.Join(dir, "AMI-test-only_words.rttm"), protocol.ReadRTTM)
	uem := read(t, filepath.Join(dir, "AMI-test.uem"), protocol.ReadUEM)
	// diart on the AMI test set, by latency: the project's published outputs, and
	// their scores by NIST's conventions.
	published := []struct {
		latency                string
		strict, collar, single float64
	}{
		{"0.5", 34.08, 26.66, 23.00},
		{"1.0", 30.40, 23.51, 19.65},
		{"5.0", 27.46, 21.04, 16.83},
	}
	for _, p := range published {
		hyp := read(t, filepath.Join(dir, "diart-"+p.latency+"s-AMI.rttm"), protocol.ReadRTTM)
		for _, c := range []struct {
			o    Options
			want float64
		}{
			{Options{}, p.strict},
			{Options{Collar: 0.25}, p.collar},
			{Options{Collar: 0.25, SkipOverlap: true}, p.single},
		} {
			report := testkit.Must(Score(ref, hyp, uem, c.o))(t)
			testkit.Equal(t, len(report.Files), 16, "files scored")
			if got := 100 * report.Total.DER; math.Abs(got-c.want) > 0.01 {
				t.Errorf("latency %s, %+v: DER %.3f, published %.2f", p.latency, c.o, got, c.want)
			}
		}
	}
}

func turn(file, speaker string, start, end float64) protocol.FileTurn {
	return protocol.FileTurn{File: file, Turn: protocol.Turn{Speaker: speaker, Start: start, End: end}}
}

// regions are regions of file f, by their starts and ends.
func regions(times ...float64) (all []protocol.UEMRegion) {
	for i := 0; i < len(times); i += 2 {
		all = append(all, protocol.UEMRegion{File: "f", Start: times[i], End: times[i+1]})
	}
	return all
}

// turns reads "A 0 10, B 5 7" as turns of file f.
func turns(text string) []protocol.FileTurn {
	var all []protocol.FileTurn
	for field := range strings.SplitSeq(text, ",") {
		var t protocol.FileTurn
		if n, _ := fmt.Sscan(field, &t.Speaker, &t.Start, &t.End); n == 3 {
			t.File = "f"
			all = append(all, t)
		}
	}
	return all
}

func TestScoreByHand(t *testing.T) {
	whole := regions(0, 100)
	for _, c := range []struct {
		name                           string
		ref, hyp                       string
		uem                            []protocol.UEMRegion
		o                              Options
		total, miss, false_, confusion float64 // seconds
	}{
		{"perfect but for the names", "A 0 10, B 10 20", "x 10 20, y 0 10", nil, Options{}, 20, 0, 0, 0},
		{"nothing found", "A 0 10", "", nil, Options{}, 10, 10, 0, 0},
		{"late and long", "A 0 10", "x 1 12", nil, Options{}, 10, 1, 2, 0},
		{"false alarm outside the reference counts", "A 0 10", "x 0 10, y 50 53", nil, Options{}, 10, 0, 3, 0},
		{"but not outside the region", "A 0 10", "x 0 10, y 50 53", regions(0, 51), Options{}, 10, 0, 1, 0},
		{"one label for two people", "A 0 10, B 10 16", "x 0 16", nil, Options{}, 16, 0, 0, 6},
		{"one person split", "A 0 10", "x 0 7, y 7 10", nil, Options{}, 10, 0, 0, 3},
		{"the mapping is the best of the whole, not greedy", "A 0 10, B 20 29", "x 0 5, x 20 29, y 5 10", nil, Options{}, 19, 0, 0, 5},
		{"overlap counts for each speaker", "A 0 10, B 5 10", "x 0 10", nil, Options{}, 15, 5, 0, 0},
		{"overlap found where there is none", "A 0 10", "x 0 10, y 2 4", nil, Options{}, 10, 0, 2, 0},
		{"overlap skipped", "A 0 10, B 5 10", "x 0 4", nil, Options{SkipOverlap: true}, 5, 1, 0, 0},
		{"collar on each side", "A 10 20", "x 10.25 19.5", whole, Options{Collar: 0.25}, 9.5, 0.25, 0, 0},
		{"collar also outside the turn", "A 10 20", "x 9.5 20.25", whole, Options{Collar: 0.25}, 9.5, 0, 0.25, 0},
		{"no collar where turns of one speaker touch", "A 0 5, A 5 10", "x 0 4, x 6 10", nil, Options{Collar: 0.5}, 9, 2, 0, 0},
		{"overlapping turns of one label are one", "A 0 10", "x 0 6, x 4 10", nil, Options{}, 10, 0, 0, 0},
		{"regions apart", "A 0 10", "", regions(0, 2, 4, 5, 4.5, 6), Options{}, 4, 4, 0, 0},
		{"the mapping is that of the scored speech", "A 0 10", "x 0 4, y 5 9, x 9 10", whole, Options{Collar: 1}, 8, 1, 0, 3},
		{"the mapping is that of the region", "A 0 10, B 10 20", "x 0 10, x 10 11, y 11 20", regions(10, 12), Options{}, 2, 0, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			report := testkit.Must(Score(turns(c.ref), turns(c.hyp), c.uem, c.o))(t)
			got := report.Total
			want := Result{Total: c.total, Seconds: Seconds{c.miss, c.false_, c.confusion}}
			want.divide()
			if !near(got.Total, want.Total) || !near(got.Seconds.Miss, c.miss) ||
				!near(got.Seconds.FalseAlarm, c.false_) || !near(got.Seconds.Confusion, c.confusion) || !near(got.DER, want.DER) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestScoreOverFiles(t *testing.T) {
	ref := []protocol.FileTurn{turn("a", "A", 0, 10), turn("b", "A", 0, 30)}
	hyp := []protocol.FileTurn{turn("a", "x", 0, 5), turn("c", "x", 0, 2)}
	report, err := Score(ref, hyp, nil, Options{})
	testkit.NoError(t, err)
	if n := len(report.Files); n != 3 {
		t.Fatalf("%d files, want 3", n)
	}
	for i, want := range []FileResult{
		{File: "a", Result: Result{DER: 0.5, Miss: 0.5, Total: 10}},
		{File: "b", Result: Result{DER: 1, Miss: 1, Total: 30}},      // not in the hypothesis: all missed
		{File: "c", Result: Result{DER: 1, FalseAlarm: 1, Total: 0}}, // not in the reference: all false alarm
	} {
		got := report.Files[i]
		if got.File != want.File || !near(got.DER, want.DER) || !near(got.Miss, want.Miss) || !near(got.FalseAlarm, want.FalseAlarm) || !near(got.Total, want.Total) {
			t.Errorf("file %d: %+v, want %+v", i, got, want)
		}
	}
	if total := report.Total; !near(total.DER, 37.0/40) || !near(total.Miss, 35.0/40) || !near(total.FalseAlarm, 2.0/40) {
		t.Errorf("all files: %+v", total)
	}

	report, err = Score(ref, hyp, []protocol.UEMRegion{{File: "b", Start: 0, End: 30}}, Options{})
	if err != nil || len(report.Files) != 1 || report.Files[0].File != "b" {
		t.Errorf("with a UEM that names b: %+v, %v", report, err)
	}
}

func TestScoreRefusesInvalidInput(t *testing.T) {
	good := turns("A 0 1")
	for _, c := range []struct {
		name string
		ref  []protocol.FileTurn
		uem  []protocol.UEMRegion
	}{
		{"no reference", nil, nil},
		{"a UEM of other files", good, []protocol.UEMRegion{{File: "g", Start: 0, End: 1}}},
		{"a UEM without regions", good, []protocol.UEMRegion{}},
	} {
		if _, err := Score(c.ref, good, c.uem, Options{}); err == nil {
			t.Errorf("%s: no error", c.name)
		}
	}
}

// The sweep agrees with counting on a fine grid, whatever the turns.
func TestScoreAgreesWithCounting(t *testing.T) {
	draw := func(t *rapid.T, names, label string) []protocol.FileTurn {
		var all []protocol.FileTurn
		for range rapid.IntRange(1, 8).Draw(t, label) {
			start := rapid.IntRange(0, 60).Draw(t, "start")
			all = append(all, turn("f", string(names[rapid.IntRange(0, len(names)-1).Draw(t, "who")]),
				float64(start), float64(start+rapid.IntRange(1, 20).Draw(t, "length"))))
		}
		return all
	}
	rapid.Check(t, func(t *rapid.T) {
		ref, hyp := draw(t, "ABC", "turns"), draw(t, "wxyz", "found")
		report := testkit.Must(Score(ref, hyp, regions(5, 70), Options{}))(t)
		talks := func(turns []protocol.FileTurn, at float64) (who map[string]bool) {
			who = map[string]bool{}
			for _, u := range turns {
				if u.Start < at && at < u.End {
					who[u.Speaker] = true
				}
			}
			return who
		}
		var total, wrong float64
		for second := 5; second < 70; second++ {
			at := float64(second) + 0.5
			truth, found := talks(ref, at), talks(hyp, at)
			right := 0
			for s := range truth {
				if l := report.Files[0].Mapping[s]; l != "" && found[l] {
					right++
				}
			}
			total += float64(len(truth))
			wrong += float64(max(len(truth), len(found)) - right)
		}
		if got := report.Total.Seconds; !near(report.Total.Total, total) || !near(got.Miss+got.FalseAlarm+got.Confusion, wrong) {
			t.Fatalf("%+v, counted %v of %v s wrong", report.Total, wrong, total)
		}
	})
}

// read reads a file of turns or regions.
func read[T any](t testing.TB, path string, in func(io.Reader) ([]T, error)) []T {
	t.Helper()
	file := testkit.Must(os.Open(path))(t)
	defer file.Close()
	return testkit.Must(in(file))(t)
}
