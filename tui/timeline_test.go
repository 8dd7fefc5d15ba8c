package tui

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

func TestOverlapIsMarkedOnTheRule(t *testing.T) {
	s := display.State{Position: 20, Sent: 20, Conn: display.Open, Timeline: protocol.Snapshot{Decided: 18, Lanes: []protocol.Lane{
		{Speaker: "A", Turns: []protocol.Turn{{Speaker: "A", Start: 2, End: 10}}, Talk: 8},
		{Speaker: "B", Turns: []protocol.Turn{{Speaker: "B", Start: 6, End: 14}}, Talk: 8},
	}}}
	m := testModel(s, 80, 24)
	l, w := m.layout(), m.window()
	row := []rune(screenRows(m)[l.axisY])
	for at, want := range map[float64]bool{4: false, 8: true, 12: false} {
		testkit.Equal(t, string(row[l.gutter+w.column(at)]) == "━", want, "at", at, "s overlap is marked")
	}
	press(m, "1", "x")
	if strings.Contains(screenRows(m)[l.axisY], "━") {
		t.Error("who is muted overlaps")
	}
}

// The levels of a window are those of its seconds, whatever the zoom.
func TestLoudness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "n")
		levels := tuitest.Levels[:n]
		from := rapid.Float64Range(-5, 40).Draw(t, "from")
		to := from + rapid.Float64Range(0.01, 30).Draw(t, "length")
		got, ok := levelBetween(levels, from, to)
		// Chunks that lie within for sure, and those that may.
		var within, around display.Level
		quiet := float32(1)
		for i, l := range levels {
			if at := float64(i)/10 + 0.05; at > from-0.11 && at < to+0.11 {
				around.RMS, around.Peak, quiet = max(around.RMS, l.RMS), max(around.Peak, l.Peak), min(quiet, l.RMS)
				if at > from+0.06 && at < to-0.06 {
					within.Peak = max(within.Peak, l.Peak)
				}
			}
		}
		const hair = 1e-6
		if ok && (got.RMS < quiet-hair || got.RMS > around.RMS+hair || got.Peak < within.Peak || got.Peak > around.Peak) || !ok && within.Peak > 0 {
			t.Fatalf("%v to %v of %d: %v, want peaks of %v to %v and an RMS of %v to %v", from, to, n, got, within.Peak, around.Peak, quiet, around.RMS)
		}
	})
}

// A match that arrives without another turn is shown.
func TestLateMatchIsShown(t *testing.T) {
	s := tuitest.State(tuitest.Turns(4, 200, 7), 75.2, 1)
	m := testModel(s, 80, 24)
	_ = m.View()
	s.Timeline.Lanes = append([]protocol.Lane(nil), s.Timeline.Lanes...)
	s.Timeline.Lanes[2].Match = "Sam"
	s.Position += 0.1
	m.later(s)
	if view := string(plainScreen(m)); !strings.Contains(view, "≈Sam") {
		t.Errorf("the match is missing:\n%s", view)
	}
}
