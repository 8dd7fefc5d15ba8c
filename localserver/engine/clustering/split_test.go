package clustering

import (
	"math"
	"math/rand/v2"
	"testing"
)

// remembered is a memory of pieces of a second, all given to voice 0, and that
// voice. noise is the length of what makes the pieces of one speaker differ.
func remembered(r *rand.Rand, noise float64, speakers []speaker, pieces ...int) (*memory, []voice) {
	m := &memory{}
	voices := []voice{{}}
	for i, n := range pieces {
		for range n {
			e := unit(func(k int) float64 {
				return float64(speakers[i].e[k]) + noise*r.NormFloat64()/math.Sqrt(Dim)
			})
			m.items = append(m.items, item{e, 1, 0, 0, unlinked})
			voices[0].add(&e, 1)
		}
	}
	voices[0].scale()
	return m, voices
}

var defaults = Default()

// near is a speaker whose embedding has this cosine with s's.
func (s speaker) near(cos float64) speaker {
	o := newSpeaker(s.r)
	along := o.e.Dot(&s.e)
	across := math.Sqrt(1 - along*along)
	e := unit(func(k int) float64 {
		return cos*float64(s.e[k]) + math.Sqrt(1-cos*cos)*(float64(o.e[k])-along*float64(s.e[k]))/across
	})
	return speaker{e, s.r}
}

func TestSplitTellsTwoSteadyVoicesApart(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	a := newSpeaker(r)
	b := a.near(0.45)
	m, voices := remembered(r, 0.6, []speaker{a, b}, 12, 7)
	fresh, ok := m.split(voices, 0, &defaults)
	if !ok {
		t.Fatal("two steady voices stay one")
	}
	if got := voices[0].centre.Dot(&a.e); got < 0.9 {
		t.Errorf("the label stays with a voice that has cosine %.2f with the one who said more", got)
	}
	if got := fresh.centre.Dot(&b.e); got < 0.9 {
		t.Errorf("the new voice has cosine %.2f with the one who said less", got)
	}
}

// Far microphones and restless voices make wide heaps: pieces of one person are
// alike by 0.43 here, those of two by 0.13, as in a real case.
func TestSplitTellsTwoWideVoicesApart(t *testing.T) {
	found := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 4))
		a := newSpeaker(r)
		m, voices := remembered(r, 1.15, []speaker{a, a.near(0.3)}, 26, 19)
		if _, ok := m.split(voices, 0, &defaults); ok {
			found++
		}
	}
	if found < 18 {
		t.Errorf("two people were found in %d of 20 voices", found)
	}
}

func TestSplitLeavesOneVoiceWhole(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 5))
		a := newSpeaker(r)
		for _, noise := range []float64{0.4, 0.8, 1.2} {
			m, voices := remembered(r, noise, []speaker{a}, 30)
			before := voices[0]
			if _, ok := m.split(voices, 0, &defaults); ok {
				t.Errorf("seed %d: one voice with noise %.1f became two", seed, noise)
			}
			if voices[0] != before {
				t.Errorf("seed %d: the voice changed although it was not split", seed)
			}
		}
	}
}

func TestSplitNeedsSpeechOfBoth(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	a := newSpeaker(r)
	m, voices := remembered(r, 0.6, []speaker{a, a.near(0.3)}, 12, 3)
	if _, ok := m.split(voices, 0, &defaults); ok {
		t.Error("three pieces are enough for a person of their own")
	}
}

func TestSplitOfAnEmptyVoice(t *testing.T) {
	m, voices := &memory{}, []voice{{}}
	if _, ok := m.split(voices, 0, &defaults); ok {
		t.Error("a voice of which nothing is remembered became two")
	}
}

func TestAVoiceIsLookedAtAgainWhenItsMemoryHasGrown(t *testing.T) {
	p := Default()
	p.SplitAgain = 1.4
	for _, c := range []struct{ asked, voices int }{{0, 2}, {13, 2}, {14, 1}, {19, 1}} {
		r := rand.New(rand.NewPCG(3, 3))
		a := newSpeaker(r)
		two := New(p, MaxVoices)
		m, voices := remembered(r, 0.6, []speaker{a, a.near(0.45)}, 12, 7)
		two.memory, two.voices, two.asked[0] = *m, voices, c.asked
		two.part()
		if n := two.Voices(); n != c.voices {
			t.Errorf("19 pieces are remembered, %d when it was last asked: %d voices, want %d", c.asked, n, c.voices)
		}
	}
}
