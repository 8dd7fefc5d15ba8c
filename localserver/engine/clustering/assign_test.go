package clustering

import (
	"math/rand/v2"
	"testing"

	"hubbub/protocol/testkit"
)

// twoPeople is a session with two speakers, and the people that they are.
func twoPeople(continuityBonus float64) (*Clusterer, []person) {
	p := Default()
	p.ContinuityBonus = continuityBonus
	r := rand.New(rand.NewPCG(7, 1))
	people := []person{newPerson(r), newPerson(r)}
	return known(p, 2, people...), people
}

// assignThree assigns three segments of one local speaker. The first and the last
// are of person 0, the middle one is a mixture with that share of person 1.
func assignThree(c *Clusterer, people []person, share float64) []int {
	mixed := unit(func(i int) float64 { return (1-share)*float64(people[0].e[i]) + share*float64(people[1].e[i]) })
	w := &Window{SpeechProbability: make([]float32, 150), Speakers: []LocalSpeaker{{Activity: make([]float32, 150)}}}
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

// A segment that is like nobody has no speaker; where no other speaker is possible, it
// has the nearest one. Before the first speaker is created, all speech is that of
// speaker 0.
func TestSegmentsLikeNobody(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	stranger := newPerson(r).e
	w := &Window{SpeechProbability: make([]float32, 100), Speakers: []LocalSpeaker{{Activity: make([]float32, 100),
		Segments: []Segment{{To: 100, Centre: 50, Duration: 0.5, Embedding: stranger}}}}}
	empty := New(Default(), MaxSpeakers)
	possible, _ := twoPeople(0)
	possible.max = MaxSpeakers
	full, people := twoPeople(0)
	nearest := 0
	if stranger.Dot(&people[1].e) > stranger.Dot(&people[0].e) {
		nearest = 1
	}
	for name, x := range map[string]struct {
		c    *Clusterer
		want int
	}{"before the first speaker": {empty, 0}, "another one possible": {possible, noSpeaker}, "no other possible": {full, nearest}} {
		x.c.clusterSegments(w)
		x.c.assign(w)
		testkit.Equal(t, x.c.assigned[0], x.want, name, "assigned to")
	}
}
