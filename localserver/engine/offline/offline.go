// Package offline diarizes whole recordings: the second pass, which decides with
// the context of the entire recording.
//
//	samples   16 kHz, mono, float32
//	  │ inference    every 0.5 s a window of 5 s: local speakers, segments, embeddings
//	  │ windows.go   segments of one window that are one person: segment clusters
//	  │ speakers.go  agglomerative clustering of all of these, assignment of each
//	  │ inputs.go    scores of all windows that cover a frame, cosine with each speaker
//	  │ frames.go    decoded: who talks in each frame
//	  ▼ continuation.go  speakers who continue each other's speech are merged, and all is decoded again
//	turns
//
// The networks are those of the live engine, but each window is taken when what
// follows it is known. Memory is that of the windows, below 1 MB per minute; the
// audio is not kept.
package offline

import (
	"context"
	"fmt"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/decoder"
	"hubbub/localserver/engine/features"
	"hubbub/localserver/engine/inference"
	"hubbub/protocol/hint"
)

const (
	// SampleRate is the only sample rate that is taken, in Hz.
	SampleRate = features.SampleRate
	// MaxSpeakers is the largest number of speakers in one recording.
	MaxSpeakers = 20

	frameSamples = 320 // the unit of decisions, 20 ms
	frameSeconds = clustering.FrameSeconds
	windowFrames = 250 // 5 s
	hopFrames    = 25  // distance of two windows, 0.5 s
	hopSamples   = hopFrames * frameSamples
	// clusteringShare is the part of the clustering in the time of Finish; decoding
	// takes the rest.
	clusteringShare = 0.35
)

// Networks gives the windows of a recording that Add takes.
func Networks() *inference.Stream { return inference.NewOffline(hopSamples) }

// Options are what is known of a recording. Zero means "not known".
type Options struct {
	// Speakers is the number of speakers; MinSpeakers and MaxSpeakers are bounds.
	// All are 1 to MaxSpeakers.
	Speakers, MinSpeakers, MaxSpeakers int
}

// Validate reports what is out of range or contradicts itself. The error's Hint
// method says what may be chosen.
func (o Options) Validate() error {
	for _, n := range []int{o.Speakers, o.MinSpeakers, o.MaxSpeakers} {
		if n < 0 || n > MaxSpeakers {
			return hint.Add(fmt.Errorf("%d speakers is out of range", n), fmt.Sprintf("Choose 1 to %d.", MaxSpeakers))
		}
	}
	switch {
	case o.MaxSpeakers > 0 && o.MinSpeakers > o.MaxSpeakers:
		return hint.Add(fmt.Errorf("at least %d and at most %d speakers contradict each other", o.MinSpeakers, o.MaxSpeakers), "Choose a minimum that is not above the maximum.")
	case o.Speakers > 0 && (o.MinSpeakers > o.Speakers || o.MaxSpeakers > 0 && o.MaxSpeakers < o.Speakers):
		return hint.Add(fmt.Errorf("exactly %d speakers is not within the bounds", o.Speakers), "Give the number, or bounds.")
	}
	return nil
}

func (o Options) min() int { return max(o.Speakers, o.MinSpeakers, 1) }

func (o Options) max() int {
	switch {
	case o.Speakers > 0:
		return o.Speakers
	case o.MaxSpeakers > 0:
		return o.MaxSpeakers
	}
	return MaxSpeakers
}

// Turn is a stretch of one speaker.
type Turn struct {
	// Speaker counts from 0 in order of first speech.
	Speaker    int
	Start, End float64 // seconds
}

// Result is a diarized recording.
type Result struct {
	Turns []Turn // in order of their start; those of different speakers may overlap
	// Exclusive are the turns without overlap: at any time only the most likely
	// speaker.
	Exclusive []Turn
	Speakers  int // number of speakers in Turns
	// Embeddings are the centroids of the speakers.
	Embeddings []clustering.TimedEmbedding

	frames int
	scores *scores
	params Params
	order  []int // of the speakers in scores
}

// Recording takes the audio of one recording and diarizes it. One goroutine may
// use it.
type Recording struct {
	// Progress is told by Finish which part of its work is done, 0 to 1. nil = nobody is.
	Progress func(share float64)

	options    Options
	params     Params
	stream     *inference.Stream
	decoder    *decoder.Decoder
	windows    []window
	multiscale []quantisedMultiscale
	pending    []float32 // samples of the next window
	frames     int       // of all windows
	middle     int       // the frame where the middle of the newest window ends
	samples    int64
}

