package clustering

import (
	"math"
	"math/rand/v2"
	"testing"
)

// activeAfter is the active speakers of a frame after windows of three speakers:
// for each window the activity of its local speakers, each of one segment, and the
// shares of that segment.
func activeAfter(t *testing.T, windows ...[][4]float32) uint8 {
	t.Helper()
	var a aggregate
	p := Default()
	for _, locals := range windows {
		w := &Window{Speech: make([]float32, 100)}
		var segments []segment
		var shares [][MaxSpeakers]float32
		for k, l := range locals {
			active := make([]float32, 100)
			for i := range active {
				active[i] = l[0]
				w.Speech[i] = max(w.Speech[i], l[0])
			}
			w.Speakers = append(w.Speakers, LocalSpeaker{Activity: active})
			segments = append(segments, segment{Segment: &Segment{To: 100}, local: k})
			shares = append(shares, [MaxSpeakers]float32{l[1], l[2], l[3]})
		}
		a.extend(100)
		a.add(w, segments, shares, &p)
	}
	c := Clusterer{p: p, aggregate: a, speakers: []speaker{{duration: 1}, {duration: 1}, {duration: 1}}}
	return c.Activity(0, nil)[20]
}

func TestActiveSpeakersOfAFrame(t *testing.T) {
	for name, x := range map[string]struct {
		windows [][][4]float32
		want    uint8
	}{
		"one speaker":                          {[][][4]float32{{{1, 1, 0}}}, 0b01},
		"two uncertain windows, a certain one": {[][][4]float32{{{1, 0.45, 0.55}}, {{1, 0.45, 0.55}}, {{1, 0.95, 0.05}}}, 0b01},
		"one talker, two likely speakers":      {[][][4]float32{{{1, 0.55, 0.45}}}, 0b01},
		"one talker, windows disagree":         {[][][4]float32{{{1, 0.9, 0.1}}, {{1, 0.1, 0.9}}, {{1, 0.9, 0.1}}}, 0b01},
		"two talkers":                          {[][][4]float32{{{1, 1, 0}, {1, 0, 1}}}, 0b11},
		"two talkers, three likely speakers":   {[][][4]float32{{{1, 0.8, 0, 0.2}, {1, 0, 0.8, 0.2}}}, 0b11},
		"two talkers, the second improbable":   {[][][4]float32{{{1, 1, 0}, {0.3, 0, 1}}}, 0b01},
		"two talkers, the second uncertain":    {[][][4]float32{{{1, 1, 0}, {1, 0.6, 0.4}}}, 0b11},
		"one talker, shares too small":         {[][][4]float32{{{1, 0.2, 0.1}}}, 0},
		"two talkers, shares too small":        {[][][4]float32{{{1, 0.2, 0}, {1, 0, 0.2}}}, 0},
		"one talker, nobody known":             {[][][4]float32{{{1, 0, 0}}}, 0},
		"one talker, three likely speakers":    {[][][4]float32{{{1, 0.36, 0.34, 0.3}}}, 0b01},
		"one window abstains":                  {[][][4]float32{{{1, 0.6, 0}}, {{1, 0, 0}}}, 0b01},
		"silence":                              {[][][4]float32{{{0.1, 1, 0}}}, 0},
	} {
		if got := activeAfter(t, x.windows...); got != x.want {
			t.Errorf("%s: speakers %02b, want %02b", name, got, x.want)
		}
	}
}

func TestSharesFollowTheSimilarity(t *testing.T) {
	c, people := twoPeople(0)
	for _, x := range []struct{ share, least, most float64 }{
		{0.05, 0, 0.02},   // of the less similar speaker
		{0.48, 0.25, 0.5}, // of one that is nearly as similar
	} {
		assignThree(c, people, x.share)
		got := c.shares[1]
		if second := float64(got[1]); second < x.least || second > x.most || math.Abs(float64(got[0]+got[1])-1) > 1e-6 {
			t.Errorf("%v of the other person: shares %v, want the second between %v and %v", x.share, got[:2], x.least, x.most)
		}
	}
}

// The continuity bonus applies to the shares as to the assignment.
func TestContinuityInTheShares(t *testing.T) {
	var second [2]float32
	for i, bonus := range []float64{0, Default().ContinuityBonus} {
		c, people := twoPeople(bonus)
		assignThree(c, people, 0.48)
		second[i] = c.shares[1][1]
	}
	if second[1] > second[0]/2 {
		t.Errorf("with the continuity bonus the other speaker has a share of %v, without %v", second[1], second[0])
	}
}

// A rejected segment has no shares; before the first speaker is created, speaker 0
// has all of it.
func TestSharesWithoutASpeaker(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	w := &Window{Speech: make([]float32, 100), Speakers: []LocalSpeaker{{Activity: make([]float32, 100),
		Segments: []Segment{{To: 100, Centre: 50, Duration: 0.5, Embedding: newPerson(r).e}}}}}
	empty := New(Default(), MaxSpeakers)
	empty.clusterSegments(w)
	if empty.assign(w); empty.shares[0] != [MaxSpeakers]float32{1} {
		t.Errorf("before the first speaker the shares are %v", empty.shares[0])
	}
	c, _ := twoPeople(0)
	c.max = MaxSpeakers
	c.clusterSegments(w)
	if c.assign(w); c.assigned[0] != noSpeaker || c.shares[0] != [MaxSpeakers]float32{} {
		t.Errorf("a rejected segment is assigned to %d, shares %v", c.assigned[0], c.shares[0])
	}
}

// The softmax does not overflow.
func TestSharesAreFinite(t *testing.T) {
	c, people := twoPeople(0)
	assignThree(c, people, 0.5)
	c.scores[1] = [MaxSpeakers]float64{0.1, 500}
	c.assigned[1] = 0
	c.computeShares()
	if got := c.shares[1]; got != [MaxSpeakers]float32{0, 1} {
		t.Errorf("shares %v, want all of it for the second speaker", got)
	}
}
