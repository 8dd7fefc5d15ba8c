package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"hubbub/protocol/testkit"
)

// must is for a change that is legal.
func must(a Annotations, err error) Annotations {
	if err != nil {
		panic(err)
	}
	return a
}

func TestNames(t *testing.T) {
	var a Annotations
	b := must(a.Rename("SPEAKER_00", " Anna\x1b[2J\n Maria "))
	testkit.Equal(t, b.Name("SPEAKER_00"), "Anna[2J Maria", "the name")
	testkit.Equal(t, a.Name("SPEAKER_00"), "SPEAKER_00", "the old value changed")
	for range 2 {
		b = must(b.Rename("SPEAKER_01", "李雷"))
	}
	for _, name := range []string{"李雷", "SPEAKER_07"} {
		if _, err := b.Rename("SPEAKER_00", name); !errors.Is(err, ErrNameInUse) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b = must(b.Rename("SPEAKER_01", strings.Repeat("ы", 500)))
	if n := len([]rune(b.Name("SPEAKER_01"))); n != MaxNameRunes {
		t.Errorf("a long name has %d runes", n)
	}
	if c := must(b.Rename("SPEAKER_01", "SPEAKER_01")); c.Name("SPEAKER_01") != "SPEAKER_01" || len(c.Names()) != 1 {
		t.Errorf("the label as its name leaves %v", c.Names())
	}
	b = must(b.Rename("SPEAKER_01", "\x00"))
	testkit.Equal(t, b.Name("SPEAKER_01"), "SPEAKER_01", "an empty name leaves")
}

func TestMergesCarryNamesAndAreUndone(t *testing.T) {
	var a Annotations
	a = must(a.Rename("C", "Cleo"))
	a = must(a.Merge("C", "B"))
	testkit.Equal(t, a.Name("B"), "Cleo", "B has no name and is joined by Cleo, but is called")
	a = must(a.Rename("C", "Bea")) // of both
	a = must(a.Merge("B", "A"))
	a = must(a.Merge("A", "C")) // they are one already
	testkit.EqualSlices(t, []string{a.Root("A"), a.Root("B"), a.Root("C"), a.Name("C")}, []string{"A", "A", "A", "Cleo"})
	if !must(a.Rename("A", "Cleo")).Equal(a) {
		t.Error("the name that A shows already is given to it, too, and stays when the merge is undone")
	}
	last := a.Merges()[len(a.Merges())-1]
	a, ok := a.unmerge()
	if !ok || last != (Merge{"B", "A"}) || slices.Contains(a.Merges(), last) || a.Name("C") != "Bea" || a.Name("A") != "A" {
		t.Errorf("after undo: %v %v, C is %s, A is %s", last, ok, a.Name("C"), a.Name("A"))
	}
	a = must(a.Rename("B", ""))
	testkit.Equal(t, a.Name("C"), "B", "a group without a name")
	a, _ = a.unmerge()
	if _, ok := a.unmerge(); ok {
		t.Error("there was nothing left to undo")
	}
}

// named is a timeline as its annotations want it: a lane for each speaker.
func named(a Annotations, s Snapshot) Snapshot {
	speakers := a.Speakers(s)
	s.Lanes = nil
	for _, p := range speakers {
		s.Lanes = append(s.Lanes, p.Lane)
	}
	return s
}

func TestTurnsOfAnotherSpeaker(t *testing.T) {
	s := Snapshot{Lanes: []Lane{
		{Speaker: "A", Turns: []Turn{{Speaker: "A", Start: 1, End: 3}, {Speaker: "A", Start: 8, End: 12}}, Talk: 6},
		{Speaker: "B", Turns: []Turn{{Speaker: "B", Start: 4, End: 5}}, Talk: 1},
	}, Decided: 12}
	before := describe(s)
	var a Annotations
	a = must(a.MoveTurn("A", 8, 12, "B"))
	if got, want := describe(named(a, s)), "lane A 2.000\nturn A 1 3\nlane B 5.000\nturn B 4 5\nturn B 8 12\ndecided 12\n"; !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s", got)
	}
	// On to a third speaker, who has not spoken yet; and the only turn of B, whose
	// lane goes with it.
	a = must(a.MoveTurn("B", 8, 12, "C"))
	b := must(a.MoveTurn("B", 4, 5, "A"))
	if got, want := describe(named(b, s)), "lane A 3.000\nturn A 1 3\nturn A 4 5\nlane C 4.000\nturn C 8 12\ndecided 12\n"; !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s", got)
	}
	// The index of C is that of nobody with a lane.
	if p := must(a.Merge("A", "B")).Speakers(s); len(p) != 2 || p[0].Index != 1 || p[1].Index != 2 {
		t.Errorf("got\n%+v", p)
	}
	if p := must(a.MoveTurn("A", 1, 3, "D")).Speakers(s); len(p) != 3 || p[0].Label != "B" || p[1].Index != 2 || p[2].Index != 3 {
		t.Errorf("got\n%+v", p)
	}
	if p := a.Speakers(Snapshot{Lanes: []Lane{{Speaker: "A"}}}); len(p) != 1 { // without a turn of their own
		t.Errorf("got\n%+v", p)
	}
	// A merge afterwards includes what was moved.
	c := must(b.Merge("C", "A"))
	if got := named(c, s); len(got.Lanes) != 1 || len(got.Lanes[0].Turns) != 3 || c.Owner(Turn{Speaker: "A", Start: 8, End: 12}) != "A" || b.Owner(Turn{Speaker: "A", Start: 8, End: 12}) != "C" {
		t.Errorf("got\n%s", describe(got))
	}
	if got := describe(named(must(a.MoveTurn("A", 20, 30, "D")), s)); got != describe(named(a, s)) {
		t.Errorf("a move without a turn changes the speakers to\n%s", got)
	}
	if !must(a.MoveTurn("A", 1, 3, "A")).Equal(a) {
		t.Error("a turn is moved to its own speaker")
	}
	for _, bad := range [][2]float64{{-1, 2}, {3, 3}, {math.NaN(), 4}, {1, MaxTimestamp + 1}} {
		if _, err := a.MoveTurn("A", bad[0], bad[1], "B"); err == nil {
			t.Errorf("a turn from %g to %g is moved", bad[0], bad[1])
		}
	}
	testkit.Equal(t, describe(s), before, "the snapshot changed")
}

