package clustering

import (
	"math"
	"math/rand/v2"
	"testing"

	"hubbub/protocol/testkit"
)

// person is a made-up person: an embedding from which each segment differs.
type person struct {
	e Embedding
	r *rand.Rand
}

func newPerson(r *rand.Rand) person {
	return person{unit(func(int) float64 { return r.NormFloat64() }), r}
}

// segment is the person's embedding with noise of about its own length: its
// cosine with the person is about 0.7, as that of a real second of speech.
func (s person) segment() Embedding {
	return unit(func(i int) float64 { return float64(s.e[i]) + s.r.NormFloat64()/math.Sqrt(Dim) })
}

// similar is a person whose embedding has this cosine with s's.
func (s person) similar(cos float64) person {
	o := newPerson(s.r)
	along := o.e.Dot(&s.e)
	across := math.Sqrt(1 - along*along)
	e := unit(func(k int) float64 {
		return cos*float64(s.e[k]) + math.Sqrt(1-cos*cos)*(float64(o.e[k])-along*float64(s.e[k]))/across
	})
	return person{e, s.r}
}

func unit(f func(i int) float64) Embedding {
	var v [Dim]float64
	for i := range v {
		v[i] = f(i)
	}
	return Unit(&v)
}

// known is a Clusterer with speakers, 20 s of each person.
func known(p Params, most int, people ...person) *Clusterer {
	c := New(p, most)
	for _, s := range people {
		v := speaker{}
		v.add(&s.e, 20)
		v.normalise()
		c.speakers = append(c.speakers, v)
	}
	return c
}

// session plays turns, each of one person or of two at once, as windows of 5 s
// every 0.2 s, and commits the activity of each frame a second later.
type session struct {
	c          *Clusterer
	talking    [][]int // people of each frame
	committed  []uint8
	embeddings map[int]Embedding // by person and second
	people     []person
}

func newSession(c *Clusterer, people int, seed uint64) *session {
	r := rand.New(rand.NewPCG(seed, 1))
	s := &session{c: c, embeddings: map[int]Embedding{}}
	for range people {
		s.people = append(s.people, newPerson(r))
	}
	return s
}

// say lets people talk for so many seconds; none is silence.
func (s *session) say(seconds float64, people ...int) {
	for range int(seconds * 50) {
		s.talking = append(s.talking, people)
		if n := len(s.talking); n%10 == 0 {
			s.add(n)
		}
	}
}

