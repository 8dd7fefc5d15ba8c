package clustering

import (
	"math/rand/v2"
	"testing"

	"hubbub/protocol/testkit"
)

// talking is a window of local speakers, each of which talks in its spans of frames.
func talking(speakers ...[][2]int) *Window {
	const frames = 250
	w := &Window{SpeechProbability: make([]float32, frames)}
	for _, spans := range speakers {
		l := LocalSpeaker{Activity: make([]float32, frames)}
		for _, s := range spans {
			for i := s[0]; i < s[1]; i++ {
				l.Activity[i], w.SpeechProbability[i] = 1, 1
			}
		}
		w.Speakers = append(w.Speakers, l)
	}
	return w
}

func TestALinkNeedsSpeechWithoutAPause(t *testing.T) {
	for _, c := range []struct {
		name string
		w    *Window
		at   int // the centre of the segment stored before
		want bool
	}{
		{"one local speaker continues", talking([][2]int{{0, 250}}), 50, true},
		{"with a short pause", talking([][2]int{{0, 80}, {80 + maxLinkPause, 250}}), 50, true},
		{"after a pause", talking([][2]int{{0, 80}, {80 + maxLinkPause + 1, 250}}), 50, false},
		{"another local speaker talked", talking([][2]int{{90, 250}}, [][2]int{{0, 80}}), 50, false},
		{"the stored segment is older than the window", talking([][2]int{{0, 250}}), -1, false},
		{"the stored segment is later", talking([][2]int{{0, 250}}), 200, false},
	} {
		c.w.First = 1000
		m := &memory{segments: []storedSegment{{at: 1000 + c.at}}}
		s := segment{Segment: &Segment{Centre: 160}}
		testkit.Equal(t, m.continues(c.w, &s), c.want, c.name)
	}
	if (&memory{}).continues(talking([][2]int{{0, 250}}), &segment{Segment: &Segment{Centre: 160}}) {
		t.Error("the first segment of a session is linked")
	}
}

// Three stored segments, the middle one a little more similar to the other speaker.
func TestLinksDecideBetweenSimilarSpeakers(t *testing.T) {
	for _, c := range []struct {
		name  string
		links bool
		share float64
		want  int
	}{
		{"no links", false, 0.53, 1},
		{"links", true, 0.53, 0},
		{"links, but clearly the other", true, 0.75, 1},
	} {
		clusterer, people := twoPeople(0)
		m := &clusterer.memory
		mixed := unit(func(i int) float64 { return (1-c.share)*float64(people[0].e[i]) + c.share*float64(people[1].e[i]) })
		m.segments = []storedSegment{{plain(people[0].e), 1, 0, 0, false}, {plain(mixed), 1, noSpeaker, 50, c.links}, {plain(people[0].e), 1, 0, 100, c.links}}
		m.reassign(clusterer.speakers, &clusterer.p)
		testkit.Equal(t, m.segments[1].speaker, c.want, c.name, "speaker")
	}
}

// A link over deleted segments holds only when all segments between were linked.
func TestThinKeepsTheLinksThatHold(t *testing.T) {
	m := &memory{}
	r := rand.New(rand.NewPCG(2, 2))
	for i := range 16 {
		m.segments = append(m.segments, storedSegment{plain(newPerson(r).e), 1, 0, i, i%4 != 0}) // chains of four
	}
	m.thin()
	want := map[int]bool{1: false, 3: true, 5: false, 7: true, 8: false, 9: true, 12: false, 15: true}
	for _, s := range m.segments {
		if w, ok := want[s.at]; ok && s.continues != w {
			t.Errorf("segment %d is linked: %v, want %v", s.at, s.continues, w)
		}
	}
	if len(m.segments) != 12 {
		t.Errorf("%d of 16 segments are left, want 12", len(m.segments))
	}
}
