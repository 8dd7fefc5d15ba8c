package clustering

import (
	"math"
	"math/rand/v2"
	"testing"
)

// opinions is what is thought of a frame after windows of three voices: for each window
// the activities of its locals, each a piece, and the shares of each piece.
func opinions(t *testing.T, windows ...[][4]float32) uint8 {
	t.Helper()
	var b belief
	p := Default()
	for _, locals := range windows {
		w := &Window{Speech: make([]float32, 100)}
		var pieces []piece
		var shares [][MaxVoices]float32
		for k, l := range locals {
			active := make([]float32, 100)
			for i := range active {
				active[i] = l[0]
				w.Speech[i] = max(w.Speech[i], l[0])
			}
			w.Locals = append(w.Locals, Local{Active: active})
			pieces = append(pieces, piece{Piece: &Piece{To: 100}, local: k})
			shares = append(shares, [MaxVoices]float32{l[1], l[2], l[3]})
		}
		b.extend(100)
		b.add(w, pieces, shares, &p)
	}
	return b.read(0, &p, nil)[20]
}

func TestWhoTalksInAFrame(t *testing.T) {
	for name, x := range map[string]struct {
		windows [][][4]float32
		want    uint8
	}{
		"one voice":                               {[][][4]float32{{{1, 1, 0}}}, 0b01},
		"two windows that hardly know, one does":  {[][][4]float32{{{1, 0.45, 0.55}}, {{1, 0.45, 0.55}}, {{1, 0.95, 0.05}}}, 0b01},
		"one talker who may be either":            {[][][4]float32{{{1, 0.55, 0.45}}}, 0b01},
		"one talker whom windows disagree about":  {[][][4]float32{{{1, 0.9, 0.1}}, {{1, 0.1, 0.9}}, {{1, 0.9, 0.1}}}, 0b01},
		"two talkers":                             {[][][4]float32{{{1, 1, 0}, {1, 0, 1}}}, 0b11},
		"two talkers, a third is possible":        {[][][4]float32{{{1, 0.8, 0, 0.2}, {1, 0, 0.8, 0.2}}}, 0b11},
		"two talkers, the second one hardly":      {[][][4]float32{{{1, 1, 0}, {0.3, 0, 1}}}, 0b01},
		"two talkers, the second may be nobody's": {[][][4]float32{{{1, 1, 0}, {1, 0, 0.05}}}, 0b01},
		"two talkers, the second is unclear":      {[][][4]float32{{{1, 1, 0}, {1, 0.6, 0.4}}}, 0b11},
		"nobody's, but for a little":              {[][][4]float32{{{1, 0.2, 0.1}}}, 0},
		"two talkers, both nobody's":              {[][][4]float32{{{1, 0.2, 0}, {1, 0, 0.2}}}, 0},
		"one talker whom no two windows agree on": {[][][4]float32{{{1, 0.36, 0.34, 0.3}}}, 0},
		"a window that leaves it open":            {[][][4]float32{{{1, 0.6, 0}}, {{1, 0, 0}}}, 0b01},
		"silence":                                 {[][][4]float32{{{0.1, 1, 0}}}, 0},
	} {
		if got := opinions(t, x.windows...); got != x.want {
			t.Errorf("%s: voices %02b, want %02b", name, got, x.want)
		}
	}
}

func TestAPieceIsSharedAmongVoicesThatItSoundsLike(t *testing.T) {
	c, people := twoVoices(0)
	for _, x := range []struct{ share, least, most float64 }{
		{0.05, 0, 0.02},   // of the voice that it is hardly like
		{0.48, 0.25, 0.5}, // of one that it is nearly as much like
	} {
		taken(c, people, x.share)
		got := c.shares[1]
		if second := float64(got[1]); second < x.least || second > x.most || math.Abs(float64(got[0]+got[1])-1) > 1e-6 {
			t.Errorf("%v of another voice: shares %v, want the second between %v and %v", x.share, got[:2], x.least, x.most)
		}
	}
}

// The rest of the local counts in the shares as it does in whose the piece is.
func TestTheLocalSupportsShares(t *testing.T) {
	var second [2]float32
	for i, cling := range []float64{0, Default().Cling} {
		c, people := twoVoices(cling)
		taken(c, people, 0.48)
		second[i] = c.shares[1][1]
	}
	if second[1] > second[0]/2 {
		t.Errorf("a voice that nothing else in the local sounds like has a share of %v, without the rest %v", second[1], second[0])
	}
}

func TestWhoTalksAtOnceHasNoShareInTheOther(t *testing.T) {
	c, people := twoVoices(0)
	on := make([]float32, 100)
	for i := range on {
		on[i] = 1
	}
	between := unit(func(i int) float64 { return 0.4*float64(people[0].e[i]) + 0.6*float64(people[1].e[i]) })
	locals := []Local{
		{Active: on, Pieces: []Piece{{To: 100, Centre: 50, Lone: 1, Embedding: between}}},
		{Active: on, Pieces: []Piece{{To: 100, Centre: 50, Lone: 1, Embedding: people[0].e}}},
	}
	for n, free := range map[int]bool{1: true, 2: false} {
		w := &Window{Speech: on, Locals: locals[:n]}
		c.regroup(w)
		c.assign(w)
		if c.who[0] != 1 || (c.shares[0][0] > 0) != free {
			t.Errorf("%d talkers: the piece is %d's, shares %v", n, c.who[0], c.shares[0][:2])
		}
	}
}

// Nobody's piece has no shares, and the first one to talk has all of it.
func TestSharesOfStrangers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	w := &Window{Speech: make([]float32, 100), Locals: []Local{{Active: make([]float32, 100),
		Pieces: []Piece{{To: 100, Centre: 50, Lone: 0.5, Embedding: newSpeaker(r).e}}}}}
	fresh := New(Default(), MaxVoices)
	fresh.regroup(w)
	if fresh.assign(w); fresh.shares[0] != [MaxVoices]float32{1} {
		t.Errorf("who begins has the shares %v", fresh.shares[0])
	}
	c, _ := twoVoices(0)
	c.max = MaxVoices
	c.regroup(w)
	if c.assign(w); c.who[0] != nobody || c.shares[0] != [MaxVoices]float32{} {
		t.Errorf("who sounds like nobody is taken for %d, shares %v", c.who[0], c.shares[0])
	}
}

// However much more another voice is worth, the shares are numbers.
func TestSharesAreNumbers(t *testing.T) {
	c, people := twoVoices(0)
	taken(c, people, 0.5)
	c.worth[1] = [MaxVoices]float64{0.1, 500}
	c.who[1] = 0
	c.divide(&Window{Locals: []Local{{}}})
	if got := c.shares[1]; got != [MaxVoices]float32{0, 1} {
		t.Errorf("shares %v, want all of it the second's", got)
	}
}
