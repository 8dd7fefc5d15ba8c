package clustering

import (
	"math"
	"math/rand/v2"
	"testing"
)

// speaker is a made-up voice: an embedding from which each piece differs.
type speaker struct {
	e Embedding
	r *rand.Rand
}

func newSpeaker(r *rand.Rand) speaker {
	return speaker{unit(func(int) float64 { return r.NormFloat64() }), r}
}

// piece is the speaker's embedding with noise of about its own length: its
// cosine with the speaker is about 0.7, as a real second of speech has.
func (s speaker) piece() Embedding {
	return unit(func(i int) float64 { return float64(s.e[i]) + s.r.NormFloat64()/math.Sqrt(Dim) })
}

func unit(f func(i int) float64) (e Embedding) {
	var norm float64
	var v [Dim]float64
	for i := range v {
		v[i] = f(i)
		norm += v[i] * v[i]
	}
	for i := range v {
		e[i] = float32(v[i] / math.Sqrt(norm))
	}
	return e
}

// session plays turns, each of one speaker, or of two at once, as windows of
// 5 s every 0.2 s, and keeps what was thought of each frame a second later.
type session struct {
	c       *Clusterer
	who     [][]int // speakers of each frame
	said    []uint8
	pieces  map[int][]Embedding // by speaker and second
	voices  []speaker
	windows int
}

func newSession(c *Clusterer, speakers int, seed uint64) *session {
	r := rand.New(rand.NewPCG(seed, 1))
	s := &session{c: c, pieces: map[int][]Embedding{}}
	for range speakers {
		s.voices = append(s.voices, newSpeaker(r))
	}
	return s
}

// say lets speakers talk for so many seconds; none is silence.
func (s *session) say(seconds float64, speakers ...int) {
	for range int(seconds * 50) {
		s.who = append(s.who, speakers)
		if n := len(s.who); n%10 == 0 {
			s.hear(n)
		}
	}
}

// hear gives the window that ends at frame n.
func (s *session) hear(n int) {
	const span = 250
	first := max(0, n-span)
	w := &Window{First: first, Speech: make([]float32, n-first)}
	for v := range s.voices {
		l := Local{Active: make([]float32, n-first)}
		alone, heard := make([]bool, n-first), false
		for i := range l.Active {
			for _, k := range s.who[first+i] {
				w.Speech[i] = 1
				if k == v {
					l.Active[i] = 1
					heard = true
					alone[i] = len(s.who[first+i]) == 1
				}
			}
		}
		end := 0
		for i := 0; i < len(alone); i++ {
			from := i
			for i < len(alone) && alone[i] && i-from < 50 {
				i++
			}
			if i-from < 20 {
				continue
			}
			p := Piece{From: (end + from) / 2, To: len(alone), Centre: (from + i) / 2, Lone: float64(i-from) * frameSeconds}
			if len(l.Pieces) == 0 {
				p.From = 0
			} else {
				l.Pieces[len(l.Pieces)-1].To = p.From
			}
			p.Embedding = s.embed(v, (first+p.Centre)/50)
			l.Pieces = append(l.Pieces, p)
			end = i
		}
		if !heard {
			continue
		}
		if len(l.Pieces) == 0 {
			l.Pieces = []Piece{{To: len(alone), Embedding: s.embed(v, n/50)}}
		}
		w.Locals = append(w.Locals, l)
	}
	s.c.Hear(w)
	s.windows++
	// Commit what is a second old.
	if at := n - 50; at > len(s.said) {
		s.said = append(s.said, s.c.Opinion(len(s.said), nil)[:at-len(s.said)]...)
		s.c.Forget(len(s.said) - span)
	}
}

// embed is how a speaker sounds in one second: the same each time it is asked.
func (s *session) embed(v, second int) Embedding {
	key := v*1_000_000 + second
	if _, ok := s.pieces[key]; !ok {
		s.pieces[key] = []Embedding{s.voices[v].piece()}
	}
	return s.pieces[key][0]
}

// label is the voice that most frames between two times, in seconds, were
// given, and what share of them.
func (s *session) label(from, to float64) (voice int, share float64) {
	var count [MaxVoices]int
	a, b := int(from*50), int(to*50)
	for _, bits := range s.said[a:b] {
		for v := range count {
			if bits>>v&1 != 0 {
				count[v]++
			}
		}
	}
	for v := range count {
		if count[v] > count[voice] {
			voice = v
		}
	}
	return voice, float64(count[voice]) / float64(b-a)
}

func TestVoicesKeepTheirNumbers(t *testing.T) {
	s := newSession(New(Default(), MaxVoices), 3, 1)
	s.say(8, 0)
	s.say(0.5)
	s.say(8, 1)
	s.say(8, 0)
	s.say(70, 1) // speaker 0 is silent for more than a minute
	s.say(8, 0)
	s.say(8, 2)
	s.say(8, 1)
	s.say(3)
	if s.c.Voices() != 3 {
		t.Errorf("%d voices were founded for 3 speakers", s.c.Voices())
	}
	for _, c := range []struct{ from, to, want float64 }{{2, 8, 0}, {12, 16, 1}, {18, 24, 0}, {30, 94, 1}, {96, 102, 0}, {106, 110, 2}, {112, 118, 1}} {
		if v, share := s.label(c.from, c.to); v != int(c.want) || share < 0.9 {
			t.Errorf("from %v to %v s %.0f %% of the frames are voice %d, want %v", c.from, c.to, 100*share, v, c.want)
		}
	}
}