func TestSpeakersUniteOpenTurns(t *testing.T) {
	s := Snapshot{Lanes: []Lane{
		{Speaker: "A", Turns: []Turn{{Speaker: "A", Start: 1, End: 3}, {Speaker: "A", Start: 8, End: 12}}, Talk: 6},
		{Speaker: "B", Turns: []Turn{{Speaker: "B", Start: 2, End: 4}, {Speaker: "B", Start: 4.5, End: 5}}, Talk: 2.5, Open: true, OpenSince: 11},
		{Speaker: "C", Turns: []Turn{{Speaker: "C", Start: 1, End: 2}}, Talk: 1},
	}, Decided: 12}
	var a Annotations
	a = must(a.Merge("A", "B"))
	a = must(a.Rename("B", "Bea"))
	got := named(a, s)
	if want := "lane Bea 3.500\nturn Bea 1 4\nturn Bea 4.5 5\nopen Bea 8\nlane C 1.000\nturn C 1 2\ndecided 12\n"; !strings.HasPrefix(describe(got), want) {
		t.Errorf("got\n%s", describe(got))
	}
	if s.Lanes[0].Turns[0].Speaker != "A" || len(s.Lanes) != 3 {
		t.Errorf("the snapshot changed: %+v", s)
	}
	a = a.Mute("A", true)
	speakers := a.Speakers(s)
	if b := speakers[0]; b.Label != "B" || !slices.Equal(b.Labels, []string{"B", "A"}) || b.Index != 1 || !b.Muted {
		t.Errorf("the first speaker is %+v", b)
	}
	if c := speakers[1]; c.Label != "C" || !slices.Equal(c.Labels, []string{"C"}) || c.Index != 2 || c.Muted {
		t.Errorf("the second speaker is %+v", c)
	}
	// A label that comes later may be called as somebody is named.
	s.Lanes[2].Speaker = "Bea"
	if got := named(a, s); got.Lanes[1].Speaker != "Bea (2)" {
		t.Errorf("two people are called %q and %q", got.Lanes[0].Speaker, got.Lanes[1].Speaker)
	}
}

