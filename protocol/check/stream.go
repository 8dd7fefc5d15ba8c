package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/client"
	"hubbub/protocol/hint"
	"hubbub/protocol/trace"
)

// enoughSpeech is how many seconds of clear speech must give an event.
const enoughSpeech = 5

// stream is the open stream of a check. One goroutine receives its events; it
// ends when the stream does.
type stream struct {
	*client.Stream
	over chan struct{}

	closeTook time.Duration // from end_of_stream to the close

	mu     sync.Mutex // for all below, until over is closed
	begun  time.Time  // when the first chunk was sent
	sent   int        // chunks
	first  protocol.Event
	events int
	lags   []time.Duration
	fault  string   // the first error message
	unread string   // why the first message that cannot be read cannot
	others []string // types of other messages, up to three
	turns  *protocol.Timeline
	early  float64 // how far the latest event is beyond the audio, in seconds
}

func receive(opened *client.Stream) *stream {
	st := &stream{Stream: opened, over: make(chan struct{}), turns: protocol.NewTimeline()}
	go func() {
		defer close(st.over)
		for e := range opened.Events() {
			st.add(e)
		}
	}()
	return st
}

func (st *stream) close() {
	st.Close()
	<-st.over
}

func (st *stream) add(e protocol.Event) {
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case e.Err != "":
		st.unread = cmp.Or(st.unread, protocol.Clean(e.Err, 200))
	case e.Type == protocol.TypeError:
		st.fault = cmp.Or(st.fault, protocol.Clean(e.Message, 200), "(no text)")
	case !e.IsTurn():
		if !slices.Contains(st.others, e.Type) && len(st.others) < 3 {
			st.others = append(st.others, e.Type)
		}
	default:
		st.turns.Apply(e)
		if st.events++; st.events == 1 {
			st.first = e
		}
		if e.Lag >= 0 {
			st.early = max(st.early, e.Timestamp-float64(st.sent)*protocol.ChunkDuration.Seconds())
			st.lags = append(st.lags, e.Lag)
		}
	}
}

// faultError is the first error message of the service on the stream, or why a message
// cannot be read; nil if there was neither.
func (st *stream) faultError() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case st.fault != "":
		return hint.Errorf("The stream is as specified (6400 bytes per frame, pcm_f32le, 16 kHz, mono, 10 frames per second): the service expects another size or format, or something in between changes frames, or the service fails. Show this to its operator.",
			"the service reports an error: %q", st.fault)
	case st.unread != "":
		return hint.Errorf("The service, or something in between, does not send events as specified: run `hubbub conform`, and show this to its operator.",
			"a message of the service cannot be read: %s", st.unread)
	}
	return nil
}

// sendError is why the stream ended, for a failed send.
func (st *stream) sendError(err error) error {
	<-st.over
	if closed := st.Wait(); closed.Err != nil {
		err = endError(closed)
	}
	if st.fault != "" {
		err = hint.Errorf(hint.Of(err), "%w; before that it sent the error %q", err, st.fault)
	}
	return err
}

// endError is the error of a stream's end. The client's hints are for a session, of which
// turns are kept.
func endError(closed client.CloseInfo) error {
	switch closed.Reason {
	case client.TimedOut:
		return hint.Add(closed.Err, "Try again and check the network. If it happens again, the service hangs, or something in between drops packets, as a VPN the large ones (try a smaller MTU): show this to their operators.")
	case client.Lost:
		return hint.Add(closed.Err, "Try again and check the network. If it happens again, the service fails, or a proxy, load balancer or firewall in between ends connections: show this to their operators.")
	case client.GoingAway:
		return hint.Add(closed.Err, "Try again in a moment.")
	case client.ServerError, client.EndedEarly:
		return hint.Add(closed.Err, "Show this to the operator of the service.")
	}
	return closed.Err
}

// hintSlow is for audio that does not get through in real time.
const hintSlow = "Likely cause: " + trace.CauseSlow + ", or packets are lost. A stream needs 64 kB/s (512 kbit/s)."