// add adds the window that ends at frame n.
func (s *session) add(n int) {
	const span = 250
	first := max(0, n-span)
	w := &Window{First: first, SpeechProbability: make([]float32, n-first)}
	for v := range s.people {
		l := LocalSpeaker{Activity: make([]float32, n-first)}
		alone, active := make([]bool, n-first), false
		for i := range l.Activity {
			for _, k := range s.talking[first+i] {
				w.SpeechProbability[i] = 1
				if k == v {
					l.Activity[i] = 1
					active = true
					alone[i] = len(s.talking[first+i]) == 1
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
			p := Segment{From: (end + from) / 2, To: len(alone), Centre: (from + i) / 2, Duration: float64(i-from) * FrameSeconds}
			if len(l.Segments) == 0 {
				p.From = 0
			} else {
				l.Segments[len(l.Segments)-1].To = p.From
			}
			p.Embedding = s.embed(v, (first+p.Centre)/50)
			l.Segments = append(l.Segments, p)
			end = i
		}
		if !active {
			continue
		}
		if len(l.Segments) == 0 {
			l.Segments = []Segment{{To: len(alone), Embedding: s.embed(v, n/50)}}
		}
		w.Speakers = append(w.Speakers, l)
	}
	s.c.Add(w)
	// Commit what is a second old.
	if at := n - 50; at > len(s.committed) {
		s.committed = append(s.committed, s.c.Activity(len(s.committed), nil)[:at-len(s.committed)]...)
		s.c.Discard(len(s.committed) - span)
	}
}

// embed is the embedding of one second of a person, the same at each call.
func (s *session) embed(v, second int) Embedding {
	key := v*1_000_000 + second
	if _, ok := s.embeddings[key]; !ok {
		s.embeddings[key] = s.people[v].segment()
	}
	return s.embeddings[key]
}

// label is the speaker of most frames between two times, in seconds, and its
// share of them.
func (s *session) label(from, to float64) (speaker int, share float64) {
	var count [MaxSpeakers]int
	a, b := int(from*50), int(to*50)
	for _, bits := range s.committed[a:b] {
		for v := range count {
			if bits>>v&1 != 0 {
				count[v]++
			}
		}
	}
	for v := range count {
		if count[v] > count[speaker] {
			speaker = v
		}
	}
	return speaker, float64(count[speaker]) / float64(b-a)
}

func TestSpeakersKeepTheirNumbers(t *testing.T) {
	s := newSession(New(Default(), MaxSpeakers), 3, 1)
	s.say(8, 0)
	s.say(0.5)
	s.say(8, 1)
	s.say(8, 0)
	s.say(70, 1) // person 0 is silent for more than a minute
	s.say(8, 0)
	s.say(8, 2)
	s.say(8, 1)
	s.say(3)
	testkit.Equal(t, s.c.Speakers(), 3, "speakers for 3 people")
	for _, c := range []struct{ from, to, want float64 }{{2, 8, 0}, {12, 16, 1}, {18, 24, 0}, {30, 94, 1}, {96, 102, 0}, {106, 110, 2}, {112, 118, 1}} {
		if v, share := s.label(c.from, c.to); v != int(c.want) || share < 0.9 {
			t.Errorf("from %v to %v s %.0f %% of the frames are speaker %d, want %v", c.from, c.to, 100*share, v, c.want)
		}
	}
}

func TestOverlapHasTwoSpeakers(t *testing.T) {
	s := newSession(New(Default(), MaxSpeakers), 2, 2)
	s.say(8, 0)
	s.say(8, 1)
	s.say(2, 0, 1)
	s.say(6, 1)
	for i, bits := range s.committed[16*50+25 : 17*50+25] {
		if bits != 3 {
			t.Fatalf("%.2f s into the overlap the speakers are %b, want both", 0.5+float64(i)/50, bits)
		}
	}
}

func TestShortSpeechCreatesNoSpeaker(t *testing.T) {
	s := newSession(New(Default(), MaxSpeakers), 2, 3)
	s.say(8, 0)
	for range 5 {
		s.say(0.5, 1)
		s.say(7, 0)
	}
	testkit.Equal(t, s.c.Speakers(), 1, "half seconds of a second person created a speaker: there")
}

// Less speech than NewSpeakerDuration needs a larger margin.
func TestShortClusterNeedsALargerMargin(t *testing.T) {
	p := Default()
	short, least := p.NewSpeakerMinDuration+0.05, p.NewSpeakerMinDuration-0.05
	for _, c := range []struct {
		duration, below float64 // seconds, cosine below NewSpeakerMargin
		speakers        int
	}{{p.NewSpeakerDuration, 0.01, 2}, {short, 0.01, 1}, {short, 0.05, 2}, {least, 0.05, 1}} {
		someone := newPerson(rand.New(rand.NewPCG(7, 1)))
		one := known(p, MaxSpeakers, someone)
		cos := one.threshold(c.duration, &one.speakers[0]) - p.NewSpeakerMargin - c.below
		one.clusters = []segmentCluster{{embedding: plain(someone.similar(cos).e), duration: c.duration}}
		one.createSpeakers(&Window{})
		one.createSpeakers(&Window{})
		if n := one.Speakers(); n != c.speakers {
			t.Errorf("%.2f s, %.2f below the margin: %d speakers, want %d", c.duration, c.below, n, c.speakers)
		}
	}
}

// A new speaker must meet the criteria in two consecutive windows.
func TestANewSpeakerIsConfirmed(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 1))
	someone, fresh := newPerson(r), newPerson(r)
	for _, c := range []struct {
		name     string
		windows  []*Embedding
		speakers int
	}{
		{"once", []*Embedding{&fresh.e}, 1},
		{"twice", []*Embedding{&fresh.e, &fresh.e}, 2},
		{"with a window between", []*Embedding{&fresh.e, &someone.e, &fresh.e}, 1},
	} {
		one := known(Default(), MaxSpeakers, someone)
		for _, e := range c.windows {
			one.clusters = []segmentCluster{{embedding: plain(*e), duration: 3}}
			one.createSpeakers(&Window{})
		}
		if n := one.Speakers(); n != c.speakers {
			t.Errorf("%s: %d speakers, want %d", c.name, n, c.speakers)
		}
	}
}

func TestMaximumOfSpeakers(t *testing.T) {
	for _, most := range []int{1, 3, 8} {
		s := newSession(New(Default(), most), 10, 4)
		for range 2 {
			for v := range 10 {
				s.say(6, v)
			}
		}
		s.say(2)
		testkit.Equal(t, s.c.Speakers(), most, "speakers for ten people")
		_, share := s.label(5, 115)
		if most == 1 && share < 0.95 {
			t.Errorf("with one label only %.0f %% of the speech has it", 100*share)
		}
	}
}

func TestTheMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("27 minutes of speech")
	}
	s := newSession(New(Default(), MaxSpeakers), 2, 5)
	for range 80 {
		s.say(10, 0)
		s.say(10, 1)
	}
	if n := len(s.c.memory.segments); n > memoryMax {
		t.Errorf("%d segments are stored, want at most %d", n, memoryMax)
	}
	if n := len(s.c.aggregate.frames); n > 1000 {
		t.Errorf("%d frames are kept", n)
	}
	if v, _ := s.label(1591, 1598); v != 1 {
		t.Errorf("after 26 minutes person 1 is speaker %d", v)
	}
}
