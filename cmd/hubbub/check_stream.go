package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"hubbub/protocol"
)

// speechEnough is how many seconds of the demo every service must have heard
// somebody in.
const speechEnough = 5

// lateEvent is a lag that somebody who watches would take for a fault.
const lateEvent = 5 * time.Second

// checkFlow is the open stream of a check. One goroutine takes its events; it
// ends when the stream does.
type checkFlow struct {
	wire *protocol.Stream
	over chan struct{}

	mu     sync.Mutex
	sent   []time.Time // when each chunk went out
	first  time.Time   // when the first event came
	event  string
	events int
	lags   []float32 // milliseconds
	faults []string  // error messages, the first few
}

func follow(wire *protocol.Stream) *checkFlow {
	f := &checkFlow{wire: wire, over: make(chan struct{})}
	go func() {
		defer close(f.over)
		for e := range wire.Events() {
			f.take(e)
		}
	}()
	return f
}

func (f *checkFlow) end() {
	_ = f.wire.Close()
	<-f.over
}

func (f *checkFlow) take(e protocol.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fault := e.Err
	if e.Type == protocol.TypeError && fault == "" {
		fault = e.Message
	}
	switch {
	case fault != "":
		if len(f.faults) < 3 {
			f.faults = append(f.faults, protocol.Clean(fault, 200))
		}
	case e.Type == protocol.TypeSpeakerStart || e.Type == protocol.TypeSpeakerEnd:
		if f.events++; f.events == 1 {
			f.first, f.event = e.Received, fmt.Sprintf("%s of %s at %.3f s", e.Type, protocol.Label(e.Speaker), e.Timestamp)
		}
		if len(f.sent) > 0 {
			chunk := int(math.Ceil(e.Timestamp/protocol.ChunkDuration.Seconds()-1e-3)) - 1
			at := f.sent[min(max(chunk, 0), len(f.sent)-1)]
			f.lags = append(f.lags, float32(e.Received.Sub(at).Seconds()*1000))
		}
	}
}

// audio sends the speech as a microphone would: each chunk when its last
// sample has been spoken, never ahead.
func (c *checker) audio(ctx context.Context, s *checkStage) error {
	f := c.flow
	chunks := len(c.speech) / protocol.ChunkSamples
	begin := time.Now()
	for i := range chunks {
		if err := sleepUntil(ctx, begin.Add(time.Duration(i+1)*protocol.ChunkDuration)); err != nil {
			return err
		}
		f.mu.Lock()
		f.sent = append(f.sent, time.Now())
		f.mu.Unlock()
		// A write that hangs is ended by the end of the stream.
		stuck := time.AfterFunc(c.limit, func() { _ = f.wire.Close() })
		err := f.wire.Send(ctx, int64(i), c.speech[i*protocol.ChunkSamples:(i+1)*protocol.ChunkSamples])
		if !stuck.Stop() {
			return &failure{fmt.Errorf("the service took no audio for %v", c.limit),
				"The service is overloaded, or the way to it is too slow: 64 kB/s (512 kbit/s) are needed."}
		}
		if err != nil {
			s.Seen = fmt.Sprintf("%d of %d chunks sent", i, chunks)
			return c.ended(err)
		}
	}
	st := f.wire.Stats()
	s.Seen = fmt.Sprintf("%d chunks, %.1f s of the demo conversation in %.1f s", st.ChunksSent,
		float64(chunks)*protocol.ChunkDuration.Seconds(), time.Since(begin).Seconds())
	s.Details = map[string]any{"chunks": st.ChunksSent, "bytes": st.BytesSent}
	if st.RTT > 0 {
		s.Details["ping_ms"] = millis(st.RTT)
	}
	if tcp, ok := f.wire.Socket(); ok {
		s.Details["tcp_rtt_ms"], s.Details["tcp_retransmits"], s.Details["tcp_unacked_bytes"] = millis(tcp.RTT), tcp.Retransmits, tcp.Unacked
		if tcp.Retransmits > 0 {
			s.Seen += fmt.Sprintf(", %d TCP segments sent again", tcp.Retransmits)
		}
	}
	f.mu.Lock()
	faults := slices.Clone(f.faults)
	f.mu.Unlock()
	if len(faults) > 0 {
		return c.fault(faults[0])
	}
	return nil
}

