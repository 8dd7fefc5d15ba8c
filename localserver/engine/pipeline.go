package engine

import (
	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/decoder"
	"hubbub/localserver/engine/features"
	"hubbub/localserver/engine/voiceprint"
)

// pipeline is the activitySource with networks: inference gives windows, and
// clustering the speakers of their local speakers.
type pipeline struct {
	windows   WindowSource
	clusterer *clustering.Clusterer
	matcher   matcher
	decoder   *decoder.Decoder
	received  int // samples

	input clustering.DecoderInput // decoded
	stale bool                    // there was a window since the input was decoded
	sets  []speakerSet
}

// WindowSource gives a window of the networks' output as samples come in. The
// engine uses an inference.Stream.
type WindowSource interface {
	// Push takes the next samples and returns the window that they complete,
	// nil when none is due; last says that no samples follow.
	Push(samples []float32, last bool) *clustering.Window
	// Channel is what has been learnt of the channel, with which a source for a later
	// stream resumes before its first Push.
	Channel() features.Channel
	Resume(c features.Channel)
}

func (p *pipeline) push(samples []float32) {
	p.received += len(samples)
	if w := p.windows.Push(samples, len(samples) < chunkSamples); w != nil {
		p.clusterer.Add(w)
		p.matcher.update(p.clusterer, w)
		p.stale = true
	}
}

func (p *pipeline) enrol(people []voiceprint.Person, m voiceprint.Matching) {
	p.matcher.people, p.matcher.matching = people, m
}

func (p *pipeline) match(speaker int) string { return p.matcher.name[speaker] }

func (p *pipeline) activity(first int) []speakerSet {
	if p.stale {
		p.clusterer.Discard(first - decoder.Context)
		p.clusterer.DecoderInput(first-decoder.Context, &p.input)
		if p.clusterer.Speakers() > 0 {
			p.decoder.Decode(&p.input.Input)
		}
		p.stale = false
	}
	p.sets = p.sets[:0]
	for i := max(0, first-p.input.First); i < len(p.input.Frames); i++ {
		p.sets = append(p.sets, p.input.Active(i))
	}
	// The frames after the last window continue as the window ends.
	newest := speakerSet(0)
	if n := len(p.sets); n > 0 {
		newest = p.sets[n-1]
	}
	n := max(0, p.received/frameSamples-first)
	for len(p.sets) < n {
		p.sets = append(p.sets, newest)
	}
	return p.sets[:n]
}
