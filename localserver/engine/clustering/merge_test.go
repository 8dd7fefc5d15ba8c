package clustering

import (
	"math/rand/v2"
	"testing"
)

// halves is a Clusterer for at most most voices with two of them, of so many pieces
// of a second, whose centres are alike by about cos.
func halves(most int, cos float64, pieces ...int) *Clusterer {
	r := rand.New(rand.NewPCG(9, 9))
	c := New(Default(), most)
	a := newSpeaker(r)
	for v, s := range []speaker{a, a.near(cos)} {
		c.voices = append(c.voices, voice{})
		for range pieces[v] {
			e := s.piece()
			c.memory.items = append(c.memory.items, item{e, 1, v, 0, unlinked})
			c.voices[v].add(&e, 1)
		}
		c.voices[v].scale()
	}
	return c
}

func TestTwoVoicesOfOnePersonBecomeOne(t *testing.T) {
	c := halves(MaxVoices, 0.85, 9, 30)
	c.belief.extend(2)
	c.belief.marks[1].voice = [MaxVoices]float32{0.75, 0.5}
	c.merge()
	if c.voices[1].gone() || !c.voices[0].gone() || c.memory.count(0) != 0 || c.memory.count(1) != 39 || c.voices[1].weight != 39 {
		t.Errorf("9 and 30 pieces of one person became %d and %d", c.memory.count(0), c.memory.count(1))
	}
	if got := c.belief.marks[1].voice; got[0] != 0 || got[1] != 1.25 {
		t.Errorf("what is not committed yet is still thought to be %v", got)
	}
	if c.Voices() != 2 {
		t.Errorf("%d numbers are taken, want 2: a number is never given to somebody else", c.Voices())
	}
	if c.merge(); c.memory.count(1) != 39 {
		t.Error("who is gone was merged again")
	}
	g := &group{embedding: newSpeaker(rand.New(rand.NewPCG(1, 2))).e, lone: 2}
	if v, _ := c.nearest(g, 0); v != 1 {
		t.Errorf("the nearest voice of a stranger is %d, want the only one there is", v)
	}
	fresh := New(Default(), MaxVoices)
	if err := fresh.Restore(c.AppendSnapshot(nil)); err != nil || !fresh.voices[0].gone() || fresh.voices[1].gone() {
		t.Errorf("after a restart: %v, gone %v %v", err, fresh.voices[0].gone(), fresh.voices[1].gone())
	}
}

func TestWhatIsMergedIsNotSplitAgain(t *testing.T) {
	c := halves(MaxVoices, 0.75, 12, 14)
	c.merge()
	if !c.voices[0].gone() {
		t.Fatal("two voices of one person stay two")
	}
	if _, ok := c.memory.split(c.voices, 1, &c.p); ok {
		t.Error("what had been made one was taken apart again")
	}
}

func TestTwoPeopleStayTwo(t *testing.T) {
	for name, c := range map[string]*Clusterer{
		"alike by 0.45":     halves(MaxVoices, 0.45, 20, 20),
		"too little heard":  halves(MaxVoices, 0.9, mergePieces-1, 20),
		"no number is left": halves(2, 0.9, 20, 20),
	} {
		if c.merge(); c.voices[0].gone() || c.voices[1].gone() {
			t.Errorf("%s: became one", name)
		}
	}
}
