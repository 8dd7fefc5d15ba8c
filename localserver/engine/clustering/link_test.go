package clustering

import (
	"math/rand/v2"
	"testing"
)

// talking is a window of locals, each of which talks in its spans of frames.
func talking(frames int, locals ...[][2]int) *Window {
	w := &Window{Speech: make([]float32, frames)}
	for _, spans := range locals {
		l := Local{Active: make([]float32, frames)}
		for _, s := range spans {
			for i := s[0]; i < s[1]; i++ {
				l.Active[i], w.Speech[i] = 1, 1
			}
		}
		w.Locals = append(w.Locals, l)
	}
	return w
}

func TestHowAPieceFollows(t *testing.T) {
	for _, c := range []struct {
		name string
		w    *Window
		at   int // the middle of the item before
		want link
	}{
		{"one local goes on", talking(250, [][2]int{{0, 250}}), 50, goesOn},
		{"with a short pause", talking(250, [][2]int{{0, 80}, {80 + pauseMost, 250}}), 50, goesOn},
		{"after a pause", talking(250, [][2]int{{0, 80}, {80 + pauseMost + 1, 250}}), 50, unlinked},
		{"another local talked", talking(250, [][2]int{{90, 250}}, [][2]int{{0, 80}}), 50, takesUp},
		{"both did", talking(250, [][2]int{{0, 60}, {90, 250}}, [][2]int{{0, 80}}), 50, unlinked},
		{"another local talked long ago", talking(250, [][2]int{{90, 250}}, [][2]int{{0, 60}}), 0, unlinked},
		{"the item is older than the window", talking(250, [][2]int{{0, 250}}), -1, unlinked},
		{"the item is not said yet", talking(250, [][2]int{{0, 250}}), 200, unlinked},
	} {
		c.w.First = 1000
		m := &memory{items: []item{{at: 1000 + c.at}}}
		p := piece{Piece: &Piece{}, local: 0, centre: 160}
		if got := m.link(c.w, &p); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if got := (&memory{}).link(talking(250, [][2]int{{0, 250}}), &piece{Piece: &Piece{}, centre: 160}); got != unlinked {
		t.Errorf("the first piece of a session follows with %d", got)
	}
}

// Three pieces, the middle one of which sounds a little more like somebody else.
func TestWhoGoesOnIsTheSamePerson(t *testing.T) {
	for _, c := range []struct {
		name  string
		links [2]link
		share float64
		want  int
	}{
		{"by itself", [2]link{unlinked, unlinked}, 0.53, 1},
		{"in the middle of another's speech", [2]link{goesOn, goesOn}, 0.53, 0},
		{"beyond doubt somebody else", [2]link{goesOn, goesOn}, 0.75, 1},
		{"a little more like him, but taking up what he said", [2]link{takesUp, unlinked}, 0.49, 1},
	} {
		clusterer, people := twoVoices(0)
		m := &clusterer.memory
		between := unit(func(i int) float64 { return (1-c.share)*float64(people[0].e[i]) + c.share*float64(people[1].e[i]) })
		m.items = []item{{people[0].e, 1, 0, 0, unlinked}, {between, 1, nobody, 50, c.links[0]}, {people[0].e, 1, 0, 100, c.links[1]}}
		m.reconsider(clusterer.voices, &clusterer.p)
		if got := m.items[1].voice; got != c.want {
			t.Errorf("%s: voice %d, want %d", c.name, got, c.want)
		}
	}
}

// woven gives two voices turns that go on in each other, so many pieces each at a time.
func woven(c *Clusterer, run int) {
	var sides [2][]item
	for _, it := range c.memory.items {
		sides[it.voice] = append(sides[it.voice], it)
	}
	c.memory.items = nil
	for k := 0; len(sides[0])+len(sides[1]) > 0; k++ {
		s := &sides[k%2]
		for _, it := range (*s)[:min(run, len(*s))] {
			it.link = goesOn
			c.memory.items = append(c.memory.items, it)
		}
		*s = (*s)[min(run, len(*s)):]
	}
}

func TestVoicesThatGoOnInEachOtherBecomeOne(t *testing.T) {
	for _, x := range []struct {
		name string
		c    *Clusterer
		run  int
		one  bool
	}{
		{"every third piece crosses", halves(MaxVoices, 0.55, 18, 18), 3, true},
		{"every ninth", halves(MaxVoices, 0.55, 18, 18), 9, false},
		{"not at all alike", halves(MaxVoices, 0.2, 18, 18), 3, false},
		{"too little heard", halves(MaxVoices, 0.55, 18, mergePieces-1), 2, false},
	} {
		woven(x.c, x.run)
		if x.c.merge(); (x.c.voices[0].gone() || x.c.voices[1].gone()) != x.one {
			t.Errorf("%s: one voice is %v, want %v", x.name, !x.one, x.one)
		}
		if !x.one {
			continue
		}
		v := 0
		if x.c.voices[0].gone() {
			v = 1
		}
		if _, ok := x.c.memory.split(x.c.voices, v, &x.c.p); ok {
			t.Errorf("%s: what had been made one was taken apart again", x.name)
		}
	}
}

// What is left of a chain says no more than the whole chain did.
func TestForgettingKeepsTheLinksThatHold(t *testing.T) {
	m := &memory{}
	r := rand.New(rand.NewPCG(2, 2))
	for i := range 16 {
		l := goesOn
		if i%4 == 0 { // chains of four
			l = takesUp
		}
		m.items = append(m.items, item{someone(r), 1, 0, i, l})
	}
	m.thin()
	want := map[int]link{1: unlinked, 3: goesOn, 5: unlinked, 7: goesOn, 8: takesUp, 9: goesOn, 12: takesUp, 15: goesOn}
	for _, it := range m.items {
		if w, ok := want[it.at]; ok && it.link != w {
			t.Errorf("piece %d follows with %d, want %d", it.at, it.link, w)
		}
	}
	if len(m.items) != 12 {
		t.Errorf("%d of 16 pieces are left, want 12", len(m.items))
	}
}

// Who begins right after a known voice's words, and sounds like nobody so much as like
// that voice, needs more of a margin than who begins after a pause.
func TestInsideAKnownVoicesSpeechFoundingTakesMore(t *testing.T) {
	for _, x := range []struct {
		name   string
		pause  int     // frames between the two pieces
		more   float64 // of a margin, beyond FoundMargin
		voices int
	}{
		{"after a pause", 2 * breath, 0.02, 2},
		{"inside", breath, 0.02, 1},
		{"inside, and different enough", breath, Default().FoundInside + 0.02, 2},
	} {
		r := rand.New(rand.NewPCG(7, 7))
		known := newSpeaker(r)
		c := New(Default(), MaxVoices)
		c.voices = append(c.voices, voice{})
		c.voices[0].add(&known.e, 20)
		c.voices[0].scale()
		lone := c.p.Found // where the margin is FoundMargin
		fresh := known.near(c.threshold(lone, &c.voices[0]) - c.p.FoundMargin - x.more)
		half := int(lone / frameSeconds / 2)
		begin := 100 + x.pause
		w := talking(250, [][2]int{{50, 100}, {begin, begin + 2*half}})
		w.Locals[0].Pieces = []Piece{
			{From: 0, To: 100, Centre: 75, Lone: 1, Embedding: known.e},
			{From: 100, To: 250, Centre: begin + half, Lone: lone, Embedding: fresh.e},
		}
		for range 2 {
			c.regroup(w)
			c.meet(w)
		}
		if got := c.Voices(); got != x.voices {
			t.Errorf("%s: %d voices, want %d", x.name, got, x.voices)
		}
	}
}
