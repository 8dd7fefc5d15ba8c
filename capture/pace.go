package capture

import (
	"context"
	"time"
)

// Pace is how fast an input of known audio is delivered, as the command line spells it.
// It has no effect on a microphone, which delivers in real time.
type Pace string

const (
	// Realtime delivers every chunk when its last sample would have been
	// captured, counted from the first chunk. It is the default.
	Realtime Pace = "realtime"
	// Fast delivers as fast as chunks are received.
	Fast Pace = "fast"
)

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
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
