package clustering

import (
	"math/rand/v2"
	"testing"
)

// twoPeople is a session with two speakers, and the people that they are.
func twoPeople(continuityBonus float64) (*Clusterer, []person) {
	p := Default()
	p.ContinuityBonus = continuityBonus
	c := New(p, 2)
	r := rand.New(rand.NewPCG(7, 1))
	people := []person{newPerson(r), newPerson(r)}
	for _, s := range people {
		v := speaker{}
		v.add(&s.e, 20)
		v.normalise()
		c.speakers = append(c.speakers, v)
	}
	return c, people
}

// assignThree assigns three segments of one local speaker. The first and the last
// are of person 0, the middle one is a mixture with that share of person 1.
func assignThree(c *Clusterer, people []person, share float64) []int {
	mixed := unit(func(i int) float64 { return (1-share)*float64(people[0].e[i]) + share*float64(people[1].e[i]) })
	w := &Window{Speech: make([]float32, 150), Speakers: []LocalSpeaker{{Activity: make([]float32, 150)}}}
	for i, e := range []Embedding{people[0].e, mixed, people[0].e} {
		w.Speakers[0].Segments = append(w.Speakers[0].Segments, Segment{From: 50 * i, To: 50*i + 50, Centre: 50*i + 25, Duration: 1, Embedding: e})
	}
	c.clusterSegments(w)
	c.assign(w)
	return c.assigned
}

func TestContinuityOfALocalSpeaker(t *testing.T) {
	for _, x := range []struct {
		bonus, share float64
		want         int
	}{
		{0, 0.53, 1},                         // without the bonus, the more similar speaker
		{Default().ContinuityBonus, 0.53, 0}, // with it, that of the other segments
		{Default().ContinuityBonus, 0.75, 1}, // unless the segment is clearly of somebody else
	} {
		c, people := twoPeople(x.bonus)
		if got := assignThree(c, people, x.share); got[0] != 0 || got[2] != 0 || got[1] != x.want {
			t.Errorf("bonus %v, share %v: segments assigned to %v, want %d for the middle one", x.bonus, x.share, got, x.want)
		}
	}
}

// A segment cluster that is neither known nor new gets no label; where no new
// speaker is possible, it gets the nearest one.
func TestAbstention(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	known := newPerson(r)
	assigned := func(maxSpeakers int, excess float64) (int, *Clusterer) {
		c := New(Default(), maxSpeakers)
		c.speakers = append(c.speakers, speaker{})
		c.speakers[0].add(&known.e, 20)
		c.speakers[0].normalise()
		const duration = 0.8
		w := &Window{Speech: make([]float32, 100), Speakers: []LocalSpeaker{{Activity: make([]float32, 100)}}}
		for i := range 40 {
			w.Speech[i], w.Speakers[0].Activity[i] = 1, 1
		}
		cos := c.threshold(duration, &c.speakers[0]) + excess
		w.Speakers[0].Segments = []Segment{{From: 0, To: 40, Centre: 20, Duration: duration, Embedding: known.similar(cos).e}}
		c.Add(w)
		return c.assigned[0], c
	}
	margin := Default().AbstentionMargin
	for _, test := range []struct {
		maxSpeakers, want int
		excess            float64
	}{{MaxSpeakers, 0, 0.02}, {MaxSpeakers, 0, -margin + 0.01}, {MaxSpeakers, noSpeaker, -margin - 0.01}, {1, 0, -margin - 0.01}} {
		if got, c := assigned(test.maxSpeakers, test.excess); got != test.want || c.Speakers() != 1 {
			t.Errorf("%.3f from the threshold, at most %d speakers: speaker %d of %d, want %d of 1", test.excess, test.maxSpeakers, got, c.Speakers(), test.want)
		}
	}
}
