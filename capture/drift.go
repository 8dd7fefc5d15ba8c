package capture

import "time"

// A device has a clock of its own. With a fast one its audio would run ahead of the wall
// clock, and turns would be late by more and more, because a service accepts only a
// few seconds of audio ahead of real time. So excess chunks are left out. A device
// whose clock is far off, or that loses audio, is reported.

const (
	// settling is how long a device may still deliver what it captured before it was
	// opened, or the reader may be late.
	settling = 30 * time.Second
	// maxLead is how far audio may run ahead of the wall clock, in chunks.
	maxLead = 20
	// maxCaptured is the most audio that a device may have captured before it was read,
	// in chunks: that of the queue, and 2 s in a sound server or a pipe.
	maxCaptured = micQueue + 20
	// driftWindow is how long a deviation is measured; it is reported after two of them.
	driftWindow = time.Minute
	// maxDrift is the largest deviation that is not reported, in chunks of a window: 2 %.
	maxDrift = int64(driftWindow / ChunkDuration / 50)
)

// drift compares the chunks of a device with the wall clock.
type drift struct {
	chunks, excess int64
	opened         time.Duration
	start          anchor // no chunk of the settled device is earlier than this says
	window         anchor
	before, now    int // in the last two windows: 1 = too much audio, -1 = too little
}

// add takes the time at which the next chunk was read, and reports whether it is excess.
func (d *drift) add(now time.Duration) bool {
	d.chunks++
	if d.chunks == 1 {
		d.opened, d.start, d.window = now, anchor{1, now}, anchor{1, now}
	}
	kept := d.chunks - d.excess
	if now-d.opened <= settling && kept >= d.start.due(now) && kept-(anchor{1, d.opened}).due(now) <= maxCaptured {
		d.start = anchor{kept, now}
	}
	if now-d.window.at >= driftWindow {
		d.before, d.now = d.now, 0
		switch deviation := d.chunks - d.window.due(now); {
		case deviation > maxDrift:
			d.now = 1
		case deviation < -maxDrift:
			d.now = -1
		}
		d.window = anchor{d.chunks, now}
	}
	if kept-d.start.due(now) <= maxLead {
		return false
	}
	d.excess++
	return true
}

// state is 1 for a device that delivers more audio than real time, -1 for less.
func (d *drift) state() int {
	if d.before != d.now {
		return 0
	}
	return d.now
}
