package clustering

import (
	"math/rand/v2"
	"testing"
)

// twoVoices is a session that knows two people, and them.
func twoVoices(cling float64) (*Clusterer, []speaker) {
	p := Default()
	p.Cling = cling
	c := New(p, 2)
	r := rand.New(rand.NewPCG(7, 1))
	people := []speaker{newSpeaker(r), newSpeaker(r)}
	for _, s := range people {
		v := voice{}
		v.add(&s.e, 20)
		v.scale()
		c.voices = append(c.voices, v)
	}
	return c, people
}

// taken is what the three seconds of one local are taken for when the first and
// the last sound like person 0 and the one between like person 1 by so much.
func taken(c *Clusterer, people []speaker, share float64) []int {
	between := unit(func(i int) float64 { return (1-share)*float64(people[0].e[i]) + share*float64(people[1].e[i]) })
	w := &Window{Speech: make([]float32, 150), Locals: []Local{{Active: make([]float32, 150)}}}
	for i, e := range []Embedding{people[0].e, between, people[0].e} {
		w.Locals[0].Pieces = append(w.Locals[0].Pieces, Piece{From: 50 * i, To: 50*i + 50, Centre: 50*i + 25, Lone: 1, Embedding: e})
	}
	c.regroup(w)
	c.assign(w)
	return c.who
}

func TestPiecesOfOneLocalSupportEachOther(t *testing.T) {
	for _, x := range []struct {
		cling, share float64
		want         int
	}{
		{0, 0.53, 1},               // alone, the piece goes to whom it is a little more like
		{Default().Cling, 0.53, 0}, // among its like, it does not
		{Default().Cling, 0.75, 1}, // but a second person stays a second person
	} {
		c, people := twoVoices(x.cling)
		if who := taken(c, people, x.share); who[0] != 0 || who[2] != 0 || who[1] != x.want {
			t.Errorf("cling %v, share %v: pieces taken for %v, want the middle one for %d", x.cling, x.share, who, x.want)
		}
	}
}

// Whoever talks at the same time as somebody stays another person, whatever the
// rest of the local is taken for.
func TestClingingKeepsPeopleWhoTalkAtOnceApart(t *testing.T) {
	c, people := twoVoices(Default().Cling)
	on := make([]float32, 150)
	for i := range on {
		on[i] = 1
	}
	between := unit(func(i int) float64 { return 0.47*float64(people[0].e[i]) + 0.53*float64(people[1].e[i]) })
	w := &Window{Speech: make([]float32, 150), Locals: []Local{
		{Active: on, Pieces: []Piece{
			{To: 50, Centre: 25, Lone: 1, Embedding: people[0].e},
			{From: 50, To: 100, Centre: 75, Lone: 1, Embedding: between},
			{From: 100, To: 150, Centre: 125, Lone: 1, Embedding: people[0].e},
		}},
		{Active: on, Pieces: []Piece{{From: 50, To: 100, Centre: 75, Lone: 1, Embedding: people[0].e}}},
	}}
	c.regroup(w)
	c.assign(w)
	if c.who[3] != 0 || c.who[1] != 1 {
		t.Errorf("pieces taken for %v: 1 and 3 talk at once, 3 is person 0", c.who)
	}
}

// Somebody who may be known or new gets no label until it is clear; where no label
// is left for somebody new, the nearest one.
func TestWhoIsNeitherKnownNorNewGetsNoLabel(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	known := newSpeaker(r)
	heard := func(most int, off float64) (int, *Clusterer) {
		c := New(Default(), most)
		c.voices = append(c.voices, voice{})
		c.voices[0].add(&known.e, 20)
		c.voices[0].scale()
		const lone = 0.8
		w := &Window{Speech: make([]float32, 100), Locals: []Local{{Active: make([]float32, 100)}}}
		for i := range 40 {
			w.Speech[i], w.Locals[0].Active[i] = 1, 1
		}
		likeness := c.threshold(lone, &c.voices[0]) + off
		w.Locals[0].Pieces = []Piece{{From: 0, To: 40, Centre: 20, Lone: lone, Embedding: known.near(likeness).e}}
		c.Hear(w)
		return c.who[0], c
	}
	doubt := Default().Doubt
	for _, test := range []struct {
		most, want int
		off        float64
	}{{MaxVoices, 0, 0.02}, {MaxVoices, 0, -doubt + 0.01}, {MaxVoices, nobody, -doubt - 0.01}, {1, 0, -doubt - 0.01}} {
		if got, c := heard(test.most, test.off); got != test.want || c.Voices() != 1 {
			t.Errorf("%.3f from the threshold, at most %d labels: voice %d of %d, want %d of 1", test.off, test.most, got, c.Voices(), test.want)
		}
	}
}