var someLabel = rapid.SampledFrom([]string{"A", "B", "C", "D", "E"})

// anyAnnotations draws annotations by the methods that make them, and checks
// that no method changes the value it was called on.
func anyAnnotations(t *rapid.T) Annotations {
	var a Annotations
	for range rapid.IntRange(0, 15).Draw(t, "changes") {
		before, _ := json.Marshal(a)
		next, err := a, error(nil)
		switch rapid.IntRange(0, 6).Draw(t, "change") {
		case 6:
			next, err = a.MoveTurn(someLabel.Draw(t, "from"), rapid.Float64Range(-1, 50).Draw(t, "start"), rapid.Float64Range(0, 50).Draw(t, "end"), someLabel.Draw(t, "to"))
		case 0:
			next, err = a.Rename(someLabel.Draw(t, "label"), rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "Anna", "Anna", "Ben", "A"})).Draw(t, "name"))
		case 1:
			next, err = a.Merge(someLabel.Draw(t, "from"), someLabel.Draw(t, "into"))
		case 2:
			next = a.Mute(someLabel.Draw(t, "label"), rapid.Bool().Draw(t, "muted"))
		case 3:
			next, err = a.Bookmark(rapid.Float64Range(-1, 100).Draw(t, "at"), rapid.String().Draw(t, "note"))
		case 4:
			if b := a.Bookmarks(); len(b) > 0 {
				next = a.Unbookmark(b[0].At)
			}
		case 5:
			next, _ = a.unmerge()
		}
		if after, _ := json.Marshal(a); string(after) != string(before) {
			t.Fatalf("a value changed from\n%s to\n%s", before, after)
		}
		if err != nil && !next.Equal(a) {
			t.Fatalf("refused (%v), but changed", err)
		}
		a = next
	}
	return a
}

func TestAnnotationsSurviveTheirFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := anyAnnotations(t)
		raw := testkit.Must(json.Marshal(a))(t)
		var b Annotations
		if err := json.Unmarshal(raw, &b); err != nil || !a.Equal(b) {
			again, _ := json.Marshal(b)
			t.Fatalf("%v\n%s\nis read as\n%s", err, raw, again)
		}
		if again, _ := json.Marshal(b); string(again) != string(raw) {
			t.Fatalf("the same annotations give\n%s\nand\n%s", raw, again)
		}
	})
}

// covered is the speech of each tenth of a second, by name, open turns up to the
// end of the range; who never speaks is left out.
func covered(s Snapshot, a Annotations) map[string][]bool {
	out := map[string][]bool{}
	add := func(label string, turn Turn) {
		name := a.Name(label)
		if out[name] == nil {
			out[name] = make([]bool, 130)
		}
		for i := range out[name] {
			if at := float64(i)/10 + 0.05; at > turn.Start && at < turn.End {
				out[name][i] = true
			}
		}
	}
	for _, l := range s.Lanes {
		for _, turn := range l.Turns {
			add(a.Owner(turn), turn)
		}
		if l.Open {
			add(l.Speaker, Turn{Start: l.OpenSince, End: 13})
		}
	}
	return out
}

