package clustering

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTheSameSecondIsRememberedOnce plays one long turn, which every window cuts
// at other places.
func TestTheSameSecondIsRememberedOnce(t *testing.T) {
	const span, hop, ideal, frames = 250, 10, 50, 1500
	someone := newSpeaker(rand.New(rand.NewPCG(1, 7)))
	c := New(Default(), MaxVoices)
	for end := hop; end <= frames; end += hop {
		first := max(0, end-span)
		n := end - first
		w := &Window{First: first, Speech: make([]float32, n)}
		l := Local{Active: make([]float32, n)}
		for i := range n {
			w.Speech[i], l.Active[i] = 1, 1
		}
		parts := max(1, (n+ideal/2)/ideal)
		for k := range parts {
			from, to := n*k/parts, n*(k+1)/parts
			l.Pieces = append(l.Pieces, Piece{From: from, To: to, Centre: (from + to) / 2, Lone: float64(to-from) * frameSeconds, Embedding: someone.piece()})
		}
		w.Locals = append(w.Locals, l)
		c.Hear(w)
	}
	if c.Voices() != 1 {
		t.Fatalf("%d voices, want 1", c.Voices())
	}
	var remembered float64
	for _, it := range c.memory.items[1:] { // the first is what the voice was founded on
		remembered += it.weight
	}
	heard := (frames - memoryLag) * frameSeconds
	t.Logf("%.1f s remembered of %.1f s", remembered, heard)
	if remembered > 1.35*heard || remembered < 0.8*heard {
		t.Errorf("%.1f s are remembered of %.1f s of speech", remembered, heard)
	}
}

// TestWhatIsSettledIsNotReconsidered holds the shortcut to what it cuts short.
func TestWhatIsSettledIsNotReconsidered(t *testing.T) {
	s := newSession(New(Default(), MaxVoices), 3, 11)
	settled := 0
	for turn := range 20 {
		for range 15 {
			s.say(0.2, turn%3)
			if m := &s.c.memory; m.settled {
				settled++
				before := slices.Clone(s.c.voices)
				m.settled = false
				m.reconsider(s.c.voices, &s.c.p)
				if !m.settled || !slices.Equal(s.c.voices, before) {
					t.Fatalf("turn %d: a settled memory moved a voice", turn)
				}
			}
		}
	}
	if s.c.Voices() != 3 || settled < 30 {
		t.Errorf("%d voices, and the memory was settled after %d of 300 windows", s.c.Voices(), settled)
	}
}

// TestTheNearestPiecesCount asks for pieces of one voice, said before a frame.
func TestTheNearestPiecesCount(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 9))
	someone := newSpeaker(r)
	m := &memory{}
	for i, cos := range []float64{0.3, 0.8, 0.5, 0.7, 0.2, 0.95, 0.9} {
		m.items = append(m.items, item{someone.near(cos).e, 1, 0, 100 * i, unlinked})
	}
	m.items[5].voice = 1
	for _, c := range []struct {
		voice, before int
		want          float64
		ok            bool
	}{{0, 600, 2.0 / 3, true}, {0, 601, 0.8, true}, {0, 300, 1.6 / 3, true}, {0, 200, 0, false}, {1, 601, 0, false}} {
		got, ok := m.near(&someone.e, c.voice, c.before)
		if ok != c.ok || ok && math.Abs(got-c.want) > 1e-5 {
			t.Errorf("voice %d before frame %d: %.4f, %v; want %.4f, %v", c.voice, c.before, got, ok, c.want, c.ok)
		}
	}
}
