package tui

import (
	"testing"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

func TestMinimapShowsWhereSpeechWas(t *testing.T) {
	s := display.State{Position: 100, Sent: 100, Conn: display.Open, Length: 100, Timeline: protocol.Snapshot{Decided: 98, Lanes: []protocol.Lane{
		{Speaker: "A", Turns: []protocol.Turn{{Speaker: "A", Start: 0, End: 20}}, Talk: 20},
		{Speaker: "B", Turns: []protocol.Turn{{Speaker: "B", Start: 15, End: 50}}, Talk: 35},
	}}}
	m := testModel(s, 124, 34)
	cells := mapCells(m.session(), 100)
	for i, want := range map[int]mapCell{0: {8, canvas.Speaker(0)}, 14: {8, canvas.Speaker(0)}, 30: {8, canvas.Speaker(1)}, 49: {8, canvas.Speaker(1)}, 50: {}, 99: {}} {
		testkit.Equal(t, cells[i], want, "cell", i, "is")
	}
}

func TestMinimapFollowsAnOpenTurn(t *testing.T) {
	s := display.State{Position: 10, Sent: 10, Conn: display.Open, Length: 100, Timeline: protocol.Snapshot{Decided: 5, Lanes: []protocol.Lane{
		{Speaker: "A", Open: true, OpenSince: 5},
	}}}
	m := testModel(s, 124, 34)
	if cells := mapCells(m.session(), 100); cells[8].height != 8 || cells[20].height != 0 {
		t.Errorf("at 10 s: %+v", cells[:25])
	}
	s.Position, s.Sent = 30, 30
	m.later(s)
	if cells := mapCells(m.session(), 100); cells[20].height != 8 {
		t.Errorf("at 30 s: %+v", cells[:35])
	}
}