func TestOverlapIsTwoVoices(t *testing.T) {
	s := newSession(New(Default(), MaxVoices), 2, 2)
	s.say(8, 0)
	s.say(8, 1)
	s.say(2, 0, 1)
	s.say(6, 1)
	for i, bits := range s.said[16*50+25 : 17*50+25] {
		if bits != 3 {
			t.Fatalf("%.2f s into the overlap the voices are %b, want both", 0.5+float64(i)/50, bits)
		}
	}
}

func TestAShortVoiceFoundsNothing(t *testing.T) {
	s := newSession(New(Default(), MaxVoices), 2, 3)
	s.say(8, 0)
	for range 5 {
		s.say(0.5, 1)
		s.say(7, 0)
	}
	if s.c.Voices() != 1 {
		t.Errorf("half seconds of a second speaker founded a voice: there are %d", s.c.Voices())
	}
}

// A voice that is new itself is not known well enough to tell others from it by a
// second of speech, unless they sound like nobody at all.
func TestWhoSoundsLikeNobodyIsFoundedEarly(t *testing.T) {
	p := Default()
	p.Match, p.MatchSlope, p.OldSlope, p.Adapt, p.Nobody = 0.6, 0, 0.08, 0, 0.2
	p.Found, p.FoundLeast, p.FoundMargin, p.FoundSteep = 1.6, 0.85, 0.05, 0.3
	for _, c := range []struct {
		like, lone float64
		voices     int
	}{{0.15, 1, 2}, {0.15, 0.8, 1}, {0.25, 1, 1}, {0.15, 1.7, 2}} {
		known := newSpeaker(rand.New(rand.NewPCG(7, 1)))
		one := New(p, MaxVoices)
		one.voices = []voice{{}}
		one.voices[0].add(&known.e, 2)
		one.voices[0].scale()
		one.groups = []group{{embedding: known.near(c.like).e, lone: c.lone, coherence: 1}}
		one.meet(&Window{})
		one.meet(&Window{})
		if n := one.Voices(); n != c.voices {
			t.Errorf("%.2f s with a cosine of %.2f: %d voices, want %d", c.lone, c.like, n, c.voices)
		}
	}
}

// What sounds like somebody new in one window only is the way that this window cut
// its speech.
func TestAVoiceIsFoundedWhenItAsksAgain(t *testing.T) {
	p := Default()
	r := rand.New(rand.NewPCG(11, 1))
	known, fresh, odd := newSpeaker(r), newSpeaker(r), newSpeaker(r)
	for _, c := range []struct {
		name    string
		windows []*Embedding
		voices  int
	}{
		{"once", []*Embedding{&fresh.e}, 1},
		{"twice", []*Embedding{&fresh.e, &fresh.e}, 2},
		{"two that are not alike", []*Embedding{&fresh.e, &odd.e}, 1},
		{"with a window between", []*Embedding{&fresh.e, &known.e, &fresh.e}, 1},
	} {
		one := New(p, MaxVoices)
		one.voices = []voice{{}}
		one.voices[0].add(&known.e, 20)
		one.voices[0].scale()
		for _, e := range c.windows {
			one.groups = []group{{embedding: *e, lone: 3, coherence: 1}}
			one.meet(&Window{})
		}
		if n := one.Voices(); n != c.voices {
			t.Errorf("%s: %d voices, want %d", c.name, n, c.voices)
		}
	}
}

func TestNeverMoreVoicesThanAsked(t *testing.T) {
	for _, most := range []int{1, 3, 8} {
		s := newSession(New(Default(), most), 10, 4)
		for range 2 {
			for v := range 10 {
				s.say(6, v)
			}
		}
		s.say(2)
		if s.c.Voices() != most {
			t.Errorf("%d voices were founded for ten speakers, want %d", s.c.Voices(), most)
		}
		_, share := s.label(5, 115)
		if most == 1 && share < 0.95 {
			t.Errorf("with one label only %.0f %% of the speech has it", 100*share)
		}
	}
}

func TestTheMemoryIsBounded(t *testing.T) {
	s := newSession(New(Default(), MaxVoices), 2, 5)
	for range 80 {
		s.say(10, 0)
		s.say(10, 1)
	}
	if n := len(s.c.memory.items); n > memoryMost {
		t.Errorf("%d pieces are remembered, at most %d should be", n, memoryMost)
	}
	if n := len(s.c.belief.marks); n > 1000 {
		t.Errorf("%d frames are kept", n)
	}
	if v, _ := s.label(1591, 1598); v != 1 {
		t.Errorf("after 26 minutes speaker 1 is voice %d", v)
	}
}

func TestParamsHaveNames(t *testing.T) {
	p := Default()
	if err := p.Set("match", 0.25); err != nil || p.Match != 0.25 {
		t.Errorf("match is %v after it was set, error %v", p.Match, err)
	}
	if v, ok := p.Get("MATCH"); !ok || v != 0.25 {
		t.Errorf("match reads %v, %v", v, ok)
	}
	if err := p.Set("nonsense", 1); err == nil {
		t.Error("an unknown name was set")
	}
}

func BenchmarkHear(b *testing.B) {
	s := newSession(New(Default(), MaxVoices), 4, 6)
	for v := range 40 {
		s.say(6, v%4)
	}
	n := len(s.who)
	b.ReportAllocs()
	for b.Loop() {
		s.who = append(s.who, s.who[n-200])
		s.hear(len(s.who))
	}
}