// Whatever was merged, named and moved: the result is a legal timeline, and at every
// moment a person speaks who spoke before under one of their labels.
func TestSpeakersKeepEveryMomentOfSpeech(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		timeline := NewTimeline()
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			timeline.Apply(Event{
				Type:    rapid.SampledFrom([]string{TypeSpeakerStart, TypeSpeakerEnd}).Draw(t, "type"),
				Speaker: someLabel.Draw(t, "label"), Timestamp: float64(rapid.IntRange(0, 120).Draw(t, "at")) / 10,
			})
		}
		var a Annotations
		for range rapid.IntRange(0, 4).Draw(t, "merges") {
			a, _ = a.Merge(someLabel.Draw(t, "from"), someLabel.Draw(t, "into"))
		}
		for range rapid.IntRange(0, 4).Draw(t, "moves") {
			start := float64(rapid.IntRange(0, 120).Draw(t, "start")) / 10
			a, _ = a.MoveTurn(someLabel.Draw(t, "from"), start, start+float64(rapid.IntRange(1, 50).Draw(t, "length"))/10, someLabel.Draw(t, "to"))
		}
		a, _ = a.Rename(someLabel.Draw(t, "label"), "Anna")
		before := timeline.Snapshot()
		text := describe(before)
		taken := map[int]bool{}
		for _, p := range a.Speakers(before) {
			if taken[p.Index] {
				t.Fatalf("two speakers have the index %d", p.Index)
			}
			taken[p.Index] = true
		}
		after := named(a, before)
		checkSnapshot(t, after)
		if got := describe(before); got != text {
			t.Fatalf("the snapshot changed from\n%s to\n%s", text, got)
		}
		want, got := covered(before, a), covered(after, Annotations{})
		if len(want) != len(got) {
			t.Fatalf("people %v, want %v", got, want)
		}
		for name := range want {
			if !slices.Equal(want[name], got[name]) {
				t.Fatalf("%s speaks otherwise than before:\n%s\n%s", name, text, describe(after))
			}
		}
	})
}

// Each kind of annotation counts by itself.
func TestAnnotationsDiffer(t *testing.T) {
	var none Annotations
	for i, a := range []Annotations{must(none.Rename("A", "Anna")), must(none.Merge("A", "B")), must(none.MoveTurn("A", 0, 1, "B")), none.Mute("A", true), must(none.Bookmark(1, ""))} {
		if a.Equal(none) || none.Equal(a) || !a.Equal(a) {
			t.Errorf("annotation %d: %+v", i, a)
		}
	}
	if !none.Equal(none) {
		t.Errorf("%+v", none)
	}
}

// A bound refuses one more, and no change of what there is.
func TestAnnotationsAreBounded(t *testing.T) {
	full := Annotations{bookmarks: make([]Bookmark, maxBookmarks)}
	for i := range full.bookmarks {
		full.bookmarks[i].At = float64(i)
	}
	for i := range MaxLabels + 1 {
		full = full.Mute(SpeakerLabel(i), true)
	}
	if full = full.Mute(SpeakerLabel(0), false); full.Muted(SpeakerLabel(0)) || full.Muted(SpeakerLabel(MaxLabels)) || !full.Muted(SpeakerLabel(1)) {
		t.Errorf("muted: %v", full.muted)
	}
	for _, c := range []struct {
		a     Annotations
		at    float64
		valid bool
	}{{full, maxBookmarks, false}, {full, 3, true}, {Annotations{}, -1, false}, {Annotations{}, MaxTimestamp, true}, {Annotations{}, MaxTimestamp + 1, false}} {
		if _, err := c.a.Bookmark(c.at, "note"); (err == nil) != c.valid {
			t.Errorf("a bookmark at %g s: %v", c.at, err)
		}
	}
	if b := must(full.Bookmark(3, "note")); b.Bookmarks()[3].Note != "note" || len(b.Unbookmark(3).Bookmarks()) != maxBookmarks-1 || len(b.Unbookmark(0.5).Bookmarks()) != maxBookmarks {
		t.Error("a bookmark is not replaced, or not removed")
	}
	var names Annotations
	for i := range MaxLabels {
		names = must(names.Rename(fmt.Sprint("voice", i), fmt.Sprint("name", i)))
	}
	_, rename := names.Rename("A", "Anna")
	_, merge := Annotations{merges: make([]Merge, maxMerges)}.Merge("A", "B")
	_, move := Annotations{moves: make([]Move, maxMoves)}.MoveTurn("A", 0, 1, "B")
	if rename == nil || merge == nil || move == nil {
		t.Errorf("no bound: %v, %v, %v", rename, merge, move)
	}
}

