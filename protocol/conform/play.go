package conform

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"hubbub/protocol"
)

// burst is how much audio is sent at once, well inside the 5 s that a client
// may be ahead.
const burst = 4500 * time.Millisecond

// play is one run of the rules, with what several of them look at.
type play struct {
	Options
	secrets protocol.Secrets
	run     string // a name that no other run has, for media
	waits   atomic.Int32
	tests   atomic.Int32   // requests to GET /v1/test with the key, for the rate
	acts    sync.WaitGroup // those that go on beside the rules

	talk   act[*talk]    // a conversation in real time
	plain  act[*talk]    // some seconds of it at once
	quiet  act[*talk]    // no audio for a minute
	stored act[*object]  // a media object
	old    act[*reply]   // a token of ten minutes
	made   act[[]*reply] // streams that were created
}

// act is something that is played once, however many rules look at it.
type act[T any] struct {
	once sync.Once
	out  T
	err  error
}

// get plays the act, or waits for whoever does.
func (a *act[T]) get(do func() (T, error)) (T, error) {
	a.once.Do(func() { a.out, a.err = do() })
	return a.out, a.err
}

func newPlay(o Options) *play {
	p := &play{Options: o, run: "hubbub-conform-" + rand.Text()[:12]}
	for _, key := range []string{o.Key, o.OtherKey, o.UnpaidKey, o.ExpiredKey} {
		p.secrets.Add(key)
	}
	return p
}

// begin starts the acts that take their time, for the rules that will look at
// them; they end with ctx.
func (p *play) begin(ctx context.Context, rules []Rule) {
	long := map[string]func(){
		"conversation": func() { _, _ = p.conversation(ctx) },
		"silence":      func() { _, _ = p.silence(ctx) },
		"oldToken":     func() { _, _ = p.oldToken(ctx) },
	}
	for _, r := range rules {
		name := longActs[r.Name]
		if do := long[name]; do != nil && p.plays(r) {
			delete(long, name)
			p.acts.Go(do)
		}
	}
}

// talk is a stream from its opening to its end, as one side saw it.
type talk struct {
	id     string
	heard  []heard
	end    ending
	sent   time.Duration // of audio
	took   time.Duration // from end_of_stream to the end of the connection
	before map[string]json.RawMessage
	during map[string]json.RawMessage
	after  map[string]json.RawMessage
}

// conversation is the speech in real time.
func (p *play) conversation(ctx context.Context) (*talk, error) {
	return p.talk.get(func() (*talk, error) {
		made, err := p.create(ctx)
		if err != nil {
			return nil, err
		}
		t := &talk{id: made.ID}
		if t.before, err = p.status(ctx, made.ID); err != nil {
			return nil, err
		}
		w, err := p.dial(ctx, made)
		if err != nil {
			return nil, err
		}
		defer w.close()
		begin := time.Now()
		for i := range len(p.Speech) / protocol.ChunkSamples {
			if err := pause(ctx, time.Until(begin.Add(time.Duration(i+1)*protocol.ChunkDuration))); err != nil {
				return nil, err
			}
			if w.chunk(p.Speech[i*protocol.ChunkSamples:(i+1)*protocol.ChunkSamples]) != nil {
				break // its end tells why
			}
			if i == min(20, len(p.Speech)/protocol.ChunkSamples/2) {
				if t.during, err = p.status(ctx, made.ID); err != nil {
					return nil, err
				}
			}
		}
		p.finish(ctx, w, t)
		t.after, err = p.settled(ctx, made.ID)
		return t, err
	})
}

// finish ends a stream with end_of_stream and takes what comes.
func (p *play) finish(ctx context.Context, w *wire, t *talk) {
	ended := time.Now()
	_ = w.text(protocol.EndOfStreamMessage) // if it fails, the end tells why
	w.rest(ctx, closeWait+p.Slack)
	t.heard, t.end = w.all()
	t.took = closeWait + p.Slack
	if t.end.over {
		t.took = t.end.at.Sub(ended)
	}
	t.sent = w.audio()
	w.close()
}

