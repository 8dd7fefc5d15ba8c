package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"hubbub/protocol"
)

// loadQueue is how many chunks may wait for a connection that does not take
// them: as many as a microphone's queue holds. Then the oldest are dropped.
const loadQueue = 50

// drainTime bounds the wait for the last events after the input has ended. A
// service closes within 2 s.
const drainTime = 30 * time.Second

// loadStream is one stream of a load: what a microphone would send.
type loadStream struct {
	server  *connection
	samples []float32 // shared by all streams
	tally   *tally
	refuse  func(address string) bool // the load must not go there

	mu   sync.Mutex
	sent []time.Time // when each chunk went out, in order
}

// run waits for its moment, sends everything in real time and returns how the
// stream ended: nil when the service closed it in order.
func (s *loadStream) run(ctx context.Context, at time.Time) error {
	if err := sleepUntil(ctx, at); err != nil {
		return err
	}
	live, err := s.server.CreateStream(ctx, nil)
	if err != nil {
		return err
	}
	if s.refuse(live.URL) {
		return &failure{fmt.Errorf("the server sends its streams to another machine"),
			"If that machine's operator agrees, add --yes-remote."}
	}
	wire, err := s.server.OpenStream(ctx, live.URL)
	if err != nil {
		return err
	}
	defer wire.Close()
	s.tally.opened(1)
	defer s.tally.opened(-1)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		s.receive(wire)
	}()
	// What was sent is still decided after an interrupt: ctx ends the input.
	err = s.sendFrom(time.Now(), ctx, context.WithoutCancel(ctx), wire)
	if err != nil {
		wire.Close()
	}
	<-heard
	if closed := wire.Wait(); closed.Err != nil && err == nil {
		err = closed.Err
	}
	return err
}

// sendFrom paces the chunks by the wall clock, counted from begin: each leaves
// when its last sample would have been spoken, and what is too late is dropped
// and counted. The end of input ends the audio, that of life cuts it off.
func (s *loadStream) sendFrom(begin time.Time, input, life context.Context, wire *protocol.Stream) error {
	total := int64((len(s.samples) + protocol.ChunkSamples - 1) / protocol.ChunkSamples)
	padded := make([]float32, protocol.ChunkSamples)
	for seq := int64(0); seq < total; seq++ {
		if oldest := int64(time.Since(begin)/protocol.ChunkDuration) - loadQueue; seq < oldest {
			oldest = min(oldest, total-1)
			s.tally.dropped(oldest - seq)
			seq = oldest
		}
		if sleepUntil(input, begin.Add(time.Duration(seq+1)*protocol.ChunkDuration)) != nil {
			break
		}
		chunk := s.samples[seq*protocol.ChunkSamples:]
		if len(chunk) >= protocol.ChunkSamples {
			chunk = chunk[:protocol.ChunkSamples]
		} else {
			copy(padded, chunk)
			chunk = padded
		}
		// Before the write: time spent waiting for the service is its lag.
		s.mu.Lock()
		s.sent = append(s.sent, time.Now())
		s.mu.Unlock()
		if err := wire.Send(life, seq, chunk); err != nil {
			return err
		}
	}
	end, cancel := context.WithTimeout(life, drainTime)
	defer cancel()
	return wire.EndOfStream(end)
}

// receive takes events until the stream is over.
func (s *loadStream) receive(wire *protocol.Stream) {
	for e := range wire.Events() {
		if e.Type != protocol.TypeSpeakerStart && e.Type != protocol.TypeSpeakerEnd {
			continue
		}
		if sent, ok := s.sentAt(e.Timestamp); ok {
			s.tally.event(e.Received.Sub(sent))
		}
	}
}

// sentAt is when the audio up to a timestamp, in seconds of the stream's own
// clock, had been sent: the time of the chunk that holds its last sample.
func (s *loadStream) sentAt(timestamp float64) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sent) == 0 {
		return time.Time{}, false // an event about audio that was never sent
	}
	// A thousandth of a chunk is below the resolution of timestamps.
	chunk := int(math.Ceil(timestamp/protocol.ChunkDuration.Seconds()-1e-3)) - 1
	return s.sent[min(max(chunk, 0), len(s.sent)-1)], true
}

func sleepUntil(ctx context.Context, at time.Time) error {
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tally adds up what all streams of a load see.
type tally struct {
	streams int

	mu        sync.Mutex
	open      int
	completed int
	failed    int
	lost      int64
	lags      []float32 // milliseconds
	first     error
}

func newTally(streams int) *tally { return &tally{streams: streams} }

// opened counts the streams that are open now.
func (t *tally) opened(change int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open += change
}

func (t *tally) event(lag time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lags = append(t.lags, float32(lag.Seconds()*1000))
}

func (t *tally) dropped(chunks int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost += chunks
}

// ended counts one stream's end; nil = in order.
func (t *tally) ended(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.completed++
		return
	}
	t.failed++
	if t.first == nil {
		t.first = err
	}
}

// cause is why the first stream failed that did, nil when none has.
func (t *tally) cause() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.first
}

// report sums up what has happened so far.
func (t *tally) report() loadReport {
	t.mu.Lock()
	r := loadReport{Streams: t.streams, Completed: t.completed, Failed: t.failed,
		Events: int64(len(t.lags)), DroppedChunks: t.lost, open: t.open}
	lags := slices.Clone(t.lags)
	t.mu.Unlock()
	slices.Sort(lags)
	r.Lag.P50, r.Lag.P95, r.Lag.P99 = percentile(lags, 50), percentile(lags, 95), percentile(lags, 99)
	return r
}

// percentile is the smallest value that p per cent of sorted do not exceed
// (nearest rank), 0 of none, to a tenth.
func percentile(sorted []float32, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return math.Round(float64(sorted[max(rank, 1)-1])*10) / 10
}
