package clustering

import (
	"math/rand/v2"
	"testing"

	"hubbub/protocol/testkit"
)

// twoSpeakers is a Clusterer for at most two speakers with both of them, of that many
// segments of a second, whose centroids have a cosine of about cos.
func twoSpeakers(cos float64, segments ...int) *Clusterer {
	r := rand.New(rand.NewPCG(9, 9))
	c := New(Default(), 2)
	a := newPerson(r)
	for v, s := range []person{a, a.similar(cos)} {
		c.speakers = append(c.speakers, speaker{})
		for range segments[v] {
			e := s.segment()
			c.memory.segments = append(c.memory.segments, storedSegment{plain(e), 1, v, 0, false})
			c.speakers[v].add(&e, 1)
		}
		c.speakers[v].normalise()
	}
	return c
}

func TestSpeakersOfOnePersonAreMerged(t *testing.T) {
	c := twoSpeakers(0.85, 9, 30)
	c.aggregate.extend(2)
	c.aggregate.frames[1].speaker = [MaxSpeakers]float32{0.75, 0.5}
	c.mergeSpeakers()
	if c.speakers[1].merged() || !c.speakers[0].merged() || c.memory.count(0) != 0 || c.memory.count(1) != 39 || c.speakers[1].duration != 39 {
		t.Errorf("9 and 30 segments of one person became %d and %d", c.memory.count(0), c.memory.count(1))
	}
	if got := c.aggregate.frames[1].speaker; got[0] != 0 || got[1] != 1.25 {
		t.Errorf("frames that are not committed have the scores %v", got)
	}
	testkit.Equal(t, c.Speakers(), 2, "numbers are in use")
	c.mergeSpeakers()
	testkit.Equal(t, c.memory.count(1), 39, "a merged speaker was merged again")
	g := &segmentCluster{embedding: plain(newPerson(rand.New(rand.NewPCG(1, 2))).e), duration: 2}
	if v, _ := c.largestExcess(g, 0); v != 1 {
		t.Errorf("the nearest speaker is %d, want the only one that is not merged", v)
	}
	restored := New(Default(), 2)
	if err := restored.Restore(c.AppendSnapshot(nil)); err != nil || !restored.speakers[0].merged() || restored.speakers[1].merged() {
		t.Errorf("after Restore: %v, merged %v %v", err, restored.speakers[0].merged(), restored.speakers[1].merged())
	}
}

// A window merges them whose speech is stored.
func TestWindowsMergeSpeakers(t *testing.T) {
	c := twoSpeakers(0.85, 9, 30)
	for i, segments := range [][]Segment{nil, {{To: 250, Centre: 100, Duration: 1, Embedding: newPerson(rand.New(rand.NewPCG(1, 2))).e}}} {
		l := LocalSpeaker{Activity: make([]float32, 250), Segments: segments}
		c.Add(&Window{First: 10 * i, SpeechProbability: make([]float32, 250), Speakers: []LocalSpeaker{l}})
		if merged := c.speakers[0].merged(); merged != (segments != nil) {
			t.Errorf("after a window with %d segments: merged %v", len(segments), merged)
		}
	}
}

func TestTwoPeopleAreNotMerged(t *testing.T) {
	for name, c := range map[string]*Clusterer{
		"cosine 0.45":      twoSpeakers(0.45, 20, 20),
		"too few segments": twoSpeakers(0.9, mergeMinSegments-1, 20),
	} {
		if c.mergeSpeakers(); c.speakers[0].merged() || c.speakers[1].merged() {
			t.Errorf("%s: merged", name)
		}
	}
}
