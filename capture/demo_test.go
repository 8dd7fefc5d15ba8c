package capture

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"hubbub/protocol/testkit"
)

type demoTurn struct {
	speaker    string
	start, end float64
}

// demoTurns reads demo/demo.rttm.
func demoTurns(t testing.TB) []demoTurn {
	t.Helper()
	b := testkit.Must(os.ReadFile("demo/demo.rttm"))(t)
	var turns []demoTurn
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) != 10 || f[0] != "SPEAKER" || f[1] != "demo" {
			t.Fatalf("not a line of RTTM: %q", line)
		}
		start, err1 := strconv.ParseFloat(f[3], 64)
		length, err2 := strconv.ParseFloat(f[4], 64)
		if err1 != nil || err2 != nil || length <= 0 {
			t.Fatalf("not a turn: %q", line)
		}
		if n := len(turns); n > 0 && turns[n-1].start > start {
			t.Fatal("the turns are not in order")
		}
		turns = append(turns, demoTurn{f[7], start, start + length})
	}
	return turns
}
