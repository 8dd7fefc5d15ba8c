package engine

import (
	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/features"
)

// hopSamples is how often the networks look at the newest audio: each time
// they have an opinion on the last seconds, and 0.2 s more of what came after
// a frame often changes what it is taken for.
const hopSamples = 2 * stepSamples

// Windower gives windows as samples come in; hearing.Stream is the one that
// is meant.
type Windower interface {
	// Push takes the next samples and returns the window that they complete,
	// nil when none is due; last says that no samples follow.
	Push(samples []float32, last bool) *clustering.Window
}

// adaptive is a Windower that gets used to the channel that sound comes through.
type adaptive interface {
	Channel() features.Channel
	Resume(features.Channel)
}

// neural is the listener with trained networks: windows name local voices, a
// clusterer says who they are.
type neural struct {
	windows   Windower
	clusterer *clustering.Clusterer
	heard     int // samples
	view      []uint8
	out       []voices
}

func newNeural(p clustering.Params, maxSpeakers int, w Windower) *neural {
	return &neural{windows: w, clusterer: clustering.New(p, maxSpeakers)}
}

func (n *neural) hear(samples []float32) {
	n.heard += len(samples)
	if w := n.windows.Push(samples, len(samples) < stepSamples); w != nil {
		n.clusterer.Hear(w)
	}
}

func (n *neural) opinion(frame int) []voices {
	n.clusterer.Forget(frame)
	n.view = n.clusterer.Opinion(frame, n.view[:0])
	n.out = n.out[:0]
	for _, v := range n.view {
		n.out = append(n.out, voices(v))
	}
	// What is newer than the last window is taken to go on as it is.
	last := voices(0)
	if len(n.out) > 0 {
		last = n.out[len(n.out)-1]
	}
	for frame+len(n.out) < n.heard/frameSamples {
		n.out = append(n.out, last)
	}
	if have := max(0, n.heard/frameSamples-frame); len(n.out) > have {
		n.out = n.out[:have]
	}
	return n.out
}
