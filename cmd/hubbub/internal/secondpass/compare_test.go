package secondpass

import (
	"testing"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// annotated are annotations of one edit after the other.
func annotated(t *testing.T, edits ...func(protocol.Annotations) (protocol.Annotations, error)) (annotations protocol.Annotations) {
	t.Helper()
	for _, edit := range edits {
		annotations = testkit.Must(edit(annotations))(t)
	}
	return annotations
}

// TestRelabel gives the speakers of the second pass the labels of the session.
func TestRelabel(t *testing.T) {
	t.Parallel()
	turn := func(speaker string, start, end float64) protocol.Turn {
		return protocol.Turn{Speaker: speaker, Start: start, End: end}
	}
	merged := annotated(t, func(a protocol.Annotations) (protocol.Annotations, error) { return a.Merge("SPEAKER_02", "SPEAKER_00") })
	moved := annotated(t, func(a protocol.Annotations) (protocol.Annotations, error) {
		return a.MoveTurn("SPEAKER_00", 0, 10, "SPEAKER_01")
	})
	for _, c := range []struct {
		name         string
		annotations  protocol.Annotations
		live, second []protocol.Turn
		want         []string // the labels of second
	}{
		{"order of first speech", protocol.Annotations{},
			[]protocol.Turn{turn("SPEAKER_01", 0, 10), turn("SPEAKER_00", 10, 20)},
			[]protocol.Turn{turn("SPEAKER_00", 0, 10), turn("SPEAKER_01", 10, 20)},
			[]string{"SPEAKER_01", "SPEAKER_00"}},
		// The largest overlap first would be 10 s and 0 s.
		{"largest sum, not largest first", protocol.Annotations{},
			[]protocol.Turn{turn("A", 0, 19), turn("B", 19, 24)},
			[]protocol.Turn{turn("SPEAKER_00", 0, 9), turn("SPEAKER_01", 9, 24)},
			[]string{"A", "B"}},
		{"one to one: the smaller part gets a new label", protocol.Annotations{},
			[]protocol.Turn{turn("SPEAKER_00", 0, 20)},
			[]protocol.Turn{turn("SPEAKER_00", 0, 5), turn("SPEAKER_01", 5, 20)},
			[]string{"SPEAKER_01", "SPEAKER_00"}},
		{"no overlap: a label that the session does not have", protocol.Annotations{},
			[]protocol.Turn{turn("SPEAKER_00", 0, 5), turn("SPEAKER_02", 5, 9)},
			[]protocol.Turn{turn("SPEAKER_00", 20, 25), turn("SPEAKER_01", 30, 35), turn("SPEAKER_00", 40, 45)},
			[]string{"SPEAKER_01", "SPEAKER_03", "SPEAKER_01"}},
		{"merged labels are one speaker", merged,
			[]protocol.Turn{turn("SPEAKER_00", 0, 4), turn("SPEAKER_01", 4, 10), turn("SPEAKER_02", 10, 20)},
			[]protocol.Turn{turn("SPEAKER_00", 0, 4), turn("SPEAKER_01", 4, 10), turn("SPEAKER_00", 10, 20), turn("SPEAKER_02", 30, 31)},
			[]string{"SPEAKER_00", "SPEAKER_01", "SPEAKER_00", "SPEAKER_03"}},
		{"merged labels stay one speaker whom the second pass divides", merged,
			[]protocol.Turn{turn("SPEAKER_00", 0, 4), turn("SPEAKER_01", 4, 10), turn("SPEAKER_02", 10, 20)},
			[]protocol.Turn{turn("SPEAKER_00", 0, 4), turn("SPEAKER_01", 4, 10), turn("SPEAKER_02", 10, 20), turn("SPEAKER_03", 19, 21)},
			[]string{"SPEAKER_02", "SPEAKER_01", "SPEAKER_00", "SPEAKER_03"}},
		{"moved turns are those of the new speaker", moved,
			[]protocol.Turn{turn("SPEAKER_00", 0, 10), turn("SPEAKER_00", 10, 12), turn("SPEAKER_01", 12, 13)},
			[]protocol.Turn{turn("SPEAKER_00", 0, 10), turn("SPEAKER_01", 10, 12)},
			[]string{"SPEAKER_01", "SPEAKER_00"}},
		{"nothing was found live", protocol.Annotations{}, nil,
			[]protocol.Turn{turn("SPEAKER_00", 0, 5)}, []string{"SPEAKER_00"}},
		{"nothing is found now", protocol.Annotations{}, []protocol.Turn{turn("SPEAKER_00", 0, 5)}, nil, nil},
	} {
		var got []string
		for i, r := range Relabel(c.live, c.second, c.annotations) {
			got = append(got, r.Speaker)
			if r.Start != c.second[i].Start || r.End != c.second[i].End {
				t.Errorf("%s: turn %v, was %v", c.name, r, c.second[i])
			}
		}
		testkit.EqualSlices(t, got, c.want, c.name)
	}
	live := []protocol.Turn{{Speaker: "SPEAKER_00", Start: 0, End: 5, Match: "Sam"}}
	testkit.Equal(t, Relabel(live, []protocol.Turn{turn("SPEAKER_00", 0, 4)}, protocol.Annotations{})[0].Match, "Sam", "a recognised person")
	// As on the screen: a merged label that is not recognised does not take the name
	// away, and a moved turn does not take it along.
	live = append(live, turn("SPEAKER_02", 10, 20), turn("SPEAKER_01", 20, 30))
	if got := Relabel(live, []protocol.Turn{turn("SPEAKER_00", 0, 20), turn("SPEAKER_01", 20, 30)}, merged); got[0].Match != "Sam" || got[1].Match != "" {
		t.Errorf("merged: %+v", got)
	}
	live = []protocol.Turn{{Speaker: "SPEAKER_00", Start: 0, End: 10, Match: "Sam"}, {Speaker: "SPEAKER_00", Start: 10, End: 12, Match: "Sam"}}
	if got := Relabel(live, []protocol.Turn{turn("SPEAKER_00", 0, 10), turn("SPEAKER_01", 10, 12)}, moved); got[0].Match != "" || got[1].Match != "Sam" {
		t.Errorf("moved: %+v", got)
	}
}

// TestTurnChanges finds turns of which less than half is in the other result,
// under people's names; boundaries that move a little are no change.
func TestTurnChanges(t *testing.T) {
	t.Parallel()
	annotations := annotated(t,
		func(a protocol.Annotations) (protocol.Annotations, error) { return a.Rename("A", "Anna") },
		func(a protocol.Annotations) (protocol.Annotations, error) { return a.Merge("C", "A") })
	before := []protocol.Turn{
		{Speaker: "A", Start: 0, End: 10},  // two turns now
		{Speaker: "B", Start: 10, End: 14}, // of Anna now
		{Speaker: "B", Start: 20, End: 24}, // nobody's now
		{Speaker: "C", Start: 30, End: 34}, // merged
	}
	after := []protocol.Turn{
		{Speaker: "A", Start: 0.2, End: 4}, {Speaker: "A", Start: 4.5, End: 9.9},
		{Speaker: "A", Start: 10.1, End: 14.2},
		{Speaker: "A", Start: 30, End: 33},
		{Speaker: "B", Start: 40, End: 41},
	}
	got := Changes(before, after, annotations)
	want := []Change{
		{protocol.Turn{Speaker: "B", Start: 10, End: 14}, false},
		{protocol.Turn{Speaker: "Anna", Start: 10.1, End: 14.2}, true},
		{protocol.Turn{Speaker: "B", Start: 20, End: 24}, false},
		{protocol.Turn{Speaker: "B", Start: 40, End: 41}, true},
	}
	testkit.EqualSlices(t, got, want, "changes")
	if same := Changes(after, after, annotations); len(same) > 0 {
		t.Errorf("a result differs from itself in %v", same)
	}
	// What several turns cover at once counts once.
	others := []protocol.Turn{{Start: -1, End: 3}, {Start: 1, End: 2}, {Start: 2, End: 4}, {Start: 9, End: 12}}
	testkit.Equal(t, shared(protocol.Turn{Start: 0, End: 10}, others), 5, "seconds that are shared")
}
