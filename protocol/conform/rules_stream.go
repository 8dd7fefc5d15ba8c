package conform

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
)

var streamRules = []Rule{
	{Name: "stream/chunk", Expected: "binary frames of 6400 bytes at the pace of a microphone are accepted, without an error message", Section: "Audio frames", step: conversation, check: func(p *prober) string {
		e := conversation.of(p)
		if texts := errorMessages(e.messages); len(texts) > 0 {
			differs("during %.1f s of audio it sent the error %q", e.sent.Seconds(), texts[0])
		}
		if want := len(p.Speech) / protocol.ChunkSamples; e.sent < time.Duration(want)*protocol.ChunkDuration {
			differs("after %.1f s of audio %s", e.sent.Seconds(), e.end)
		}
		return fmt.Sprintf("%.1f s in real time", e.sent.Seconds())
	}},
	{Name: "stream/chunk-size", Expected: "an audio frame of any other size gets an error message", Section: "Audio frames", check: func(p *prober) string {
		texts, e := p.wrongFrames()
		for i, n := range wrongSizes {
			if i >= len(texts) {
				differs("before a frame of %d bytes, %s", n, e.end)
			}
			if texts[i] == "" {
				differs("no error message for a frame of %d bytes within %v; %s", n, promptly, e.end)
			}
		}
		return fmt.Sprintf("%q", texts[0])
	}},
	{Name: "stream/chunk-size-text", Expected: `the message is "Invalid chunk size", it is sent at once, and the stream continues`, Section: "Audio frames", Chosen: true, check: func(p *prober) string {
		texts, e := p.wrongFrames()
		for i, message := range texts {
			if message != protocol.ErrChunkSize.Error() {
				differs("the error message for a frame of %d bytes is %q", wrongSizes[i], message)
			}
		}
		e.expectClosed()
		return fmt.Sprintf("at once for each of %d sizes, then close 1000", len(texts))
	}},
	{Name: "stream/chunk-size-clock", Expected: "a frame of a wrong size is dropped: it takes no time on the stream's clock", Section: "Audio frames", Chosen: true, check: func(p *prober) string {
		return p.expectShift(0, func(s *stream) error { return s.sendBytes(6396) })
	}},
	{Name: "stream/not-finite", Expected: "a chunk with a NaN or an infinity gets an error message, and the stream continues", Section: "Audio frames", Chosen: true, check: func(p *prober) string {
		return expectEach(p, "a chunk with %v", notFinite, (*stream).sendInvalid)
	}},
	{Name: "stream/not-finite-clock", Expected: "such a chunk counts as 100 ms of silence on the stream's clock", Section: "Audio frames", Chosen: true, check: func(p *prober) string {
		return p.expectShift(10*protocol.ChunkDuration, func(s *stream) error { return s.sendInvalid(math.NaN()) })
	}},
	{Name: "stream/text", Expected: "a text frame other than end_of_stream gets an error message, and the stream continues", Section: "End of stream", Chosen: true, check: func(p *prober) string {
		return expectEach(p, "the text frame %s", wrongTexts, (*stream).text)
	}},
	{Name: "stream/pace", Expected: "up to 5 s of audio ahead of real time are accepted", Section: "Pace", Chosen: true, check: func(p *prober) string {
		e := control.of(p)
		if texts := errorMessages(e.messages); len(texts) > 0 {
			differs("for %v of audio at once it sent the error %q; %s", e.sent, texts[0], e.end)
		}
		e.expectClosed()
		return fmt.Sprintf("%v at once", e.sent)
	}},
	{Name: "stream/ahead", Expected: "more than 5 s of audio ahead of real time: error message, close 1008", Section: "Pace", Chosen: true, check: func(p *prober) string {
		s := p.open()
		defer s.close()
		silence := make([]float32, protocol.ChunkSamples)
		// As much more than 5 s as the audio may take over a slow connection.
		for limit := 5*time.Second + promptly + p.Slack; s.audio() < limit && s.chunk(silence) == nil; {
		}
		s.waitEnd(p.ctx, promptly+p.Slack)
		all, end := s.received()
		texts := errorMessages(all)
		switch {
		case end.code != websocket.ClosePolicyViolation:
			differs("for %v of audio at once it sent the errors %q, and %s", s.audio(), texts, end)
		case len(texts) == 0:
			differs("for %v of audio at once it sent no error message, and %s", s.audio(), end)
		}
		return fmt.Sprintf("%q, close 1008", texts[0])
	}},
	{Name: "stream/silence", Expected: "no audio for 60 s: error message, close 1008", Section: "Pace", Chosen: true, Slow: true, step: silence, check: func(p *prober) string {
		e := silence.of(p)
		if !e.end.over || e.closeTook < 59*time.Second {
			differs("%v after the last chunk, %s", e.closeTook.Round(time.Second), e.end)
		}
		texts := errorMessages(e.messages)
		if len(texts) == 0 || e.end.code != websocket.ClosePolicyViolation {
			differs("it sent the errors %q, and %s", texts, e.end)
		}
		return fmt.Sprintf("after %v %q, close 1008", e.closeTook.Round(100*time.Millisecond), texts[0])
	}},
	{Name: "stream/ping", Expected: "a ping of the client gets a pong with its content", Section: "Keep-alive", Chosen: true, check: func(p *prober) string {
		s := p.open()
		defer s.close()
		const content = "hubbub conform"
		if err := s.conn.WriteControl(websocket.PingMessage, []byte(content), time.Now().Add(writeWait)); err != nil {
			differs("the connection was lost: %v", err)
		}
		select {
		case got := <-s.ponged:
			if got != content {
				differs("the pong has the content %q", protocol.Clean(got, 60))
			}
		case <-time.After(promptly + p.Slack):
			differs("no pong arrived within %v", promptly)
		case <-p.ctx.Done():
			require(p.ctx.Err())
		}
		return "a pong"
	}},
	{Name: "stream/keep-alive", Expected: "the service sends a ping every 5 s; a connection from which nothing arrives for 15 s, not even a pong, is lost: its status is error", Section: "Keep-alive", Chosen: true, step: mute, check: func(p *prober) string {
		e := mute.of(p)
		seen := fmt.Sprintf("%.1f s without a pong, after %d pings, %s", e.closeTook.Seconds(), e.pings, e.end)
		if e.pings < 2 || !e.end.over || e.closeTook < 14*time.Second {
			differs("%s", seen)
		}
		statusIs(p.finalStatus(e.id), protocol.StatusError, true)
		return seen
	}},
	{Name: "stream/end", Expected: "after end_of_stream the stream is closed with 1000 within 2 s", Section: "End of stream", Chosen: true, step: conversation, check: func(p *prober) string { return p.expectNormalEnd(conversation.of(p)) }},
	{Name: "stream/end-empty", Expected: "the same without audio, and without an event", Section: "End of stream", Chosen: true, check: func(p *prober) string {
		s := p.open()
		defer s.close()
		e := p.finish(s)
		if len(e.messages) > 0 {
			differs("without audio it sent %s", strings.TrimSpace(string(e.messages[0].Raw)))
		}
		return p.expectNormalEnd(e)
	}},
}

