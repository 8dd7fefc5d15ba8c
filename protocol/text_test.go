package protocol

import (
	"testing"

	"hubbub/protocol/testkit"
)

func TestSetText(t *testing.T) {
	tl := NewTimeline()
	say := func(label string, start, end float64) {
		tl.Apply(NewSpeakerEvent(TypeSpeakerStart, start, label))
		tl.Apply(NewSpeakerEvent(TypeSpeakerEnd, end, label))
	}
	say("A", 1, 2)
	say("A", 3, 4)
	say("B", 3.5, 5)
	before := tl.Snapshot()
	for _, turn := range []Turn{
		{Speaker: "A", Start: 3, End: 4, Text: "one"}, {Speaker: "B", Start: 3.5, End: 5, Text: "two"},
		{Speaker: "A", Start: 1, End: 1.5, Text: "no such turn"}, {Speaker: "C", Start: 1, End: 2, Text: "no such label"},
	} {
		tl.SetText(turn)
	}
	s := tl.Snapshot()
	if got := s.Lanes[0].Turns; got[0].Text != "" || got[1].Text != "one" || s.Texts != 2 {
		t.Errorf("%v, %d texts", got, s.Texts)
	}
	testkit.Equal(t, before.Lanes[0].Turns[1].Text, "", "an older snapshot has")
	a := testkit.Must(Annotations{}.Merge("B", "A"))(t)
	if got := a.Speakers(s); len(got) != 1 || got[0].Turns[1].Text != "one two" {
		t.Errorf("after a merge: %+v", got)
	}
	tl.SetText(Turn{Speaker: "A", Start: 1, End: 2, Text: "three"})
	testkit.Equal(t, s.Lanes[0].Turns[0].Text, "", "a snapshot between two texts has")
	if n := testing.AllocsPerRun(10, func() { tl.SetText(Turn{Speaker: "A", Start: 3, End: 4, Text: "four"}) }); n != 0 {
		t.Errorf("without a snapshot between, a text copies the lane: %v allocations", n)
	}
}