// audio sends the speech as a microphone would: each chunk when its last sample
// was spoken, never ahead.
func (c *checker) audio(ctx context.Context, s *Stage) error {
	st := c.stream
	chunks := len(c.Speech) / protocol.ChunkSamples
	begin, slowest := time.Now(), time.Duration(0)
	for i := range chunks {
		if err := protocol.Sleep(ctx, time.Until(begin.Add(time.Duration(i+1)*protocol.ChunkDuration))); err != nil {
			return err
		}
		st.mu.Lock()
		if st.sent++; st.sent == 1 {
			st.begun = time.Now()
		}
		st.mu.Unlock()
		// Closing the stream ends a write that hangs.
		timeout := time.AfterFunc(c.Limit, st.Close)
		err := st.Send(int64(i), c.Speech[i*protocol.ChunkSamples:(i+1)*protocol.ChunkSamples])
		if !timeout.Stop() {
			return hint.Errorf(hintSlow, "the service accepted no audio for %v", c.Limit)
		}
		if err != nil {
			s.Seen = fmt.Sprintf("%d of %d chunks sent", i, chunks)
			return st.sendError(err)
		}
		slowest = max(slowest, st.Stats().RTT)
	}
	stats := st.Stats()
	s.Seen = fmt.Sprintf("%d chunks, %.1f s of the demo conversation in %.1f s", stats.ChunksSent,
		float64(chunks)*protocol.ChunkDuration.Seconds(), time.Since(begin).Seconds())
	s.Details = map[string]any{"chunks": stats.ChunksSent, "bytes": stats.ChunksSent * protocol.ChunkBytes}
	if stats.RTT > 0 {
		s.Details["ping_ms"] = millis(stats.RTT)
	}
	switch {
	case stats.RTT == 0 && stats.Behind > trace.MaxPong:
		s.notice("the service answers no ping", "A session takes it for lost when it sends nothing for 9 s, as while nobody speaks: show this to its operator.")
	case slowest > trace.MaxPong:
		s.notice(fmt.Sprintf("the answer to a ping took %.1f s", slowest.Seconds()), "Likely cause: "+trace.CauseSlow+", or something in between buffers messages.")
	case stats.Behind > 2*trace.MaxPong: // pings follow each other at intervals of MaxPong
		s.notice(fmt.Sprintf("the service answered no ping behind the last %.1f s of audio", stats.Behind.Seconds()), "Likely cause: "+trace.CauseSilent+", or something in between has ended the connection without saying so.")
	}
	if tcp := st.Socket(); tcp != nil {
		s.Details["tcp_rtt_ms"], s.Details["tcp_retransmits"], s.Details["tcp_unacked_bytes"] = millis(tcp.RTT), tcp.Retransmits, tcp.Unacked
		if tcp.Retransmits > 0 {
			s.Seen += fmt.Sprintf(", %d TCP segments retransmitted", tcp.Retransmits)
		}
		if late := time.Duration(tcp.Unacked) * protocol.ChunkDuration / protocol.ChunkBytes; late > trace.MaxPong {
			return hint.Errorf(hintSlow, "%.1f s of the audio have not arrived yet", late.Seconds())
		}
	}
	return st.faultError()
}

