package evaluation

import (
	"math"
	"testing"

	"hubbub/protocol"
)

func TestLabelsByHand(t *testing.T) {
	for _, c := range []struct {
		name     string
		ref, hyp string
		want     LabelReport
	}{
		{"one label each", "A 0 10, B 10 30", "x 0 10, y 10 30",
			LabelReport{Speakers: 2, Labels: 2, Found: 2, Substantial: 2, Matched: 30}},
		{"one person split in two", "A 0 10, B 10 30", "x 0 10, y 10 20, z 20 30",
			LabelReport{Speakers: 2, Labels: 3, Found: 2, Substantial: 3, CountError: 1, Switches: 1, Matched: 30}},
		{"less than a second is not substantial", "A 0 5", "x 0 4.2, y 4.2 5",
			LabelReport{Speakers: 1, Labels: 2, Found: 1, Substantial: 1, CountError: 1, Switches: 1, Matched: 5}},
		{"less than a tenth is not substantial", "A 0 30", "x 0 28, y 28 30",
			LabelReport{Speakers: 1, Labels: 2, Found: 1, Substantial: 1, CountError: 1, Switches: 1, Matched: 30}},
		{"two people under one label: one is lost, none is split", "A 0 10, B 10 30", "x 0 30",
			LabelReport{Speakers: 2, Labels: 1, Found: 2, Substantial: 2, Lost: 1, CountError: 1, Matched: 30}},
		{"never found", "A 0 10, B 10 30", "y 10 30",
			LabelReport{Speakers: 2, Labels: 1, Found: 1, Substantial: 1, Lost: 1, CountError: 1, Matched: 20}},
		{"half a second does not find a speaker", "A 0 10, B 10 30", "y 10 30, x 0 0.5",
			LabelReport{Speakers: 2, Labels: 2, Found: 1, Substantial: 1, Lost: 1, Matched: 20.5}},
		{"a label in silence is one too many", "A 0 10", "x 0 10, y 20 21",
			LabelReport{Speakers: 1, Labels: 2, Found: 1, Substantial: 1, CountError: 1, Matched: 10}},
		{"the other speaker of an overlap is no second label", "A 0 10, B 8 20", "x 0 10, y 8 20",
			LabelReport{Speakers: 2, Labels: 2, Found: 2, Substantial: 2, Matched: 18}},
		{"a second label on top is no switch, nor is a pause", "A 0 10, A 12 20", "x 0 10, y 4 6, x 12 20",
			LabelReport{Speakers: 1, Labels: 2, Found: 1, Substantial: 2, CountError: 1, Matched: 18}},
		{"an inaccurate turn boundary is no switch", "A 0 10, A 12 20, B 10 12", "x 0 9.7, y 9.7 12.4, x 12.4 20",
			LabelReport{Speakers: 2, Labels: 2, Found: 2, Substantial: 2, Matched: 20}},
		{"there and back are two switches", "A 0 30", "x 0 10, y 10 20, x 20 30",
			LabelReport{Speakers: 1, Labels: 2, Found: 1, Substantial: 2, CountError: 1, Switches: 2, Matched: 30}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Labels(turns(c.ref), turns(c.hyp), regions(0, 100))
			got.Matched = math.Round(got.Matched*1e6) / 1e6
			if got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestReturns(t *testing.T) {
	for _, c := range []struct {
		name          string
		ref, hyp      string
		returns, kept int
	}{
		{"the old label", "A 0 10, A 80 90", "x 0 10, x 80 90", 1, 1},
		{"a new one", "A 0 10, A 80 90", "x 0 10, y 80 90", 1, 0},
		{"away a minute and no more", "A 0 10, A 70 80", "x 0 10, y 70 80", 0, 0},
		{"the return is not matched: not counted", "A 0 10, A 80 90", "x 0 10, x 80 80.4", 0, 0},
		{"no label before: nothing to keep", "A 0 10, A 80 90", "x 80 90", 0, 0},
		{"the old label after two seconds", "A 0 10, A 80 90", "x 0 10, y 80 82, x 82 90", 1, 1},
		{"the old label too late", "A 0 10, A 80 120", "x 0 10, y 80 89, x 89 120", 1, 0},
		{"twice back", "A 0 10, A 80 82, A 83 90, A 200 210", "x 0 10, x 80 90, y 200 210", 2, 1},
		{"the label that held most before", "A 0 10, A 80 90", "y 0 4, x 4 10, x 80 90", 1, 1},
		{"others talking meanwhile", "A 0 10, B 10 80, A 80 90", "x 0 10, y 10 80, x 80 90", 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Labels(turns(c.ref), turns(c.hyp), nil)
			if got.Returns != c.returns || got.Kept != c.kept {
				t.Errorf("%d of %d kept, want %d of %d", got.Kept, got.Returns, c.kept, c.returns)
			}
		})
	}
}

func TestLabelsAddUp(t *testing.T) {
	ref := []protocol.FileTurn{turn("a", "A", 0, 10), turn("b", "A", 0, 30)}
	hyp := []protocol.FileTurn{turn("a", "x", 0, 10), turn("b", "x", 0, 15), turn("b", "y", 15, 30)}
	got := Labels(ref, hyp, nil)
	if got.Speakers != 2 || got.Labels != 3 || got.CountError != 1 {
		t.Errorf("%+v", got)
	}
	if got.PerSpeaker() != 1.5 || got.SwitchesPerMinute() != 1.5 {
		t.Errorf("%v labels a speaker, %v switches a minute; want 1.5 and 1.5", got.PerSpeaker(), got.SwitchesPerMinute())
	}
}
