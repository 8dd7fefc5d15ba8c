package conform

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
)

var streamRules = []Rule{
	{Name: "stream/chunk", Expected: "binary frames of 6400 bytes at the pace of a microphone are taken, without an error message", Source: specification + " 4.5, 8", check: streamChunk},
	{Name: "stream/chunk-size", Expected: "an audio frame of any other size gets an error message", Source: specification + " 7", check: streamSize},
	{Name: "stream/chunk-size-text", Expected: `the message is "Invalid chunk size", it comes at once, and the stream goes on`, Source: contract + " 2, audio frame", check: streamSizeText},
	{Name: "stream/chunk-size-clock", Expected: "a frame of a wrong size is dropped: it takes no time on the stream's clock", Source: contract + " 2, audio frame", check: streamSizeClock},
	{Name: "stream/not-finite", Expected: "a chunk with a NaN or an infinity gets an error message, and the stream goes on", Source: contract + " 2, samples that are NaN or infinite", check: streamNotFinite},
	{Name: "stream/not-finite-clock", Expected: "such a chunk counts as 100 ms of silence: the clock stays true", Source: contract + " 2, samples that are NaN or infinite", check: streamNotFiniteClock},
	{Name: "stream/text", Expected: "a text frame that is not end_of_stream gets an error message, and the stream goes on", Source: contract + " 2, text frame", check: streamText},
	{Name: "stream/pace", Expected: "up to 5 s of audio ahead of real time are taken", Source: contract + " 2, pace", check: streamPace},
	{Name: "stream/ahead", Expected: "more than 5 s of audio ahead of real time: error message, close 1008", Source: contract + " 2, pace", check: streamAhead},
	{Name: "stream/silence", Expected: "no audio for 60 s: error message, close 1008", Source: contract + " 2, pace", Slow: true, check: streamSilence},
	{Name: "stream/end", Expected: "after end_of_stream the stream is closed with 1000 within 2 s", Source: contract + " 2, end_of_stream", check: streamEnd},
	{Name: "stream/end-empty", Expected: "the same where no audio was sent, without an event", Source: contract + " 2, end_of_stream", check: streamEndEmpty},
}

// longActs are the acts that rules need which take their time.
var longActs = map[string]string{
	"status/running": "conversation", "status/done": "conversation", "status/times": "conversation",
	"stream/chunk": "conversation", "stream/end": "conversation",
	"stream/silence": "silence", "token/lifetime": "oldToken",
	"results/turns": "conversation", "results/json": "conversation",
	"events/shape": "conversation", "events/speech": "conversation", "events/types": "conversation",
	"events/speakers": "conversation", "events/milliseconds": "conversation", "events/received": "conversation",
	"events/pairs": "conversation", "events/length": "conversation", "events/order": "conversation",
	"events/one-turn": "conversation", "events/labels": "conversation",
}

// tolerance is what a clock that stays true may be off by: an engine need not
// hear the same to the millisecond behind something else.
const tolerance = 250 * time.Millisecond

func streamChunk(ctx context.Context, p *play) (string, error) {
	t, err := p.conversation(ctx)
	if err != nil {
		return "", err
	}
	if said := errorsHeard(t.heard); len(said) > 0 {
		return "", differs("of %.1f s of audio it said %q", t.sent.Seconds(), said[0])
	}
	if want := len(p.Speech) / protocol.ChunkSamples; t.sent < time.Duration(want)*protocol.ChunkDuration {
		return "", differs("after %.1f s of audio %s", t.sent.Seconds(), t.end)
	}
	return fmt.Sprintf("%.1f s in real time", t.sent.Seconds()), nil
}

// wrongSizes are frames that are no chunk, in bytes.
var wrongSizes = []int{0, 1, 3200, 6396, 6399, 6401, 12800}

