package clustering

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTheSameSecondIsStoredOnce plays one long turn, which every window cuts at
// other places.
func TestTheSameSecondIsStoredOnce(t *testing.T) {
	const span, hop, ideal, frames = 250, 10, 50, 1500
	someone := newPerson(rand.New(rand.NewPCG(1, 7)))
	c := New(Default(), MaxSpeakers)
	for end := hop; end <= frames; end += hop {
		first := max(0, end-span)
		n := end - first
		w := &Window{First: first, SpeechProbability: make([]float32, n)}
		l := LocalSpeaker{Activity: make([]float32, n)}
		for i := range n {
			w.SpeechProbability[i], l.Activity[i] = 1, 1
		}
		parts := max(1, (n+ideal/2)/ideal)
		for k := range parts {
			from, to := n*k/parts, n*(k+1)/parts
			l.Segments = append(l.Segments, Segment{From: from, To: to, Centre: (from + to) / 2, Duration: float64(to-from) * FrameSeconds, Embedding: someone.segment()})
		}
		w.Speakers = append(w.Speakers, l)
		c.Add(w)
	}
	if c.Speakers() != 1 {
		t.Fatalf("%d speakers, want 1", c.Speakers())
	}
	var stored float64
	for _, s := range c.memory.segments[1:] { // the first is what created the speaker
		stored += s.duration
	}
	spoken := (frames - memoryLag) * FrameSeconds
	t.Logf("%.1f s stored of %.1f s", stored, spoken)
	if stored > 1.35*spoken || stored < 0.8*spoken {
		t.Errorf("%.1f s are stored of %.1f s of speech", stored, spoken)
	}
}

// TestAConvergedMemoryStaysConverged compares skipping reassign with doing it.
func TestAConvergedMemoryStaysConverged(t *testing.T) {
	s := newSession(New(Default(), MaxSpeakers), 3, 11)
	converged := 0
	for turn := range 20 {
		for range 15 {
			s.say(0.2, turn%3)
			if m := &s.c.memory; m.converged {
				converged++
				before := slices.Clone(s.c.speakers)
				m.converged = false
				m.reassign(s.c.speakers, &s.c.p)
				if !m.converged || !slices.Equal(s.c.speakers, before) {
					t.Fatalf("turn %d: a converged memory changed a speaker", turn)
				}
			}
		}
	}
	if s.c.Speakers() != 3 || converged < 30 {
		t.Errorf("%d speakers, and the memory had converged after %d of 300 windows", s.c.Speakers(), converged)
	}
}

// A speaker that is created when the memory is full makes the next window thin it, whatever that
// window has to store.
func TestAThinnedMemoryHasNotConverged(t *testing.T) {
	c := full(rand.New(rand.NewPCG(6, 2)))
	c.memory.append(storedSegment{embedding: plain(onAxis(0)), duration: 1})
	c.memory.converged = true
	if c.memory.add(&Window{First: 1000}, nil, &c.p) || len(c.memory.segments) >= memoryMax {
		t.Fatalf("%d segments", len(c.memory.segments))
	}
	if c.memory.converged {
		t.Error("the speakers are taken for those of the segments that are left")
	}
}

func TestNearestStoredSegments(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 9))
	someone := newPerson(r)
	reference := plain(someone.e)
	m := &memory{}
	for i, cos := range []float64{0.3, 0.8, 0.5, 0.7, 0.2, 0.95, 0.9} {
		m.segments = append(m.segments, storedSegment{plain(someone.similar(cos).e), 1, 0, 100 * i, false})
	}
	m.segments[5].speaker = 1
	for _, c := range []struct {
		speaker, before int
		want            float64
		ok              bool
	}{{0, 600, 2.0 / 3, true}, {0, 601, 0.8, true}, {0, 300, 1.6 / 3, true}, {0, 200, 0, false}, {1, 601, 0, false}} {
		got, ok := m.nearest(&reference, c.speaker, c.before)
		if ok != c.ok || ok && math.Abs(got-c.want) > 1e-5 {
			t.Errorf("speaker %d before frame %d: %.4f, %v; want %.4f, %v", c.speaker, c.before, got, ok, c.want, c.ok)
		}
	}
}