// tolerance is how far a turn may move: an engine need not decide the same to the
// millisecond after different audio.
const tolerance = 250 * time.Millisecond

// wrongSizes are sizes of frames that are not chunks, in bytes.
var wrongSizes = []int{0, 1, 3200, 6396, 6399, 6401, 12800}

// expectErrors sends a frame for each of the values, which must each get an error
// message. texts are the messages, "" for a missing one.
func expectErrors[T any](p *prober, values []T, send func(*stream, T) error) (texts []string, e *exchange) {
	s := p.open()
	defer s.close()
	_ = s.chunk(make([]float32, protocol.ChunkSamples))
	for i, v := range values {
		if err := send(s, v); err != nil {
			break // the end tells why
		}
		s.wait(p.ctx, promptly+p.Slack, func(all []message) bool { return len(errorMessages(all)) > i })
		all, _ := s.received()
		messages := errorMessages(all)
		if len(messages) <= i {
			texts = append(texts, "")
			break // later messages could not be told from this one
		}
		texts = append(texts, messages[i])
	}
	_ = s.chunk(make([]float32, protocol.ChunkSamples))
	e = p.finish(s)
	require(p.ctx.Err())
	return texts, e
}

// wrongFrames sends a frame of each wrong size.
func (p *prober) wrongFrames() (texts []string, e *exchange) {
	return expectErrors(p, wrongSizes, (*stream).sendBytes)
}

// expectEach requires an error message for each of the values, which what describes, and
// that the stream continues.
func expectEach[T any](p *prober, what string, values []T, send func(*stream, T) error) string {
	texts, e := expectErrors(p, values, send)
	for i, v := range values {
		if i >= len(texts) || texts[i] == "" {
			differs("no error message for %s within %v; %s", fmt.Sprintf(what, v), promptly, e.end)
		}
	}
	e.expectClosed()
	return fmt.Sprintf("%q", texts[0])
}

// expectClosed requires that the stream was closed with 1000.
func (e *exchange) expectClosed() {
	if e.end.code != websocket.CloseNormalClosure {
		differs("after that, %s", e.end)
	}
}

// firstStart is when the first turn began, on the stream's clock.
func firstStart(e *exchange) (time.Duration, bool) {
	for _, m := range e.messages {
		if m.Type == protocol.TypeSpeakerStart && m.Err == "" {
			return time.Duration(m.Timestamp * float64(time.Second)).Round(time.Millisecond), true
		}
	}
	return 0, false
}

// expectShift requires that ten times what before sends, before some speech, moves its
// first turn by a duration.
func (p *prober) expectShift(by time.Duration, before func(s *stream) error) string {
	from, ok := firstStart(control.of(p))
	if !ok {
		skipped("the clock is not known: %v of speech gave no turn", burst)
	}
	e := p.excerpt(10, before)
	to, ok := firstStart(e)
	if !ok {
		differs("the speech after it gave no turn, and without it one at %v; %s", from, e.end)
	}
	if d := to - from - by; d.Abs() > tolerance {
		differs("the first turn begins at %v instead of %v: it moved by %v, not by %v", to, from, to-from, by)
	}
	return fmt.Sprintf("the first turn begins at %v, without it at %v", to, from)
}

// wrongTexts are text frames without a meaning.
var wrongTexts = []string{"hello", "[]", `{"type":"start"}`, `{"kind":"end_of_stream"}`, `{"type":"END_OF_STREAM"}`, "{}"}

// expectNormalEnd requires a close with 1000 soon after end_of_stream.
func (p *prober) expectNormalEnd(e *exchange) string {
	limit := 2*time.Second + p.Slack
	if e.closeTook < 0 {
		differs("before end_of_stream, %s", e.end)
	}
	if e.end.code != websocket.CloseNormalClosure || e.closeTook > limit {
		differs("%.1f s after end_of_stream, %s", e.closeTook.Seconds(), e.end)
	}
	return fmt.Sprintf("%d ms after end_of_stream", e.closeTook.Milliseconds())
}