// provoked is a stream to which things are sent that each get an error
// message; said has what came, "" for nothing.
func (p *play) provoked(ctx context.Context, send ...func(w *wire) error) (said []string, t *talk, err error) {
	w, err := p.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer w.close()
	_ = w.chunk(make([]float32, protocol.ChunkSamples))
	for i, s := range send {
		if err := s(w); err != nil {
			break // the end tells why
		}
		message := ""
		if w.says(ctx, i, soon+p.Slack) {
			all, _ := w.all()
			if heard := errorsHeard(all); len(heard) > i {
				message = heard[i]
			}
		}
		said = append(said, message)
		if message == "" {
			break // the next messages would be taken for this one's
		}
	}
	_ = w.chunk(make([]float32, protocol.ChunkSamples))
	t = &talk{id: w.id}
	p.finish(ctx, w, t)
	return said, t, ctx.Err()
}

// wrongFrames sends one of each wrong size.
func (p *play) wrongFrames(ctx context.Context) (said []string, t *talk, err error) {
	var send []func(*wire) error
	for _, n := range wrongSizes {
		send = append(send, func(w *wire) error { return w.frame(websocket.BinaryMessage, make([]byte, n)) })
	}
	return p.provoked(ctx, send...)
}

func streamSize(ctx context.Context, p *play) (string, error) {
	said, t, err := p.wrongFrames(ctx)
	if err != nil {
		return "", err
	}
	for i, n := range wrongSizes {
		if i >= len(said) {
			return "", differs("before a frame of %d bytes %s", n, t.end)
		}
		if said[i] == "" {
			return "", differs("nothing was said of a frame of %d bytes within %v; %s", n, soon, t.end)
		}
	}
	return fmt.Sprintf("%q", said[0]), nil
}

func streamSizeText(ctx context.Context, p *play) (string, error) {
	said, t, err := p.wrongFrames(ctx)
	if err != nil {
		return "", err
	}
	for i, message := range said {
		if message != protocol.ErrChunkSize.Error() {
			return "", differs("of a frame of %d bytes it said %q", wrongSizes[i], message)
		}
	}
	return fmt.Sprintf("at once for each of %d sizes, then close 1000", len(said)), goesOn(t)
}

// goesOn demands that a stream went its way to the end.
func goesOn(t *talk) error {
	if t.end.code != websocket.CloseNormalClosure {
		return differs("after that %s", t.end)
	}
	return nil
}

// firstStart is when the first turn began, on the stream's clock.
func firstStart(t *talk) (time.Duration, bool) {
	for _, h := range t.heard {
		if h.Type == protocol.TypeSpeakerStart && h.Err == "" {
			return time.Duration(h.Timestamp * float64(time.Second)).Round(time.Millisecond), true
		}
	}
	return 0, false
}

// shifted demands that what is sent in front of some speech moves its first
// turn by a length of time.
func (p *play) shifted(ctx context.Context, by time.Duration, front func(w *wire) error) (string, error) {
	plain, err := p.control(ctx)
	if err != nil {
		return "", err
	}
	from, ok := firstStart(plain)
	if !ok {
		return "", skipped("the clock could not be seen: %v of speech gave no turn", burst)
	}
	t, err := p.excerpt(ctx, front)
	if err != nil {
		return "", err
	}
	to, ok := firstStart(t)
	if !ok {
		return "", differs("the speech behind it gave no turn, and without it one at %v; %s", from, t.end)
	}
	if d := to - from - by; d.Abs() > tolerance {
		return "", differs("the first turn begins at %v in place of %v: it was moved by %v, not by %v", to, from, to-from, by)
	}
	return fmt.Sprintf("the first turn begins at %v, without it at %v", to, from), nil
}

func streamSizeClock(ctx context.Context, p *play) (string, error) {
	return p.shifted(ctx, 0, func(w *wire) error {
		for range 10 {
			if err := w.frame(websocket.BinaryMessage, make([]byte, 6396)); err != nil {
				return err
			}
		}
		return nil
	})
}

func streamNotFinite(ctx context.Context, p *play) (string, error) {
	var send []func(*wire) error
	for _, v := range notFinite {
		send = append(send, func(w *wire) error { return w.spoilt(v) })
	}
	said, t, err := p.provoked(ctx, send...)
	if err != nil {
		return "", err
	}
	for i, v := range notFinite {
		if i >= len(said) || said[i] == "" {
			return "", differs("nothing was said of a chunk that holds %v within %v; %s", v, soon, t.end)
		}
	}
	return fmt.Sprintf("%q", said[0]), goesOn(t)
}

