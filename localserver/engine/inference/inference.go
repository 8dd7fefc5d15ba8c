// Package inference runs the networks over one stream by sliding windows: a few
// times a second it gives the newest 5 s as a clustering.Window, with the activity
// of each local speaker and the embeddings of its segments.
package inference

import (
	"math"
	"sync"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/embedding"
	"hubbub/localserver/engine/features"
	"hubbub/localserver/engine/segmentation"
	"hubbub/localserver/engine/weights"
)

const (
	// windowSteps is the length of a window in steps of the networks (40 ms).
	windowSteps = segmentation.Window
	// receptiveSteps is how far the networks see on either side of a step: 31
	// steps of the segmentation network and 9 of the embedding network's trunk.
	receptiveSteps = 40
	// framesPerStep is the number of frames (20 ms) of a step.
	framesPerStep = segmentation.Split
	// minActive is the active time (seconds) of a local speaker without which
	// the window does not have it.
	minActive = 0.1
	// minSegment and idealSegment bound the single-speaker speech of a segment
	// in frames. The embedding of less is unreliable, more may be of two people.
	minSegment, idealSegment = 20, 50 // 0.4 s, 1 s
	// maxSegments is the most that one local speaker can have in a window.
	maxSegments = windowSteps * framesPerStep / minSegment
)

// networks are shared by all streams.
type networks struct {
	features     *features.FrontEnd
	embedding    *embedding.Model
	segmentation *segmentation.Model
}

// load reads the embedded weights once.
var load = sync.OnceValue(func() *networks {
	f := weights.Default()
	return &networks{features.New(f), embedding.New(f), segmentation.New(f)}
})

// Stream runs the networks over one stream. It allocates nothing after its first
// seconds. One goroutine may use it.
type Stream struct {
	features     *features.Stream
	embedding    *embedding.Stream
	segmentation *segmentation.Stream

	hop       int // samples between two windows
	lookAhead int // steps of audio behind the end of a window
	pending   int // samples since the last window

	frames   []float32                           // feature frames of one Push
	logp     []float32                           // log posteriors of the classes in a window
	mask     [windowSteps]float32                // of one embedding, per step
	speakers [segmentation.Speakers]localSpeaker // of the current window
	window   clustering.Window

	alone          [windowSteps]float32 // probability of exactly one speaker in each step of the window
	multiscaleAges []int
	nextMultiscale [2]int // the step of the next multiscale embedding, for each of multiscaleAges
}

// localSpeaker is the working space of one output of the segmentation network.
// The slices have one element per frame of the window, or per segment.
type localSpeaker struct {
	activity []float32
	single   []bool               // active, and no other local speaker
	segments []clustering.Segment // maxSegments fit, because they may not move before their embeddings are computed
}

// New returns a stream that gives a window every hop samples.
func New(hop int) *Stream { return newStream(hop, 0) }

// NewOffline is New for a whole recording: a window ends so far before the newest
// sample that the networks see what follows it. Only the last window ends at the
// newest sample.
func NewOffline(hop int) *Stream { return newStream(hop, receptiveSteps) }

func newStream(hop, lookAhead int) *Stream {
	n, ages := load(), liveAges
	if lookAhead > 0 {
		ages = offlineAges
	}
	s := &Stream{multiscaleAges: ages, features: n.features.NewStream(), embedding: n.embedding.NewStream(windowSteps + lookAhead),
		segmentation: n.segmentation.NewStream(windowSteps + lookAhead), hop: hop, lookAhead: lookAhead}
	for k := range s.speakers {
		s.speakers[k].segments = make([]clustering.Segment, 0, maxSegments)
	}
	return s
}

// Channel is what the features have learnt of the channel.
func (s *Stream) Channel() features.Channel { return s.features.Channel() }

// Resume continues with the channel of an earlier stream. It must come before the
// first Push.
func (s *Stream) Resume(c features.Channel) { s.features.Resume(c) }

// Push takes the next samples and returns the window that they complete, nil
// when none is due. More than hop samples still give one window. last says that no
// samples follow, so that a window is due if there are samples after the last one.
// The window is valid until the next call.
func (s *Stream) Push(samples []float32, last bool) *clustering.Window {
	s.frames = s.features.Push(samples, s.frames[:0])
	s.embedding.Append(s.frames)
	s.segmentation.Append(s.frames)
	if s.pending += len(samples); s.pending == 0 || s.pending < s.hop && !last {
		return nil
	}
	s.pending = 0
	s.embedding.Update()
	s.segmentation.Update(s.embedding.Trunk())
	to := s.segmentation.Len()
	if !last {
		to -= s.lookAhead
	}
	if to <= 0 {
		return nil
	}
	from := max(0, to-windowSteps)
	s.logp = s.segmentation.Window(from, to, s.logp[:0])
	s.readPosteriors(from, to-from)
	s.window.Speakers = s.window.Speakers[:0]
	for k := range s.speakers {
		if l, ok := s.embed(&s.speakers[k], from, to-from); ok {
			s.window.Speakers = append(s.window.Speakers, l)
		}
	}
	s.embedMultiscale(from, to, last)
	s.embedding.Flush()
	return &s.window
}

