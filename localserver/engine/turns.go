package engine

import (
	"math/bits"
	"time"
)

// voices is a set of voices that talk in one frame, one bit each. Voices are
// the listener's own numbers; the labels that leave the engine are given here,
// in order of first speech.
type voices uint8

const (
	frameDuration = frameSamples * time.Second / SampleRate

	minOnFrames  = 10 // turns under 0.2 s are dropped
	minOffFrames = 10 // pauses up to 0.2 s are closed
)

// turns makes events from frame decisions. Frames are committed one by one, in
// order, each with a view of what is thought of the frames behind it; every
// event lies on the frame that is being committed. So the order of events and
// their latency need no queue: smoothing costs no time, it only looks ahead.
//
// When the view does not change between calls and reaches minOn + minOff
// frames ahead, the outcome is that of the usual offline rule: pauses of at
// most minOff frames inside one voice are closed, then turns shorter than
// minOn frames are dropped. A view that changes its mind cannot break what the
// events promise: a turn once begun lasts at least minOn frames or to the end
// of the audio.
type turns struct {
	minOn, minOff int
	frame         int // the frame to be decided next
	open          voices
	since         [MaxSpeakers]int // first frame of an open turn
	label         [MaxSpeakers]int // by voice, once it has one
	labelled      voices
	labels        int
}

func newTurns(minOn, minOff int) turns {
	return turns{minOn: minOn, minOff: minOff}
}

// decide commits one frame: view[0] is that frame, the rest is the present
// opinion on the frames after it, as far as there is one. The view may not be
// empty.
func (t *turns) decide(view []voices, out []Event) []Event {
	// Ends come before starts, so that a change of speaker reads as one.
	for left := t.open &^ view[0]; left != 0; left &= left - 1 {
		v := bits.TrailingZeros8(uint8(left))
		if t.frame-t.since[v] >= t.minOn && !t.returns(view, v) {
			out = t.end(v, out)
		}
	}
	for left := view[0] &^ t.open; left != 0; left &= left - 1 {
		v := bits.TrailingZeros8(uint8(left))
		if t.lasts(view, v) {
			out = t.start(v, out)
		}
	}
	t.frame++
	return out
}

// finish ends the open turns at the end of the frames decided.
func (t *turns) finish(out []Event) []Event {
	for left := t.open; left != 0; left &= left - 1 {
		out = t.end(bits.TrailingZeros8(uint8(left)), out)
	}
	return out
}

// returns tells whether a voice, silent in view[0], is back before its pause
// is longer than minOff.
func (t *turns) returns(view []voices, v int) bool {
	for _, now := range view[:min(len(view), t.minOff+1)] {
		if now>>v&1 != 0 {
			return true
		}
	}
	return false
}

// lasts tells whether a voice that begins in view[0] goes on for minOn frames,
// closed pauses included.
func (t *turns) lasts(view []voices, v int) bool {
	last := 0
	for i, now := range view {
		if now>>v&1 != 0 {
			last = i
		}
		if last+1 >= t.minOn {
			return true
		}
		if i-last > t.minOff {
			return false
		}
	}
	return last+1 >= t.minOn
}

func (t *turns) start(v int, out []Event) []Event {
	if t.labelled>>v&1 == 0 {
		t.labelled |= 1 << v
		t.label[v] = t.labels
		t.labels++
	}
	t.open |= 1 << v
	t.since[v] = t.frame
	return append(out, Event{Kind: Start, At: t.now(), Speaker: t.label[v]})
}

func (t *turns) end(v int, out []Event) []Event {
	t.open &^= 1 << v
	return append(out, Event{Kind: End, At: t.now(), Speaker: t.label[v]})
}

func (t *turns) now() time.Duration { return time.Duration(t.frame) * frameDuration }
