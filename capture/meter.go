package capture

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// openDelay is how long a Meter waits before it opens a device: a user who goes
// through a list stops at few of them.
const openDelay = 200 * time.Millisecond

// Measure opens an input and passes the level of each chunk to each, until that
// returns false or ctx ends. It returns an error if the input does not open or
// stops delivering audio.
func Measure(ctx context.Context, input string, each func(Level) bool) error {
	source, err := Open(ctx, Spec{Input: input})
	if err != nil {
		return err
	}
	reader, chunks := NewChunkReader(ctx, source, Realtime), 0
	for c := range reader.Chunks() {
		if reader.Stats().Outage != nil {
			return errors.New("it stopped delivering audio")
		}
		chunks++
		if !each(c.Level) {
			return nil
		}
	}
	if chunks == 0 {
		return reader.Err()
	}
	return nil
}

// Reading is what a Meter measures.
type Reading struct {
	Level Level // of the newest chunk
	Known bool  // there was a chunk
	Err   error // the device does not open, or delivers nothing any more
}

// Meter measures one device at a time, so that a user can choose. Its methods may
// be called from any goroutine. The zero Meter is ready.
type Meter struct {
	device sync.Mutex // held while one is open: the next one may be the same

	mu      sync.Mutex // guards what follows
	input   string
	reading Reading
	stop    context.CancelFunc
}

// Measure measures an input from now on until ctx ends, instead of the one before,
// "" = none. It does not wait.
func (m *Meter) Measure(ctx context.Context, input string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if input == m.input {
		return
	}
	if m.stop != nil {
		m.stop()
	}
	ctx, m.stop = context.WithCancel(ctx)
	m.input, m.reading = input, Reading{}
	if input != "" {
		go m.run(ctx, input)
	}
}

// run measures one input until ctx ends.
func (m *Meter) run(ctx context.Context, input string) {
	m.device.Lock()
	defer m.device.Unlock()
	select {
	case <-ctx.Done():
		return
	case <-time.After(openDelay):
	}
	err := Measure(ctx, input, func(l Level) bool {
		m.set(ctx, Reading{Level: l, Known: true})
		return true
	})
	if err != nil {
		m.set(ctx, Reading{Err: err})
	}
}

// set keeps a reading, unless another device is measured by now.
func (m *Meter) set(ctx context.Context, r Reading) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() == nil {
		m.reading = r
	}
}

// Reading returns the newest one.
func (m *Meter) Reading() Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reading
}

// Close ends the measurement and waits until the device is closed. Another one may
// follow.
func (m *Meter) Close() {
	m.Measure(context.Background(), "")
	m.device.Lock()
	defer m.device.Unlock()
}

// measure returns the level of samples; without samples, silence.
func measure(samples []float32) Level {
	if len(samples) == 0 {
		return Level{}
	}
	var sum float64
	var peak float32
	for _, x := range samples {
		sum += float64(x) * float64(x)
		peak = max(peak, x, -x)
	}
	return Level{RMS: float32(math.Sqrt(sum / float64(len(samples)))), Peak: peak}
}
