package client

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"hubbub/protocol"
)

// A ResilientStream has two kinds of goroutine besides its callers:
//   - The manager forwards the events of the current stream, merged into one
//     session, and opens the next stream when it is lost. It alone writes to
//     Updates and closes it.
//   - The sender of each stream sends what waits in the send buffer, as fast as
//     the service's pace allows, and ends with its stream.

const (
	// assumedLatency is how far behind its newest sample a service decides unless
	// it is known. For a file it is protocol.MaxLatency: more audio is retransmitted
	// then, which for a microphone would become a gap.
	assumedLatency = 2 * time.Second
	// eventDelay is how much later than that its events may arrive.
	eventDelay = 500 * time.Millisecond
	// decidedEvery is how often it is checked what was decided.
	decidedEvery = 250 * time.Millisecond
	// warmUp is audio before the cut that is retransmitted to a new stream.
	warmUp = time.Second
	// maxAhead is how far the audio may run ahead of real time on the clock of a
	// stream: services close beyond 5 s.
	maxAhead = 4700 * time.Millisecond
	// maxMoved is how much later than it was announced a stream may begin: a chunk, and the roundings of floats.
	maxMoved = protocol.ChunkDuration * 3 / 2
	// againTimeout bounds the request that is made once more then: a service that is slow at each must not use up
	// the time of the attempt.
	againTimeout = time.Second
	// ackTimeout is how long a service may take to answer the ping behind its
	// first chunk; after that the chunk counts as received.
	ackTimeout = 3 * time.Second
)

// ResilientOptions configure a ResilientStream.
type ResilientOptions struct {
	// Limit bounds the time without a stream; 0 = a lost stream is the end.
	Limit time.Duration
	// Live is a source that cannot wait: audio that the service does not accept
	// in time is dropped and becomes a gap. Any other source waits.
	Live bool
	// Unpaced is a service that accepts audio ahead of real time.
	Unpaced bool
	// Latency is how far behind the newest sample the service decides;
	// 0 = not known.
	Latency time.Duration
	// Ending, unless nil, is closed when the user ends the session: a stream
	// that is lost then or later gets one more attempt.
	Ending <-chan struct{}
	// Enrolment is the people whom the service recognises; nil = nobody.
	Enrolment *protocol.Enrolment
	// Words asks the service for what was said.
	Words bool
}

// input is the body of a request for a stream.
func (o *ResilientOptions) input() map[string]any {
	input := map[string]any{}
	if o.Words {
		input["words"] = true
	}
	if o.Enrolment != nil {
		input["voiceprints"] = o.Enrolment.Voiceprints
		if o.Enrolment.Matching != nil {
			input["matching"] = o.Enrolment.Matching
		}
	}
	return input
}

// ResilientStream is a stream that outlives its connections: a lost stream is
// resumed by a new one, by the policy in reconnect.go. Its methods may be called
// from any goroutine. The caller must receive from Updates until it is closed,
// or call Close.
//
// It appears as one stream on the capture clock. Turns that are open when a
// stream is lost end where the stream is known to have decided. Audio after that
// is retransmitted, as far as it is buffered and the pace of the new stream
// leaves time; the rest is a gap. The new stream is asked to continue the labels
// of the old one; if it does not, its labels get names of their own.
type ResilientStream struct {
	streamSession
	o             ResilientOptions
	buffer        *sendBuffer
	endSent       chan struct{} // closed when end_of_stream was sent
	endOnce       sync.Once     // closes it
	withoutResume bool          // the service rejects the field resume; of the manager
	begins        float64       // where the newest stream was announced to begin, in seconds; of the manager

	mu        sync.Mutex // for all below
	stream    *Stream    // the newest
	id        string     // its id
	earlier   int64      // chunks that the streams before it were sent
	newLabels []string
}

// Update is an event or a change of the connection.
type Update struct {
	// Event has its timestamp on the capture clock. Events of the first stream
	// are otherwise as received; those of later ones have a new Raw.
	Event  protocol.Event
	Change *ConnectionChange
}

// ConnectionChange says that a stream was lost, or that a new one continues.
type ConnectionChange struct {
	// Lost is why the stream ended; nil when a new one continues.
	Lost error
	// Gap is what no stream has decided, between the two.
	Gap protocol.Span
	// Resumed says that the new stream continues the labels of the old one.
	Resumed bool
	// Unrecognised says that the service refuses the voiceprints now: it recognises nobody.
	Unrecognised bool
}