// readPosteriors computes speech, activity, single-speaker frames and s.alone of a
// window of n steps from s.logp.
func (s *Stream) readPosteriors(from, n int) {
	s.window.First = from * framesPerStep
	s.window.SpeechProbability = s.window.SpeechProbability[:0]
	clear(s.alone[:])
	for k := range s.speakers {
		s.speakers[k].activity, s.speakers[k].single = s.speakers[k].activity[:0], s.speakers[k].single[:0]
	}
	for i := range n * framesPerStep {
		logp := s.logp[i*segmentation.Classes : (i+1)*segmentation.Classes]
		var activity [segmentation.Speakers]float32
		best := 1
		for c := 1; c < segmentation.Classes; c++ {
			p := float32(math.Exp(float64(logp[c])))
			for _, k := range segmentation.Sets[c] {
				activity[k] += p
			}
			if len(segmentation.Sets[c]) == 1 {
				s.alone[i/framesPerStep] += p / framesPerStep
			}
			if logp[c] > logp[best] {
				best = c
			}
		}
		speech := 1 - float32(math.Exp(float64(logp[0])))
		s.window.SpeechProbability = append(s.window.SpeechProbability, speech)
		set := segmentation.Sets[best]
		for k := range s.speakers {
			l := &s.speakers[k]
			l.activity = append(l.activity, activity[k])
			l.single = append(l.single, speech > clustering.ActiveThreshold && len(set) == 1 && set[0] == k)
		}
	}
}

// embed returns a local speaker with the embeddings of its segments; ok is false
// when it is not active in the window.
func (s *Stream) embed(l *localSpeaker, from, n int) (out clustering.LocalSpeaker, ok bool) {
	var active, single float64
	for i, a := range l.activity {
		if a > clustering.ActiveThreshold {
			active += clustering.FrameSeconds
		}
		if l.single[i] {
			single += clustering.FrameSeconds
		}
	}
	if active < minActive {
		return out, false
	}
	s.cutSegments(l, from, n)
	if len(l.segments) == 0 { // too little for a segment: all of it is one
		g := clustering.Segment{To: len(l.single), Centre: len(l.single) / 2, Duration: single}
		if single >= minActive {
			s.maskSingle(l.single, 0, len(l.single))
		} else { // only talks together with others: overlapped speech must do
			for j := range n {
				s.mask[j] = (l.activity[framesPerStep*j] + l.activity[framesPerStep*j+1]) / 2
			}
		}
		l.segments = append(l.segments, g)
		if !s.embedding.Embed(from, s.mask[:n], l.segments[0].Embedding[:]) {
			return out, false
		}
	}
	return clustering.LocalSpeaker{Activity: l.activity, Segments: l.segments}, true
}

// cutSegments divides each stretch of single-speaker speech into segments of
// about a second, and embeds them. The segments cover the window: each frame
// belongs to the nearest one in time.
func (s *Stream) cutSegments(l *localSpeaker, from, n int) {
	l.segments = l.segments[:0]
	end := 0 // of the previous segment's speech
	for i := 0; i < len(l.single); {
		if !l.single[i] {
			i++
			continue
		}
		j := i
		for j < len(l.single) && l.single[j] {
			j++
		}
		parts := max(1, (j-i+idealSegment/2)/idealSegment)
		if j-i < minSegment {
			parts = 0
		}
		for k := range parts {
			a, b := i+(j-i)*k/parts, i+(j-i)*(k+1)/parts
			at := len(l.segments)
			l.segments = append(l.segments, clustering.Segment{From: (end + a) / 2, To: len(l.single), Centre: (a + b) / 2, Duration: float64(b-a) * clustering.FrameSeconds})
			s.maskSingle(l.single, a, b)
			if !s.embedding.Embed(from, s.mask[:n], l.segments[at].Embedding[:]) {
				l.segments = l.segments[:at]
				continue
			}
			if at == 0 {
				l.segments[0].From = 0
			} else {
				l.segments[at-1].To = l.segments[at].From
			}
			end = b
		}
		i = j
	}
}

// maskSingle sets s.mask to the part of each step that is single-speaker speech,
// between the frames from and to.
func (s *Stream) maskSingle(single []bool, from, to int) {
	for j := range len(single) / framesPerStep {
		s.mask[j] = 0
		for i := max(from, framesPerStep*j); i < min(to, framesPerStep*j+framesPerStep); i++ {
			if single[i] {
				s.mask[j] += 1.0 / framesPerStep
			}
		}
	}
}
