package conform

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/trace"
)

// burst is the audio that is sent at once, within the 5 s that a client may be
// ahead of real time.
const burst = 4500 * time.Millisecond

// prober is one run of the rules, with what several of them share.
type prober struct {
	Options
	secrets    trace.Redactor
	prefix     string // of the media locations, different in each run
	waits      atomic.Int32
	tests      atomic.Int32   // requests to GET /v1/test with the key, for the rate limit
	background sync.WaitGroup // steps that take long and run beside the rules

	conversationOnce once[*exchange]   // a conversation in real time
	controlOnce      once[*exchange]   // some seconds of it at once
	silenceOnce      once[*exchange]   // no audio for a minute
	objectOnce       once[*object]     // a media object
	oldTokenOnce     once[*response]   // a token of ten minutes
	createdOnce      once[[]*response] // streams that were created
}

// once is a step that is done once, however many rules use its result.
type once[T any] struct {
	once sync.Once
	out  T
	err  error
}

// get does the step, or waits for the goroutine that does.
func (o *once[T]) get(do func() (T, error)) (T, error) {
	o.once.Do(func() { o.out, o.err = do() })
	return o.out, o.err
}

func newProber(o Options) *prober {
	p := &prober{Options: o, prefix: "hubbub-conform-" + rand.Text()[:12]}
	for _, key := range []string{o.Key, o.OtherKey, o.UnpaidKey, o.ExpiredKey} {
		p.secrets.Add(key)
	}
	return p
}

// start starts the steps that take long and that rules need; they end with ctx.
func (p *prober) start(ctx context.Context, rules []Rule) {
	long := map[string]func(){
		"conversation": func() { _, _ = p.conversation(ctx) },
		"silence":      func() { _, _ = p.silence(ctx) },
		"oldToken":     func() { _, _ = p.oldToken(ctx) },
	}
	for _, r := range rules {
		name := longRuns[r.Name]
		if do := long[name]; do != nil && p.runs(r) {
			delete(long, name)
			p.background.Go(do)
		}
	}
}

// exchange is a stream from its opening to its end, as one side saw it.
type exchange struct {
	id        string
	messages  []message
	end       ending
	sent      time.Duration              // of audio
	closeTook time.Duration              // from end_of_stream to the end of the connection
	during    map[string]json.RawMessage // the status
	after     map[string]json.RawMessage
}

// conversation sends the speech in real time.
func (p *prober) conversation(ctx context.Context) (*exchange, error) {
	return p.conversationOnce.get(func() (*exchange, error) {
		s, err := p.open(ctx)
		if err != nil {
			return nil, err
		}
		defer s.close()
		var during map[string]json.RawMessage
		begin := time.Now()
		for i := range len(p.Speech) / protocol.ChunkSamples {
			if err := protocol.Sleep(ctx, time.Until(begin.Add(time.Duration(i+1)*protocol.ChunkDuration))); err != nil {
				return nil, err
			}
			if s.chunk(p.Speech[i*protocol.ChunkSamples:(i+1)*protocol.ChunkSamples]) != nil {
				break // its end says why
			}
			if i == min(20, len(p.Speech)/protocol.ChunkSamples/2) {
				if during, err = p.status(ctx, s.id); err != nil {
					return nil, err
				}
			}
		}
		e := p.finish(ctx, s)
		e.during = during
		e.after, err = p.finalStatus(ctx, s.id)
		return e, err
	})
}

// finish ends a stream with end_of_stream and receives until its close.
func (p *prober) finish(ctx context.Context, s *stream) *exchange {
	ended := time.Now()
	_ = s.text(protocol.EndOfStreamMessage) // if it fails, the end says why
	s.waitEnd(ctx, closeWait+p.Slack)
	e := &exchange{id: s.id, sent: s.audio(), closeTook: closeWait + p.Slack}
	e.messages, e.end = s.received()
	if e.end.over {
		e.closeTook = e.end.at.Sub(ended)
	}
	s.close()
	return e
}