// OpenResilient opens a first stream. A failure is returned at once, unless the service asks
// to try again. ctx bounds the opening only.
func (c *Client) OpenResilient(ctx context.Context, o ResilientOptions) (*ResilientStream, error) {
	live, err := c.CreateStream(ctx, o.input())
	if err != nil {
		return nil, err
	}
	var s *Stream
	err = c.retried(ctx, func() (err error) { s, err = c.OpenStream(ctx, live.URL); return err })
	if err != nil {
		return nil, err
	}
	if o.Latency <= 0 && o.Live {
		o.Latency = assumedLatency
	} else if o.Latency <= 0 {
		o.Latency = protocol.MaxLatency
	}
	r := &ResilientStream{
		streamSession: c.newStreamSession(live.Words, o.Limit, "Turns up to there and the recording are kept; --reconnect sets how long reconnecting is tried."),
		o:             o, buffer: newSendBuffer(o.Live, o.Ending), endSent: make(chan struct{}), id: live.ID, stream: s,
	}
	r.reconnect.ending = o.Ending
	if o.Live && !o.Unpaced {
		r.buffer.backlog = int(maxAhead / protocol.ChunkDuration)
	}
	go r.run("keeping the stream open", func() { r.manage(s) })
	return r, nil
}

// Track is 0: there is one track.
func (r *ResilientStream) Track(string) int { return 0 }

// Send accepts one chunk of ChunkSamples. seq is the chunk's number on the
// capture clock and must grow. It does not wait for the service, but a source
// that can wait is blocked while 5 s of audio wait. An error that is
// ErrStreamOver says that the stream is over.
func (r *ResilientStream) Send(seq int64, samples []float32) error {
	if err := checkChunk(samples); err != nil {
		return err
	}
	select {
	case <-r.over:
		return ErrStreamOver
	default:
	}
	return r.buffer.put(bufferedChunk{seq, samples}, r.over)
}

// EndOfStream says that no more audio comes. It returns when that and all audio
// before it was sent, or ErrStreamOver when the stream ended before.
func (r *ResilientStream) EndOfStream() error {
	r.buffer.end()
	select {
	case <-r.endSent:
	case <-r.over:
	}
	select {
	case <-r.endSent:
		return nil
	default:
		return ErrStreamOver
	}
}

// Close ends the stream at once and returns when its goroutines have ended.
func (r *ResilientStream) Close() {
	r.abort()
	<-r.over
}

// abort is Close without the wait.
func (r *ResilientStream) abort() {
	r.cancel()
	r.current().Close()
}

func (r *ResilientStream) current() *Stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stream
}

// State is the state of a session at one moment. Its slices are shared: read only.
type State struct {
	// Of the current stream, except ChunksSent, which is of the whole session, and Behind, which includes what waits to be sent.
	StreamStats
	ID         string // of the service, of the newest stream
	Connection ConnectionStatus
	// Sent is the time of the newest sample that the current stream was sent, in seconds of the capture clock; at least
	// how far the streams before had decided.
	Sent float64
	// Ahead is the length of the audio up to the newest chunk that a stream was sent, dropped chunks included, minus the
	// time since the first was sent: positive when ahead of real time. 0 before the first.
	Ahead   time.Duration
	Dropped int64 // chunks that no stream was sent
	// NewLabels are the labels that a stream brought that did not continue those before
	// it: some of them may be people who have a label already.
	NewLabels []string
	Gaps      []protocol.Span // that no stream has decided, in order
}

// State may be called at any time, also after the end.
func (r *ResilientStream) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := State{StreamStats: r.stream.Stats(), ID: r.id, Connection: r.reconnect.state(), NewLabels: r.newLabels}
	st.ChunksSent += r.earlier
	r.buffer.fill(&st)
	return st
}

// manage is the manager goroutine.
func (r *ResilientStream) manage(s *Stream) {
	defer func() { r.current().Close() }()
	for {
		s.waiting = func() int { n, _ := r.buffer.waiting(); return n }
		var sender sync.WaitGroup
		sender.Go(func() {
			defer s.recovered("sending")
			r.sendBuffered(s)
		})
		r.forwardEvents(s)
		r.info = s.Wait()
		sender.Wait()
		sending := s.sending()
		idle := time.Since(sending.lastBegun)
		if r.o.Limit <= 0 || r.ctx.Err() != nil || !retryAfterLoss(r.info, !sending.endSent.IsZero(), idle) {
			r.deliverEvents(r.merger.abandon())
			return
		}
		next, err := r.resume(s, r.info)
		if err != nil {
			r.deliverEvents(r.merger.abandon())
			r.info.Err = err
			return
		}
		s = next
	}
}