// firstEvent ends the audio: the service sends what it has not sent yet before
// it closes the stream. The close itself is a stage of its own.
func (c *checker) firstEvent(ctx context.Context, s *Stage) error {
	st := c.stream
	c.endAudio(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if st.events > 0 {
		e, took := st.first, st.first.Received.Sub(st.begun)
		s.Millis = millis(took)
		s.Seen = fmt.Sprintf("%s of %s at %.3f s, %.1f s after the first chunk; events in all: %d",
			e.Type, protocol.Label(e.Speaker), e.Timestamp, took.Seconds(), st.events)
		s.Details = map[string]any{"events": st.events}
		st.turns.EndOpen(float64(len(c.Speech)) / protocol.SampleRate)
		counts, fault := st.turns.Snapshot().Counts, ""
		switch {
		case counts.Degenerate > 0:
			fault = fmt.Sprintf("events that contradict others or have an impossible time: %d", counts.Degenerate)
		case counts.Unended > 0 && st.Wait().Err == nil:
			fault = fmt.Sprintf("turns whose end did not arrive: %d", counts.Unended)
		}
		if fault != "" {
			s.notice(fault, "Turns will be wrong or missing: run `hubbub conform`, and show this to the operator of the service.")
		}
		return nil
	}
	seconds := len(c.Speech) / protocol.SampleRate
	s.Seen = fmt.Sprintf("none in %d s of speech", seconds)
	if st.Wait().Err != nil {
		s.notice("the stream did not end normally, see clean close", "")
		return nil
	}
	if seconds < enoughSpeech {
		s.notice("so little speech may not give an event", fmt.Sprintf("Send more with --seconds %d.", 2*enoughSpeech))
		return nil
	}
	if len(st.others) > 0 {
		return hint.Errorf("The service may be another one, or of another version: run `hubbub conform`, and show this to its operator.",
			"the service sent no start of a turn, but messages of unknown types: %q", st.others)
	}
	return hint.Errorf("Silence or noise gives no events, but this was speech: the engine of the service may not run, or something in between delays messages.",
		"the service received %d s of clear speech and sent no event", seconds)
}

// endAudio sends end_of_stream and waits until the service closes the stream, at
// most for the limit; then this side closes it.
func (c *checker) endAudio(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	begun := time.Now()
	_ = c.stream.EndOfStream() // the end of the stream says why it failed
	select {
	case <-c.stream.over:
	case <-ctx.Done():
		c.stream.close()
	}
	c.stream.closeTook = time.Since(begun)
}

func (c *checker) lag(_ context.Context, s *Stage) error {
	lags, early := c.stream.lags, c.stream.early
	if len(lags) == 0 {
		s.State, s.Seen = Notice, "not known: no event"
		return nil
	}
	slices.Sort(lags)
	p50, p95, most := percentile(lags, 50), percentile(lags, 95), percentile(lags, 100)
	s.Seen = fmt.Sprintf("events come %.0f ms after their audio (median), %.0f ms at most", p50, most)
	s.Details = map[string]any{"p50_ms": p50, "p95_ms": p95, "max_ms": most}
	if early > protocol.ChunkDuration.Seconds() {
		s.notice(fmt.Sprintf("an event is %.1f s later than all audio so far", early), "The service counts time in another way than specified: run `hubbub conform`, and show this to its operator.")
	}
	if p50 > trace.MaxLag.Seconds()*1000 {
		s.notice("events arrive late", "Likely cause: "+trace.CauseLate+".")
	}
	return nil
}

// percentile is the smallest value that p per cent of sorted do not exceed (nearest
// rank), in milliseconds.
func percentile(sorted []time.Duration, p int) float64 {
	return millis(sorted[(len(sorted)*p+99)/100-1])
}

func (c *checker) close(_ context.Context, s *Stage) error {
	s.Millis = millis(c.stream.closeTook)
	closed := c.stream.Wait()
	if closed.Reason == client.Cancelled { // by endAudio
		what := fmt.Sprintf("the service did not close the stream within %v after end_of_stream", c.Limit)
		if behind := c.stream.Stats().Behind; behind > trace.MaxPong {
			what += fmt.Sprintf(", and answered no ping behind the last %.1f s of audio", behind.Seconds())
		}
		return hint.Errorf("The connection is too slow, or the service, or a proxy in between, hangs or does not end streams: show this to its operator; --timeout waits longer.", "%s", what)
	}
	if closed.Code != 0 {
		s.Details = map[string]any{"code": closed.Code}
	}
	if closed.Err != nil {
		return endError(closed)
	}
	if err := c.stream.faultError(); err != nil {
		return err
	}
	s.Seen = fmt.Sprintf("%d (%s), %.0f ms after end_of_stream", closed.Code, protocol.CodeMeaning(closed.Code), millis(c.stream.closeTook))
	return nil
}