func streamNotFiniteClock(ctx context.Context, p *play) (string, error) {
	const n = 10
	return p.shifted(ctx, n*protocol.ChunkDuration, func(w *wire) error {
		for range n {
			if err := w.spoilt(math.NaN()); err != nil {
				return err
			}
		}
		return nil
	})
}

// wrongTexts are text frames that mean nothing.
var wrongTexts = []string{"hello", "[]", `{"type":"start"}`, `{"kind":"end_of_stream"}`, `{"type":"END_OF_STREAM"}`, "{}"}

func streamText(ctx context.Context, p *play) (string, error) {
	var send []func(*wire) error
	for _, text := range wrongTexts {
		send = append(send, func(w *wire) error { return w.text(text) })
	}
	said, t, err := p.provoked(ctx, send...)
	if err != nil {
		return "", err
	}
	for i, text := range wrongTexts {
		if i >= len(said) || said[i] == "" {
			return "", differs("nothing was said of the text frame %s within %v; %s", text, soon, t.end)
		}
	}
	return fmt.Sprintf("%q", said[0]), goesOn(t)
}

func streamPace(ctx context.Context, p *play) (string, error) {
	t, err := p.control(ctx)
	if err != nil {
		return "", err
	}
	if said := errorsHeard(t.heard); len(said) > 0 {
		return "", differs("of %v of audio at once it said %q; %s", t.sent, said[0], t.end)
	}
	return fmt.Sprintf("%v at once", t.sent), goesOn(t)
}

func streamAhead(ctx context.Context, p *play) (string, error) {
	w, err := p.open(ctx)
	if err != nil {
		return "", err
	}
	defer w.close()
	silence := make([]float32, protocol.ChunkSamples)
	for range 80 { // 8 s at once, so that a slow way does not help
		if w.chunk(silence) != nil {
			break
		}
	}
	w.rest(ctx, soon+p.Slack)
	return brokenRule(w, "of 8 s of audio at once")
}

func streamSilence(ctx context.Context, p *play) (string, error) {
	t, err := p.silence(ctx)
	if err != nil {
		return "", err
	}
	if !t.end.over || t.took < 59*time.Second {
		return "", differs("%v after the last chunk %s", t.took.Round(time.Second), t.end)
	}
	said := errorsHeard(t.heard)
	if len(said) == 0 || t.end.code != websocket.ClosePolicyViolation {
		return "", differs("it said %q, and %s", said, t.end)
	}
	return fmt.Sprintf("after %v %q, close 1008", t.took.Round(100*time.Millisecond), said[0]), nil
}

// brokenRule demands an error message and a close with 1008.
func brokenRule(w *wire, of string) (string, error) {
	all, end := w.all()
	said := errorsHeard(all)
	switch {
	case end.code != websocket.ClosePolicyViolation:
		return "", differs("%s it said %q, and %s", of, said, end)
	case len(said) == 0:
		return "", differs("%s it said nothing, and %s", of, end)
	}
	return fmt.Sprintf("%q, close 1008", said[0]), nil
}

// inOrder demands the close of a stream that was ended.
func (p *play) inOrder(t *talk) (string, error) {
	limit := 2*time.Second + p.Slack
	if t.took < 0 {
		return "", differs("before end_of_stream %s", t.end)
	}
	if t.end.code != websocket.CloseNormalClosure || t.took > limit {
		return "", differs("%.1f s after end_of_stream %s", t.took.Seconds(), t.end)
	}
	return fmt.Sprintf("%d ms after end_of_stream", t.took.Milliseconds()), nil
}

func streamEnd(ctx context.Context, p *play) (string, error) {
	t, err := p.conversation(ctx)
	if err != nil {
		return "", err
	}
	return p.inOrder(t)
}

func streamEndEmpty(ctx context.Context, p *play) (string, error) {
	w, err := p.open(ctx)
	if err != nil {
		return "", err
	}
	defer w.close()
	t := &talk{id: w.id}
	p.finish(ctx, w, t)
	if len(t.heard) > 0 {
		return "", differs("without audio it said %s", strings.TrimSpace(string(t.heard[0].Raw)))
	}
	return p.inOrder(t)
}