// New begins a recording. An error says what is wrong with o.
func New(o Options) (*Recording, error) { return NewWith(o, Default()) }

// NewWith is New with other parameters, for tuning.
func NewWith(o Options, p Params) (*Recording, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Recording{options: o, params: p, stream: Networks(), decoder: decoder.Recording().New(), pending: make([]float32, 0, hopSamples)}, nil
}

// Push takes the next samples of the recording, any number. Samples that are not
// finite count as silence.
func (r *Recording) Push(samples []float32) {
	r.samples += int64(len(samples))
	for len(samples) > 0 {
		if len(r.pending) == hopSamples {
			r.step(false)
		}
		n := min(len(samples), hopSamples-len(r.pending))
		r.pending = append(r.pending, samples[:n]...)
		samples = samples[n:]
	}
}

func (r *Recording) step(last bool) {
	if w := r.stream.Push(r.pending, last); w != nil {
		r.Add(w, last)
	}
	r.pending = r.pending[:0]
}

// Add adds a window of Networks. Push does it; for tuning, windows of
// an earlier run take the place of samples. last says that no window follows.
func (r *Recording) Add(w *clustering.Window, last bool) {
	r.frames = w.First + len(w.SpeechProbability)
	middle := r.frames
	if !last {
		middle = max(r.middle, r.frames-windowFrames/2)
	}
	r.windows = append(r.windows, r.params.keep(w, r.middle, middle))
	for i := range w.Multiscale {
		s := &w.Multiscale[i].Embeddings
		r.multiscale = append(r.multiscale, quantisedMultiscale{quantiseEmbedding(&s[0]), quantiseEmbedding(&s[1])})
	}
	r.middle = middle
}

// Finish diarizes what was pushed; nothing can be pushed afterwards. The only
// error is that of ctx.
func (r *Recording) Finish(ctx context.Context) (*Result, error) {
	if r.samples > 0 {
		r.step(true)
	}
	speakers, err := r.findSpeakers(ctx)
	if err != nil {
		return nil, err
	}
	for share := clusteringShare; ; share += (1 - share) / 2 {
		result, err := r.decode(ctx, centroids(speakers), share)
		if err != nil {
			return nil, err
		}
		merged, ok := r.merge(speakers, continuation(result.Turns, len(speakers)))
		if !ok {
			result.label()
			for _, k := range result.order {
				result.Embeddings = append(result.Embeddings, clustering.TimedEmbedding{Embedding: speakers[k].centroid(), Duration: speakers[k].duration})
			}
			r.report(1)
			return result, nil
		}
		speakers = merged
		if err := r.assign(ctx, speakers); err != nil {
			return nil, err
		}
	}
}

// decode finds who talks in each frame. The turns have the numbers of the centroids. Its
// progress goes from a share of the work to half of what is left, because another decoding may follow.
func (r *Recording) decode(ctx context.Context, centroids []clustering.Embedding, from float64) (*Result, error) {
	frames := r.frames
	if r.samples > 0 && frames > 0 { // the networks' last step may end a frame before the audio, or after it
		frames = int(r.samples / frameSamples)
	}
	s := &scores{inputs: inputs{r.windows, r.multiscale, centroids}, decoder: r.decoder, count: min(frames, r.frames), page: -1}
	result := &Result{frames: frames, scores: s, params: r.params}
	alone := make([]uint32, frames)
	var stop error
	result.Turns = turns(frames, false, func(i int) (set uint32) {
		if i%pageFrames == 0 && stop == nil {
			r.report(from + (1-from)/2*float64(i)/float64(frames))
			stop = ctx.Err()
		}
		if stop == nil {
			set, alone[i] = s.active(i, &r.params)
		}
		return set
	})
	if stop != nil {
		return nil, stop
	}
	result.Exclusive = turns(frames, true, func(i int) uint32 { return alone[i] })
	return result, nil
}

// report says how much of Finish is done.
func (r *Recording) report(share float64) {
	if r.Progress != nil {
		r.Progress(share)
	}
}

// label numbers the speakers in order of first speech.
func (r *Result) label() {
	var label [MaxSpeakers]int
	for _, list := range [][]Turn{r.Turns, r.Exclusive} {
		for i := range list {
			k := &label[list[i].Speaker]
			if *k == 0 {
				r.Speakers++
				*k = r.Speakers
				r.order = append(r.order, list[i].Speaker)
			}
			list[i].Speaker = *k - 1
		}
	}
}

// DecoderInput is the input of the decoder for the whole recording, for training it.
func (r *Result) DecoderInput() (in decoder.Input) {
	r.scores.read(0, r.frames, &in)
	return in
}