// resume ends what a lost stream has left open, and opens the stream that
// continues.
func (r *ResilientStream) resume(lost *Stream, info CloseInfo) (next *Stream, err error) {
	before := r.merger.cut
	if r.earlier == 0 { // the clock of watchers begins with the first chunk
		r.begins = lost.captureTime(0)
	}
	cut, ends := r.merger.cutAt(r.decided(lost))
	r.buffer.lost(cut)
	r.reconnect.lost(lost.opened, cut-before >= minProgress, info.Err)
	r.deliverEvents(ends)
	r.deliver(Update{Change: &ConnectionChange{Lost: info.Err}})
	// A source that paused for too long is not worth a stream until it goes on. Its pause is no outage.
	if info.Reason == Policy {
		if !r.buffer.waitForAudio(r.ctx) {
			return nil, info.Err
		}
		if n, _ := r.buffer.waiting(); n > 0 {
			r.reconnect.renew()
		}
	}
	var live protocol.LiveStream
	enrolled := r.o.Enrolment != nil
	err = r.reconnect.run(r.ctx, func(ctx context.Context) (at attemptStep, err error) {
		next, live, at, err = r.openNext(ctx)
		return at, err
	})
	if err != nil {
		return nil, err
	}
	r.replaceStream(next, live.ID, ConnectionChange{Resumed: live.Resumed, Unrecognised: enrolled && r.o.Enrolment == nil})
	return next, nil
}

// openNext makes one attempt to open the next stream.
func (r *ResilientStream) openNext(ctx context.Context) (s *Stream, live protocol.LiveStream, at attemptStep, err error) {
	live, begins, err := r.createNext(ctx)
	if err != nil {
		return nil, live, creating, err
	}
	// With a microphone that was without a connection for long, a slow request has moved the begin that it named.
	if live.Resumed && r.buffer.wouldRewind(r.merger.cut)-begins > maxMoved.Seconds() {
		again, cancel := context.WithTimeout(ctx, againTimeout)
		if second, at, err := r.createNext(again); err == nil {
			live, begins = second, at
		}
		cancel()
	}
	s, err = r.client.OpenStream(ctx, live.URL)
	if err == nil {
		r.begins = begins
	}
	return s, live, opening, err
}

// createNext asks for the next stream. begins is where its audio begins if it is opened at once, in seconds.
func (r *ResilientStream) createNext(ctx context.Context) (live protocol.LiveStream, begins float64, err error) {
	begins = r.buffer.wouldRewind(r.merger.cut)
	input := r.o.input()
	if !r.withoutResume {
		input["resume"] = r.id // which only this goroutine changes
		if r.State().ChunksSent > 0 {
			// For watchers. By how much the streams before began later than was announced does not add up.
			input["resumeAt"] = protocol.Round1ms(begins - r.begins)
		}
	}
	live, err = r.client.CreateOnce(ctx, input)
	rejected := func() bool {
		response, ok := errors.AsType[*ResponseError](err)
		return ok && response.Status == http.StatusBadRequest
	}
	if r.o.Enrolment != nil && rejected() { // the service may have another engine now
		delete(input, "voiceprints")
		delete(input, "matching")
		if live, err = r.client.CreateOnce(ctx, input); err == nil {
			r.o.Enrolment = nil // which only this goroutine uses
		}
	}
	if !r.withoutResume && rejected() {
		r.withoutResume = true
		live, err = r.client.CreateOnce(ctx, r.o.input())
	}
	return live, begins, err
}

// replaceStream puts a new stream in the place of the lost one.
func (r *ResilientStream) replaceStream(s *Stream, id string, change ConnectionChange) {
	change.Gap = r.buffer.rewind(r.merger.cut)
	ends := r.merger.nextStream(change.Gap.End, change.Resumed)
	r.mu.Lock()
	r.earlier += r.stream.Stats().ChunksSent
	r.stream, r.id = s, id
	r.mu.Unlock()
	r.reconnect.connected()
	if r.ctx.Err() != nil { // Close has closed the old one
		s.Close()
	}
	r.deliverEvents(ends)
	r.deliver(Update{Change: &change})
}

// forwardEvents delivers the events of one stream until its end.
func (r *ResilientStream) forwardEvents(s *Stream) {
	tick := time.NewTicker(decidedEvery)
	defer tick.Stop()
	for {
		var events []protocol.Event
		select {
		case e, ok := <-s.Events():
			if !ok {
				return
			}
			events = r.merger.add(e)
			r.mu.Lock()
			r.newLabels = slices.Clip(r.merger.newLabels)
			r.mu.Unlock()
		case <-tick.C:
			decided := r.decided(s)
			if len(s.Events()) > 0 { // they came before the acknowledgement
				continue
			}
			events = r.merger.advance(decided)
			r.buffer.forget(max(decided, r.merger.last) - warmUp.Seconds())
		}
		if !r.deliverEvents(events) {
			s.Close()
			return
		}
	}
}

// decided is the time up to which a stream has certainly decided and reported:
// by its newest event, or by the audio that it has acknowledged.
func (r *ResilientStream) decided(s *Stream) float64 {
	acked := float64(s.sending().acked) * protocol.ChunkDuration.Seconds()
	return max(s.captureTime(acked-(r.o.Latency+eventDelay).Seconds()), r.merger.last, r.merger.cut)
}
