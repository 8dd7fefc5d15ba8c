package clustering

import "testing"

// local is a local speaker of one segment: its activity, and the speaker to which the
// segment is assigned.
type local struct {
	activity float32
	speaker  int
}

// activeAfter is the active speakers of a frame after windows of three speakers.
func activeAfter(t *testing.T, windows ...[]local) uint8 {
	t.Helper()
	var a aggregate
	p := Default()
	for _, locals := range windows {
		w := &Window{SpeechProbability: make([]float32, 100)}
		var segments []segment
		var assigned []int
		for k, l := range locals {
			active := make([]float32, 100)
			for i := range active {
				active[i] = l.activity
				w.SpeechProbability[i] = max(w.SpeechProbability[i], l.activity)
			}
			w.Speakers = append(w.Speakers, LocalSpeaker{Activity: active})
			segments = append(segments, segment{Segment: &Segment{To: 100}, local: k})
			assigned = append(assigned, l.speaker)
		}
		a.extend(100)
		a.add(w, segments, assigned, &p)
	}
	c := Clusterer{p: p, aggregate: a, speakers: []speaker{{duration: 1}, {duration: 1}, {duration: 1}}}
	return c.Activity(0, nil)[20]
}

func TestActiveSpeakersOfAFrame(t *testing.T) {
	nobody := local{1, noSpeaker}
	for name, x := range map[string]struct {
		windows [][]local
		want    uint8
	}{
		"one speaker":                        {[][]local{{{1, 0}}}, 0b01},
		"one speaker, windows disagree":      {[][]local{{{1, 0}}, {{1, 1}}, {{1, 0}}}, 0b01},
		"a weak window disagrees":            {[][]local{{{0.7, 0}}, {{1, 1}}}, 0b10},
		"one speaker in two local speakers":  {[][]local{{{1, 0}, {1, 0}}}, 0b01},
		"two at once":                        {[][]local{{{1, 0}, {1, 1}}}, 0b11},
		"two at once, three likely speakers": {[][]local{{{1, 0}, {1, 1}}, {{1, 0}, {1, 2}}, {{1, 0}, {1, 1}}}, 0b11},
		"two at once, the second improbable": {[][]local{{{1, 0}, {0.3, 1}}}, 0b01},
		"one window of five has a speaker":   {[][]local{{{1, 0}}, {nobody}, {nobody}, {nobody}, {nobody}}, 0},
		"one speaker, nobody known":          {[][]local{{nobody}}, 0},
		"one speaker, three likely ones":     {[][]local{{{1, 0}}, {{0.9, 1}}, {{0.9, 2}}}, 0b01},
		"one window without a speaker":       {[][]local{{{1, 0}}, {nobody}}, 0b01},
		"silence":                            {[][]local{{{0.1, 0}}}, 0},
	} {
		if got := activeAfter(t, x.windows...); got != x.want {
			t.Errorf("%s: speakers %02b, want %02b", name, got, x.want)
		}
	}
}
