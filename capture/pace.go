package capture

import (
	"context"
	"time"
)

// Pace is how fast an input of known audio is delivered. It has no effect on a
// microphone, which delivers in real time.
type Pace int

const (
	// Realtime delivers every chunk when its last sample would have been
	// captured, counted from the first chunk.
	Realtime Pace = iota
	// Fast delivers as fast as chunks are received.
	Fast
)

// String returns the value of the command-line flag.
func (p Pace) String() string {
	if p == Fast {
		return "fast"
	}
	return "realtime"
}

// pacer delays chunks to real time. Every deadline is counted from the start, not
// from the previous chunk: a sleep that is too long shortens the next one, so
// that delays do not accumulate.
type pacer struct {
	start time.Time // time of the first sample
}

// wait returns when the audio up to position, counted from the start, would have
// been captured.
func (p *pacer) wait(ctx context.Context, position time.Duration) error {
	if p.start.IsZero() {
		p.start = time.Now()
	}
	d := time.Until(p.start.Add(position))
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
