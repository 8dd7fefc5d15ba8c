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
	// minSpeech is the speech that a voiceprint needs, in seconds.
	minSpeech = 2

	stepSamples = 1600
	hopSamples  = 2 * stepSamples
	// padding is silence after the audio, in samples: speech is stored when the
	// networks have seen what follows it.
	padding = 2 * features.SampleRate
	// silence is the RMS below which the audio counts as silent.
	silence = 1e-4
	// secondPerson is the speech of a second speaker, in seconds, from which the
	// audio can be of two people.
	secondPerson = 2.5
	// samePerson is the cosine from which two speakers are one person whom the
	// clustering has divided. Of 371 clips of one person 5 % are refused, of 413 of two
	// people 77 % (docs/experiments/names-two-people.md).
	samePerson = 0.45
	// voiceLike is the similarity to the cohort of the clustering, which is of real
	// voices, from which audio is a voice. 148 voices, some of them through channels,
	// have at least 0.486, three synthetic ones 0.467; of eleven synthesised pieces of
	// music that the segmentation takes for speech eight have less.
	voiceLike = 0.455
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
// MaxSeconds. The error is one of those above.
func Make(samples []float32) (Voiceprint, error) {
	if len(samples) > MaxSeconds*features.SampleRate {
		return Voiceprint{}, ErrTooLong
	}
	m := NewMaker()
	m.Push(samples)
	return m.Voiceprint()
}

// Maker makes a voiceprint while the audio arrives.
type Maker struct {
	windows   *inference.Stream
	clusterer *clustering.Clusterer
	one       *clustering.Clusterer // takes all of the audio for one person's
	samples   []float32
	pushed    int // samples that the networks have seen
	energy    float64
	frames    int
	speech    int // frames with speech
}

// NewMaker returns a Maker.
func NewMaker() *Maker {
	return &Maker{windows: inference.New(hopSamples), clusterer: clustering.New(clustering.Default(), clustering.MaxSpeakers), one: onePerson()}
}

func onePerson() *clustering.Clusterer { return clustering.New(clustering.Default(), 1) }

// Push takes the next samples. Those beyond MaxSeconds are left out; those that are
// not finite count as silence.
func (m *Maker) Push(samples []float32) {
	for _, x := range samples[:min(len(samples), max(0, MaxSeconds*features.SampleRate-len(m.samples)))] {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			x = 0
		}
		x = min(max(x, -8), 8)
		m.energy += float64(x) * float64(x)
		m.samples = append(m.samples, x)
	}
	for ; len(m.samples)-m.pushed >= stepSamples; m.pushed += stepSamples {
		m.push(m.samples[m.pushed : m.pushed+stepSamples])
	}
}

func (m *Maker) push(step []float32) {
	if w := m.windows.Push(step, false); w != nil {
		m.clusterer.Add(w)
		m.one.Add(w)
		m.count(w)
	}
}

// count counts the frames of speech that a window is the first to show.
func (m *Maker) count(w *clustering.Window) {
	for i, p := range w.SpeechProbability {
		if w.First+i >= m.frames {
			m.frames = w.First + i + 1
			if p > clustering.ActiveThreshold {
				m.speech++
			}
		}
	}
}

// Full reports whether more audio would be left out.
func (m *Maker) Full() bool { return len(m.samples) >= MaxSeconds*features.SampleRate }

// Seconds is how much speech was found so far.
func (m *Maker) Seconds() float64 { return float64(m.speech) * clustering.FrameSeconds }

// Voiceprint ends the audio and returns its voiceprint, or an error of Make. The
// Maker cannot be used afterwards.
func (m *Maker) Voiceprint() (Voiceprint, error) {
	if math.Sqrt(m.energy/float64(max(1, len(m.samples)))) < silence {
		return Voiceprint{}, ErrSilence
	}
	found := m.Seconds()
	last := append(m.samples[m.pushed:len(m.samples):len(m.samples)], make([]float32, padding)...)
	for ; len(last) >= stepSamples; last = last[stepSamples:] {
		m.push(last[:stepSamples])
	}
	var first, second clustering.TimedEmbedding
	for k := range m.clusterer.Speakers() {
		if s := m.clusterer.StoredCentroid(k); s.Duration > first.Duration {
			first, second = s, first
		} else if s.Duration > second.Duration {
			second = s
		}
	}
	// What created a speaker can be stored again as a segment.
	usable := min(first.Duration+second.Duration, found)
	switch {
	case second.Duration >= secondPerson && first.Embedding.Dot(&second.Embedding) < samePerson:
		return Voiceprint{}, ErrTwoPeople
	case first.Duration == 0 && found < minSpeech/4.:
		return Voiceprint{}, ErrNoSpeech
	case usable < minSpeech:
		return Voiceprint{}, tooShort(usable)
	}
	v := m.embed()
	if clustering.CohortSimilarity(&v.embeddings[recorded]) < voiceLike {
		return Voiceprint{}, ErrNoSpeech
	}
	return v, nil
}

// tooShort is ErrTooShort with the seconds of speech, rounded down: 2.0 s would not be too short.
func tooShort(usable float64) error {
	return fmt.Errorf("%w: %.1f s can be used, %d s are needed", ErrTooShort, math.Floor(10*usable)/10, minSpeech)
}

// embed makes the voiceprint of audio that is known to be of one person.
func (m *Maker) embed() Voiceprint {
	asRecorded := m.one.StoredCentroid(0)
	embeddings := [conditions]clustering.Embedding{recorded: asRecorded.Embedding}
	for k, samples := range map[int][]float32{telephone: simulateTelephone(m.samples), farField: simulateFarField(m.samples)} {
		windows, one := inference.New(hopSamples), onePerson()
		for samples = append(samples, make([]float32, padding)...); len(samples) >= stepSamples; samples = samples[stepSamples:] {
			if w := windows.Push(samples[:stepSamples], false); w != nil {
				one.Add(w)
			}
		}
		simulated := one.StoredCentroid(0)
		if simulated.Duration == 0 { // the networks find no speech in this condition
			simulated = asRecorded
		}
		embeddings[k] = simulated.Embedding
	}
	return newVoiceprint(embeddings, asRecorded.Duration)
}
