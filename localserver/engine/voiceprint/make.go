package voiceprint

import (
	"errors"
	"fmt"
	"math"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/features"
	"hubbub/localserver/engine/inference"
)

const (
	// MaxSeconds is the maximum length of the audio of a voiceprint.
	MaxSeconds = 30
	// MinSpeech is the speech that a voiceprint needs, in seconds.
	MinSpeech = 2

	stepSamples = 1600
	hopSamples  = 2 * stepSamples
	// padding is silence after the audio, in samples: speech is stored when the
	// networks have seen what follows it.
	padding = 2 * features.SampleRate
	// silence is the RMS below which the audio counts as silent.
	silence = 1e-4
	// secondPerson is the speech of a second speaker, in seconds, from which the
	// audio is of two people.
	secondPerson = 1.5
	// samePerson is the probability from which two speakers are one person whom
	// the clustering has divided.
	samePerson = 0.5
)

// The errors of Make. The audio is at fault, not the program.
var (
	ErrTooLong   = fmt.Errorf("the audio is longer than %d s", MaxSeconds)
	ErrSilence   = errors.New("the audio is silent")
	ErrNoSpeech  = errors.New("no speech was found in the audio, only noise or music")
	ErrTooShort  = errors.New("the audio has too little speech")
	ErrTwoPeople = errors.New("more than one person speaks in the audio")
)

// Make makes a voiceprint from audio of one person: 16 kHz, mono, at most
// MaxSeconds. The error is one of those above, or says that the networks cannot
// be loaded.
func Make(samples []float32) (Voiceprint, error) {
	if len(samples) > MaxSeconds*features.SampleRate {
		return Voiceprint{}, ErrTooLong
	}
	m, err := NewMaker()
	if err != nil {
		return Voiceprint{}, err
	}
	m.Push(samples)
	return m.Voiceprint()
}

// Maker makes a voiceprint while the audio arrives.
type Maker struct {
	windows   *inference.Stream
	clusterer *clustering.Clusterer
	pending   []float32
	energy    float64
	samples   int
	frames    int
	speech    int // frames with speech
}

// NewMaker returns a Maker. An error says that the networks cannot be loaded.
func NewMaker() (*Maker, error) {
	w, err := inference.New(hopSamples)
	if err != nil {
		return nil, err
	}
	return &Maker{windows: w, clusterer: clustering.New(clustering.Default(), clustering.MaxSpeakers)}, nil
}

// Push takes the next samples. Those beyond MaxSeconds, and any that are not
// finite, are left out.
func (m *Maker) Push(samples []float32) {
	for _, x := range samples[:min(len(samples), max(0, MaxSeconds*features.SampleRate-m.samples))] {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			x = 0
		}
		x = min(max(x, -8), 8)
		m.samples++
		m.energy += float64(x) * float64(x)
		m.push(x)
	}
}

func (m *Maker) push(x float32) {
	if m.pending = append(m.pending, x); len(m.pending) < stepSamples {
		return
	}
	if w := m.windows.Push(m.pending, false); w != nil {
		m.clusterer.Add(w)
		m.count(w)
	}
	m.pending = m.pending[:0]
}

// count counts the frames of speech that a window is the first to show.
func (m *Maker) count(w *clustering.Window) {
	for i, p := range w.Speech {
		if w.First+i >= m.frames {
			m.frames = w.First + i + 1
			if p > 0.5 {
				m.speech++
			}
		}
	}
}

// Full reports whether more audio would be left out.
func (m *Maker) Full() bool { return m.samples >= MaxSeconds*features.SampleRate }

// Seconds is how much speech was found so far.
func (m *Maker) Seconds() float64 { return float64(m.speech) * 0.02 }

// Voiceprint ends the audio and returns its voiceprint, or an error of Make. The
// Maker cannot be used afterwards.
func (m *Maker) Voiceprint() (Voiceprint, error) {
	if math.Sqrt(m.energy/float64(max(1, m.samples))) < silence {
		return Voiceprint{}, ErrSilence
	}
	found := m.Seconds()
	for range padding {
		m.push(0)
	}
	var first, second Voiceprint
	for k := range m.clusterer.Speakers() {
		v := newVoiceprint(m.clusterer.Speech(k))
		if v.duration > first.duration {
			first, second = v, first
		} else if v.duration > second.duration {
			second = v
		}
	}
	switch {
	case second.duration >= secondPerson && probability(&second.centroid, second.duration, first) < samePerson:
		return Voiceprint{}, ErrTwoPeople
	case first.duration == 0 && found < MinSpeech/4.:
		return Voiceprint{}, ErrNoSpeech
	case min(first.duration, found) < MinSpeech: // what created the speaker can be stored again as a segment
		return Voiceprint{}, fmt.Errorf("%w: %.1f s were found, %d s are needed", ErrTooShort, found, MinSpeech)
	}
	return first, nil
}
