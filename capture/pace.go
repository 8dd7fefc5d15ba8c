package capture

import (
	"context"
	"time"
)

// Pace says how fast an input that could be read at once is sent on. It has no
// meaning for a microphone, which is a clock of its own.
type Pace int

const (
	// Realtime delivers every chunk when its last sample would have been
	// spoken, counted from the first chunk.
	Realtime Pace = iota
	// Fast delivers as fast as chunks are taken.
	Fast
)

// String is the pace's word on the command line.
func (p Pace) String() string {
	if p == Fast {
		return "fast"
	}
	return "realtime"
}

// ParsePace reads "realtime" or "fast".
func ParsePace(s string) (Pace, error) {
	switch s {
	case "realtime":
		return Realtime, nil
	case "fast":
		return Fast, nil
	}
	return Realtime, fail("Use realtime or fast.", "unknown pace %q", s)
}

// Clock is the wall clock, or a test's.
type Clock interface {
	Now() time.Time
	// Sleep waits for d, or until ctx ends, and then returns ctx's error.
	Sleep(ctx context.Context, d time.Duration) error
}

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (wallClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pacer holds chunks back to real time. Every deadline is counted from the
// start, never from the chunk before: a sleep that is too long makes the next
// one shorter, so lateness cannot add up.
type pacer struct {
	clock Clock
	start time.Time // when the first sample of all was "spoken"
}

// wait returns when audio of the length heard, counted from the start, would
// have been spoken.
func (p *pacer) wait(ctx context.Context, heard time.Duration) error {
	now := p.clock.Now()
	if p.start.IsZero() {
		p.start = now
	}
	if d := p.start.Add(heard).Sub(now); d > 0 {
		return p.clock.Sleep(ctx, d)
	}
	return ctx.Err()
}