// excerpt sends some seconds of the speech at once, after what before sends. It
// shows whether that moves the clock.
func (p *prober) excerpt(ctx context.Context, before func(s *stream) error) (*exchange, error) {
	s, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := before(s); err != nil {
		return nil, differs("the connection was lost: %v", err)
	}
	left := burst - s.audio()
	for i := range int(left / protocol.ChunkDuration) {
		if (i+1)*protocol.ChunkSamples > len(p.Speech) || s.chunk(p.Speech[i*protocol.ChunkSamples:(i+1)*protocol.ChunkSamples]) != nil {
			break
		}
	}
	return p.finish(ctx, s), nil
}

// control is the excerpt with nothing before it.
func (p *prober) control(ctx context.Context) (*exchange, error) {
	return p.controlOnce.get(func() (*exchange, error) {
		return p.excerpt(ctx, func(*stream) error { return nil })
	})
}

// silence is a stream with one chunk and then none.
func (p *prober) silence(ctx context.Context) (*exchange, error) {
	return p.silenceOnce.get(func() (*exchange, error) {
		s, err := p.open(ctx)
		if err != nil {
			return nil, err
		}
		defer s.close()
		began := time.Now()
		if err := s.chunk(make([]float32, protocol.ChunkSamples)); err != nil {
			return nil, err
		}
		s.waitEnd(ctx, 75*time.Second)
		e := &exchange{}
		e.messages, e.end = s.received()
		if e.end.over {
			e.closeTook = e.end.at.Sub(began)
		}
		return e, nil
	})
}

// create creates a stream for other rules. Rules about the creation itself do not
// use it.
func (p *prober) create(ctx context.Context) (protocol.LiveStream, error) {
	var made protocol.LiveStream
	r, err := p.do(ctx, request{method: "POST", path: "/v1/live", body: "{}"})
	if err != nil {
		return made, err
	}
	if r.status/100 != 2 || json.Unmarshal(r.body, &made) != nil || made.ID == "" || made.URL == "" {
		return made, skipped("it needs a stream, and none could be created: %s", r)
	}
	return made, nil
}

// open creates a stream and opens it.
func (p *prober) open(ctx context.Context) (*stream, error) {
	made, err := p.create(ctx)
	if err != nil {
		return nil, err
	}
	return p.dial(ctx, made)
}

// dial opens a stream that was created.
func (p *prober) dial(ctx context.Context, made protocol.LiveStream) (*stream, error) {
	conn, resp, err := p.Client.Dial(ctx, made.URL)
	switch {
	case err != nil:
		return nil, skipped("it needs an open stream, and none could be opened: %v", err)
	case conn == nil:
		return nil, skipped("it needs an open stream, and the handshake returned %d", resp.StatusCode)
	}
	return newStream(made.ID, conn), nil
}

// status requests the status of a stream.
func (p *prober) status(ctx context.Context, id string) (map[string]json.RawMessage, error) {
	r, err := p.do(ctx, request{method: "GET", path: "/v1/live/" + id})
	if err != nil {
		return nil, err
	}
	if err := r.ok(); err != nil {
		return nil, err
	}
	return r.isJSON()
}

// finalStatus waits until a stream is done or has failed, or statusWait has
// passed, and returns its status.
func (p *prober) finalStatus(ctx context.Context, id string) (map[string]json.RawMessage, error) {
	for deadline := time.Now().Add(statusWait + p.Slack); ; {
		fields, err := p.status(ctx, id)
		if err != nil {
			return nil, err
		}
		if s := textOf(fields, "status"); s == protocol.StatusDone || s == protocol.StatusError || time.Now().After(deadline) {
			return fields, nil
		}
		if err := protocol.Sleep(ctx, 250*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// textOf is a field that is a string, or "".
func textOf(fields map[string]json.RawMessage, name string) string {
	var s string
	_ = json.Unmarshal(fields[name], &s)
	return s
}
