package engine

import (
	"math/bits"
	"time"

	"hubbub/localserver/engine/decoder"
)

// speakerSet is a set of speakers that are active in one frame: bit k is speaker
// k of the clusterer.
type speakerSet = uint8

const frameDuration = frameSamples * time.Second / SampleRate

// turns makes events from the activity of frames. Frames are committed one by one, in order, each with
// the current activity of the frames after it; every event lies on the frame that
// is being committed. So the smoothing only looks ahead: it adds no latency, and
// events need no queue to be in order.
//
// When the activity reaches minTurn + maxPause frames ahead and does not change,
// the result is that of the usual offline rule: pauses of at most maxPause frames
// inside one speaker's speech are closed, then turns shorter than minTurn frames
// are dropped. Activity that changes between calls cannot break what Event
// promises: a turn that has begun lasts at least minTurn frames or to the end of
// the audio.
type turns struct {
	frame int // the next frame to commit
	open  speakerSet
	since [MaxSpeakers]int // first frame of an open turn
}

const minTurn, maxPause = decoder.MinTurnFrames, decoder.MaxPauseFrames

// commit commits one frame: activity[0] is that frame, the rest are the frames
// after it as far as they are known. activity may not be empty.
func (t *turns) commit(activity []speakerSet, out []Event) []Event {
	// Ends come before starts, so that a change of speaker reads as one.
	for left := t.open &^ activity[0]; left != 0; left &= left - 1 {
		k := bits.TrailingZeros8(left)
		if t.frame-t.since[k] >= minTurn && !t.resumes(activity, k) {
			out = t.end(k, out)
		}
	}
	for left := activity[0] &^ t.open; left != 0; left &= left - 1 {
		k := bits.TrailingZeros8(left)
		if t.longEnough(activity, k) {
			out = t.start(k, out)
		}
	}
	t.frame++
	return out
}

// finish ends the open turns after the last committed frame.
func (t *turns) finish(out []Event) []Event {
	for left := t.open; left != 0; left &= left - 1 {
		out = t.end(bits.TrailingZeros8(left), out)
	}
	return out
}

// resumes reports whether speaker k, silent in activity[0], talks again before the
// pause is longer than maxPause.
func (t *turns) resumes(activity []speakerSet, k int) bool {
	for _, active := range activity[:min(len(activity), maxPause+1)] {
		if active>>k&1 != 0 {
			return true
		}
	}
	return false
}

// longEnough reports whether speaker k, who begins in activity[0], talks for minTurn
// frames, closed pauses included.
func (t *turns) longEnough(activity []speakerSet, k int) bool {
	last := 0
	for i, active := range activity {
		if active>>k&1 != 0 {
			last = i
		}
		if last+1 >= minTurn {
			return true
		}
		if i-last > maxPause {
			return false
		}
	}
	return last+1 >= minTurn
}

func (t *turns) start(k int, out []Event) []Event {
	t.open |= 1 << k
	t.since[k] = t.frame
	return append(out, Event{Kind: Start, At: t.now(), Speaker: k})
}

func (t *turns) end(k int, out []Event) []Event {
	t.open &^= 1 << k
	return append(out, Event{Kind: End, At: t.now(), Speaker: k})
}

// canDivide reports whether speaker k has an open turn that is long enough to end
// with the last committed frame.
func (t *turns) canDivide(k int) bool {
	return t.open>>k&1 != 0 && t.frame-1-t.since[k] >= minTurn
}

// divide ends the open turn of speaker k at the last committed frame and begins
// another one there.
func (t *turns) divide(k int, out []Event) []Event {
	at := time.Duration(t.frame-1) * frameDuration
	t.since[k] = t.frame - 1
	return append(out, Event{Kind: End, At: at, Speaker: k}, Event{Kind: Start, At: at, Speaker: k})
}

func (t *turns) now() time.Duration { return time.Duration(t.frame) * frameDuration }