// fault is an error message of the service on the stream.
func (c *checker) fault(message string) error {
	return &failure{fmt.Errorf("the service says of the audio: %q", message),
		"The stream is as specified (6400 bytes a frame, pcm_f32le, 16 kHz, mono, 10 frames a second): the service wants another size or form, or something on the way changes frames. Show this to its operator."}
}

// ended is why the stream ended, for a send that failed.
func (c *checker) ended(err error) error {
	if !errors.Is(err, protocol.ErrStreamOver) {
		return err
	}
	<-c.flow.over
	c.flow.mu.Lock()
	faults := slices.Clone(c.flow.faults)
	c.flow.mu.Unlock()
	if closed := c.flow.wire.Wait(); closed.Err != nil {
		err = closed.Err
	}
	if len(faults) > 0 {
		err = &failure{fmt.Errorf("%w; before that it said: %q", err, faults[0]), hintOf(err, "")}
	}
	return err
}

// firstEvent ends the audio: what a service has not said by now it says before
// it closes. How it closes is the stage after.
func (c *checker) firstEvent(ctx context.Context, s *checkStage) error {
	f := c.flow
	c.finish(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.events > 0 {
		s.Millis = millis(f.first.Sub(f.sent[0]))
		s.Seen = fmt.Sprintf("%s, %.1f s after the first chunk; %d events in all", f.event, f.first.Sub(f.sent[0]).Seconds(), f.events)
		s.Details = map[string]any{"events": f.events}
		return nil
	}
	seconds := len(c.speech) / protocol.SampleRate
	s.Seen = fmt.Sprintf("none in %d s of speech", seconds)
	if closed := f.wire.Wait(); closed.Err != nil && closed.Reason != protocol.Cancelled {
		// The end that came instead is told at its own stage.
		s.notice("the stream ended otherwise than in order, see clean close", "")
		return nil
	}
	if seconds < speechEnough {
		s.notice("so little speech need not give an event", fmt.Sprintf("Send more with --seconds %d.", 2*speechEnough))
		return nil
	}
	return &failure{fmt.Errorf("the service heard %d s of clear speech and sent no event", seconds),
		"Silence or noise gives no events, but this was speech: the service's engine may not run, or something on the way holds messages back."}
}

// finish sends end_of_stream and waits for the service to close, at most for
// the limit; then this side does.
func (c *checker) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	began := time.Now()
	_ = c.flow.wire.EndOfStream(ctx) // if it fails, the stream's end tells why
	select {
	case <-c.flow.over:
	case <-ctx.Done():
		c.noClose = true
		c.flow.end()
	}
	c.closeTook = time.Since(began)
}

func (c *checker) lag(_ context.Context, s *checkStage) error {
	c.flow.mu.Lock()
	lags := slices.Clone(c.flow.lags)
	c.flow.mu.Unlock()
	if len(lags) == 0 {
		s.State, s.Seen = stateNotice, "not known: no event"
		return nil
	}
	slices.Sort(lags)
	p50, p95 := percentile(lags, 50), percentile(lags, 95)
	s.Seen = fmt.Sprintf("events come %.0f ms after their audio (median), %.0f ms at most", p50, percentile(lags, 100))
	s.Details = map[string]any{"p50_ms": p50, "p95_ms": p95, "max_ms": percentile(lags, 100)}
	if p50 > lateEvent.Seconds()*1000 {
		s.notice("events come late", "The service is overloaded, or something on the way holds messages back.")
	}
	return nil
}

func (c *checker) close(_ context.Context, s *checkStage) error {
	s.Millis = millis(c.closeTook)
	if c.noClose {
		return &failure{fmt.Errorf("the service did not close the stream within %v after end_of_stream", c.limit),
			"The service, or a proxy on the way, does not end streams: show this to its operator; --timeout waits longer."}
	}
	closed := c.flow.wire.Wait()
	if closed.Code != 0 {
		s.Details = map[string]any{"code": closed.Code}
	}
	if closed.Err != nil {
		return closed.Err
	}
	c.flow.mu.Lock()
	faults := slices.Clone(c.flow.faults)
	c.flow.mu.Unlock()
	if len(faults) > 0 {
		return c.fault(faults[0])
	}
	s.Seen = fmt.Sprintf("%d (%s), %.0f ms after end_of_stream", closed.Code, protocol.CodeMeaning(closed.Code), millis(c.closeTook))
	return nil
}
