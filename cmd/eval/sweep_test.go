package main

import (
	"math"
	"strings"
	"testing"

	"hubbub/protocol/evaluation"
)

// TestDifferenceByRecording: each recording counts the same, however long.
func TestDifferenceByRecording(t *testing.T) {
	of := func(der, seconds float64, labels int) figures {
		result := evaluation.Result{DER: der, Miss: der, Total: seconds, Seconds: evaluation.Seconds{Miss: der * seconds}}
		return sum("", []outcome{{score: result,
			labels: evaluation.LabelReport{Speakers: 2, Labels: labels, Found: 2, Substantial: labels, CountError: labels - 2}}})
	}
	base := table{Sets: []figures{{EachRecording: []figures{of(0.2, 100, 2), of(0.3, 1000, 2)}}, {EachRecording: []figures{of(0.1, 10, 3)}}}}
	difference := func(t table) string {
		var w strings.Builder
		differenceRow(&w, "x", t.recordings(), base.recordings())
		return w.String()
	}
	if got := difference(base); !strings.HasPrefix(got, "x\t3\t+0.00 ± 0.00\t") || !strings.HasSuffix(got, "\t+0.00 ± 0.00\t+0\t+0\t+0\t\n") {
		t.Errorf("a table less itself: %q", got)
	}
	// DER differs by 2, 2 and -1 points; the objective by as much, and by 18 less for the
	// label too many that the last recording no longer has: 15 as 0.5 labels per
	// speaker, 3 as the difference to the number of speakers.
	other := table{Sets: []figures{{EachRecording: []figures{of(0.22, 100, 2), of(0.32, 1000, 2), of(0.09, 10, 2)}}}}
	if got := difference(other); !strings.HasPrefix(got, "x\t3\t+1.00 ± 1.00\t") || !strings.HasSuffix(got, "\t-5.00 ± 7.00\t+0\t-1\t+0\t\n") {
		t.Errorf("difference %q", got)
	}
	if m, e := meanError([]float64{1, 2, 3, 4}); m != 2.5 || math.Abs(e-0.6455) > 1e-4 {
		t.Errorf("mean %v ± %v, want 2.5 ± 0.6455", m, e)
	}
}