func TestAnnotationsFromAStranger(t *testing.T) {
	for _, raw := range []string{`{}`, `{"version":2}`, `[]`, `{"version":1,"names":3}`} {
		var a Annotations
		if err := json.Unmarshal([]byte(raw), &a); err == nil || strings.Contains(err.Error(), "Go") || !a.Equal(Annotations{}) {
			t.Errorf("%s is read as %+v (%v)", raw, a, err)
		}
	}
	var a Annotations
	err := json.Unmarshal([]byte(`{"version":1,"names":{"A\u001b":"x\u0007y","B":"","C":"SPEAKER_02"},"merges":[{"from":"A","into":"A"},{"from":"A","into":"B"},{"from":"B","into":"A"}],
		"moves":[{"from":"A","to":"B","start":2,"end":1}],"muted":["A","A"],"bookmarks":[{"at":-1,"note":"no"},{"at":3,"note":"\u001b[31mred"},{"at":1}],"more":1}`), &a)
	testkit.NoError(t, err)
	got, _ := json.Marshal(a)
	if want := `{"version":1,"names":{"A":"xy"},"merges":[{"from":"A","into":"B"}],"muted":["A"],"bookmarks":[{"at":1,"note":""},{"at":3,"note":"[31mred"}]}`; string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAnnotationsStore(t *testing.T) {
	var first Annotations
	first = must(first.Merge("B", "A"))
	s := NewAnnotationsStore(first)
	if s.Unsaved() {
		t.Error("nothing is new, but unsaved")
	}
	rename := func(name string) error {
		return s.Update(func(a Annotations) (Annotations, error) { return a.Rename("A", name) })
	}
	if err := rename("Anna"); err != nil || !s.Unsaved() {
		t.Error(err, "or saved by nobody")
	}
	select {
	case <-s.Changes():
	default:
		t.Error("the change was not told")
	}
	if err := rename("SPEAKER_01"); !errors.Is(err, ErrNameInUse) {
		t.Error(err)
	}
	saved, revision := s.Load()
	s.MarkSaved(saved, revision)
	if s.Unsaved() {
		t.Error("saved, but unsaved")
	}
	s.MarkSaved(first, revision-1) // by a writer that took longer
	if s.Unsaved() {
		t.Error("saved, but unsaved after an older state was saved, too")
	}
	if err := rename("Bea"); err != nil || !s.Unsaved() {
		t.Error(err, "or saved by nobody")
	}
	if _, _, ok := s.Undo(); !ok || s.Unsaved() {
		t.Error("what is saved again counts as unsaved")
	}
	for i := range 2*undoSteps + 1 {
		testkit.NoError(t, rename(strings.Repeat("x", 1+i%2)))
	}
	for range undoSteps {
		if was, is, ok := s.Undo(); !ok || was.Equal(is) {
			t.Fatal("not undone")
		}
	}
	// Beyond what is remembered, merges can still be undone.
	if was, is, ok := s.Undo(); !ok || was.Root("B") != "A" || is.Root("B") != "B" {
		t.Error("the merge of the file was not undone")
	}
	if _, _, ok := s.Undo(); ok || !s.Unsaved() {
		t.Error("undone without end, or saved")
	}
	s = NewAnnotationsStore(first)
	testkit.NoError(t, rename("Ben"))
	saved, revision = s.Load()
	s.Undo()
	s.MarkSaved(saved, revision) // what was undone while it was written
	if !s.Unsaved() {
		t.Error("an undone name is what is saved, but nothing is unsaved")
	}
}

func TestAnnotationsStoreInParallel(t *testing.T) {
	s := NewAnnotationsStore(Annotations{})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 50 {
				_ = s.Update(func(a Annotations) (Annotations, error) { return a.Bookmark(float64(i*50+j), "") })
				a, _ := s.Load()
				_ = a.Speakers(Snapshot{Lanes: []Lane{{Speaker: "A"}}})
				_ = len(a.Bookmarks())
			}
		})
	}
	all.Wait()
	if a, _ := s.Load(); len(a.Bookmarks()) != 200 {
		t.Errorf("%d bookmarks of 200", len(a.Bookmarks()))
	}
}
