package conform

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/http"
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
	ctx        context.Context // of the run
	secrets    trace.Redactor
	prefix     string // of the media locations, different in each run
	waits      atomic.Int32
	tests      atomic.Int32          // requests to GET /v1/test with the key, for the rate limit
	hangs      atomic.Pointer[error] // the handshake of a stream got no response in time, and none before did
	responds   atomic.Bool           // one did
	background sync.WaitGroup        // steps that take long and run beside the rules
	shared     sync.Map              // results of steps, by *shared
}

func newProber(ctx context.Context, o Options) *prober {
	p := &prober{Options: o, ctx: ctx, prefix: "hubbub-conform-" + rand.Text()[:12]}
	for _, key := range []string{o.Key, o.OtherKey, o.UnpaidKey, o.ExpiredKey} {
		p.secrets.Add(key)
	}
	return p
}

// sleep waits for a duration.
func (p *prober) sleep(d time.Duration) { require(protocol.Sleep(p.ctx, d)) }

// shared is a step that is done once in a run, however many rules use its result.
type shared[T any] struct{ do func(*prober) T }

func share[T any](do func(*prober) T) *shared[T] { return &shared[T]{do} }

// of is the result of the step. What ends it ends every rule that uses it.
func (s *shared[T]) of(p *prober) T {
	once, _ := p.shared.LoadOrStore(s, sync.OnceValue(func() T { return s.do(p) }))
	return once.(func() T)()
}

// begin does the step beside the rules, which report what goes wrong.
func (s *shared[T]) begin(p *prober) {
	p.background.Go(func() { _ = try(func() { s.of(p) }) })
}

// exchange is a stream from its opening to its end, as one side saw it.
type exchange struct {
	id        string
	messages  []message
	end       ending
	sent      time.Duration              // of audio
	closeTook time.Duration              // to the end of the connection, from end_of_stream or from when the client fell silent
	during    map[string]json.RawMessage // the status
	after     map[string]json.RawMessage
	pings     int32 // of the service
}

// conversation is the speech in real time.
var conversation = share(func(p *prober) *exchange {
	s := p.open()
	defer s.close()
	var during map[string]json.RawMessage
	begin := time.Now()
	for i := range len(p.Speech) / protocol.ChunkSamples {
		p.sleep(time.Until(begin.Add(time.Duration(i+1) * protocol.ChunkDuration)))
		if s.chunk(p.Speech[i*protocol.ChunkSamples:(i+1)*protocol.ChunkSamples]) != nil {
			break // its end says why
		}
		if i == min(20, len(p.Speech)/protocol.ChunkSamples/2) {
			during = p.status(s.id)
		}
	}
	e := p.finish(s)
	e.during = during
	e.after = p.finalStatus(s.id)
	return e
})

// finish ends a stream with end_of_stream and receives until its close.
func (p *prober) finish(s *stream) *exchange {
	ended := time.Now()
	_ = s.text(protocol.EndOfStreamMessage) // if it fails, the end says why
	s.waitEnd(p.ctx, closeWait+p.Slack)
	defer s.close()
	return s.exchange(ended)
}

// exchange is the stream up to now. Its end is counted from since.
func (s *stream) exchange(since time.Time) *exchange {
	e := &exchange{id: s.id, sent: s.audio(), pings: s.pings.Load(), closeTook: time.Since(since)}
	if e.messages, e.end = s.received(); e.end.over {
		e.closeTook = e.end.at.Sub(since)
	}
	return e
}

// excerpt sends some seconds of the speech at once, after n times what before
// sends. It shows whether that moves the clock.
func (p *prober) excerpt(n int, before func(s *stream) error) *exchange {
	s := p.open()
	defer s.close()
	for range n {
		if err := before(s); err != nil {
			differs("the connection was lost: %v", err)
		}
	}
	p.burst(s, 0)
	return p.finish(s)
}

// control is some seconds of the speech at once.
var control = share(func(p *prober) *exchange { return p.excerpt(0, nil) })

// burst sends speech from a chunk on, as much of it as may be sent at once.
func (p *prober) burst(s *stream, from int) {
	for i := from; s.audio() < burst && (i+1)*protocol.ChunkSamples <= len(p.Speech); i++ {
		if s.chunk(p.Speech[i*protocol.ChunkSamples:(i+1)*protocol.ChunkSamples]) != nil {
			break // its end says why
		}
	}
}

// silence is one chunk, and then no audio for a minute.
var silence = share(func(p *prober) *exchange {
	s := p.open()
	defer s.close()
	began := time.Now()
	require(s.chunk(make([]float32, protocol.ChunkSamples)))
	s.waitEnd(p.ctx, 75*time.Second)
	return s.exchange(began)
})

// mute is a client that sends nothing, not even a pong.
var mute = share(func(p *prober) *exchange {
	s := p.open()
	defer s.close()
	s.pong.Store(false)
	began := time.Now()
	s.waitEnd(p.ctx, 15*time.Second+promptly+p.Slack)
	return s.exchange(began)
})

// create creates a stream for other rules. Rules about the creation itself do not
// use it.
func (p *prober) create() (made protocol.LiveStream) {
	r := p.do(post("/v1/live", "{}"))
	if r.status/100 != 2 || json.Unmarshal(r.body, &made) != nil || made.ID == "" || made.URL == "" {
		skipped("it needs a stream, and none could be created: %s", r)
	}
	return made
}

// open creates a stream and opens it.
func (p *prober) open() *stream { return p.dial(p.create()) }

// dial opens a stream that was created.
func (p *prober) dial(made protocol.LiveStream) *stream {
	if err := p.hangs.Load(); err != nil { // each stream would wait as long
		skipped("it needs an open stream, and none could be opened: %v", *err)
	}
	conn, resp, err := p.Client.Dial(p.ctx, made.URL, http.Header{})
	var network net.Error
	switch {
	case err == nil:
		p.responds.Store(true)
	case errors.As(err, &network) && network.Timeout() && !p.responds.Load():
		p.hangs.Store(&err)
	}
	switch {
	case err != nil:
		skipped("it needs an open stream, and none could be opened: %v", err)
	case conn == nil:
		skipped("it needs an open stream, and the handshake returned %d", resp.StatusCode)
	}
	return newStream(made.ID, conn)
}

// status requests the status of a stream.
func (p *prober) status(id string) map[string]json.RawMessage {
	r := p.do(get("/v1/live/" + id))
	r.expectSuccess()
	return r.object()
}

// finalStatus waits until a stream is done or has failed, or statusWait has
// passed, and returns its status.
func (p *prober) finalStatus(id string) map[string]json.RawMessage {
	for deadline := time.Now().Add(statusWait + p.Slack); ; {
		fields := p.status(id)
		if s := textOf(fields, "status"); s == protocol.StatusDone || s == protocol.StatusError || time.Now().After(deadline) {
			return fields
		}
		p.sleep(250 * time.Millisecond)
	}
}

// textOf is a field that is a string, or "".
func textOf(fields map[string]json.RawMessage, name string) string {
	var s string
	_ = json.Unmarshal(fields[name], &s)
	return s
}