// excerpt is some seconds of the speech, sent at once, with something in front
// of it. It is for what moves the clock, or does not.
func (p *play) excerpt(ctx context.Context, front func(w *wire) error) (*talk, error) {
	w, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if err := front(w); err != nil {
		return nil, differs("the connection broke: %v", err)
	}
	left := burst - w.audio()
	for i := range int(left / protocol.ChunkDuration) {
		if (i+1)*protocol.ChunkSamples > len(p.Speech) || w.chunk(p.Speech[i*protocol.ChunkSamples:(i+1)*protocol.ChunkSamples]) != nil {
			break
		}
	}
	t := &talk{id: w.id}
	p.finish(ctx, w, t)
	return t, nil
}

// control is the excerpt with nothing in front.
func (p *play) control(ctx context.Context) (*talk, error) {
	return p.plain.get(func() (*talk, error) {
		return p.excerpt(ctx, func(*wire) error { return nil })
	})
}

// silence is a stream that has one chunk and then none.
func (p *play) silence(ctx context.Context) (*talk, error) {
	return p.quiet.get(func() (*talk, error) {
		w, err := p.open(ctx)
		if err != nil {
			return nil, err
		}
		defer w.close()
		began := time.Now()
		if err := w.chunk(make([]float32, protocol.ChunkSamples)); err != nil {
			return nil, err
		}
		w.rest(ctx, 75*time.Second)
		t := &talk{id: w.id}
		t.heard, t.end = w.all()
		if t.end.over {
			t.took = t.end.at.Sub(began)
		}
		return t, nil
	})
}

// create makes a stream that others then look at. What is wrong with its
// making is for the rules about that.
func (p *play) create(ctx context.Context) (protocol.LiveStream, error) {
	var made protocol.LiveStream
	r, err := p.do(ctx, ask{method: "POST", path: "/v1/live", body: "{}"})
	if err != nil {
		return made, err
	}
	if r.status/100 != 2 || json.Unmarshal(r.body, &made) != nil || made.ID == "" || made.URL == "" {
		return made, skipped("it needs a stream, and none could be created: %s", r)
	}
	return made, nil
}

// open creates a stream and opens it.
func (p *play) open(ctx context.Context) (*wire, error) {
	made, err := p.create(ctx)
	if err != nil {
		return nil, err
	}
	return p.dial(ctx, made)
}

// dial opens a stream that was created.
func (p *play) dial(ctx context.Context, made protocol.LiveStream) (*wire, error) {
	conn, resp, err := p.Client.Dial(ctx, made.URL)
	switch {
	case err != nil:
		return nil, skipped("it needs an open stream, and none could be opened: %v", err)
	case conn == nil:
		return nil, skipped("it needs an open stream, and the handshake was answered %d", resp.StatusCode)
	}
	return listen(made.ID, conn), nil
}

// status asks for the status of a stream.
func (p *play) status(ctx context.Context, id string) (map[string]json.RawMessage, error) {
	r, err := p.do(ctx, ask{method: "GET", path: "/v1/live/" + id})
	if err != nil {
		return nil, err
	}
	if err := r.ok(); err != nil {
		return nil, err
	}
	return r.isJSON()
}

// settled waits a while for a stream to be over, and returns what its status
// says then.
func (p *play) settled(ctx context.Context, id string) (map[string]json.RawMessage, error) {
	for deadline := time.Now().Add(settleWait + p.Slack); ; {
		fields, err := p.status(ctx, id)
		if err != nil {
			return nil, err
		}
		if s := textOf(fields, "status"); s == protocol.StatusDone || s == protocol.StatusError || time.Now().After(deadline) {
			return fields, nil
		}
		if err := pause(ctx, 250*time.Millisecond); err != nil {
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
