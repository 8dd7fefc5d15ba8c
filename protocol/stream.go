package protocol

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// A Stream has three parties, and each knows how it ends:
//   - Writers are the callers of Send and EndOfStream, one at a time (the
//     token in writing), each write bounded by writeTimeout.
//   - The reader is a goroutine. It alone reads, delivers events, decides why
//     the stream ended and closes the channel of events.
//   - The pinger is a goroutine that sends pings until the reader is done.
//
// Whoever finds that the stream cannot go on gives the cause to abort, or to
// writeFailed, and thereby makes the reader return.

// streamConfig holds the bounds of a stream, so that tests can shorten them.
type streamConfig struct {
	pingEvery    time.Duration
	readTimeout  time.Duration // silence of the service, pongs included
	writeTimeout time.Duration // for one message
	drainTimeout time.Duration // silence after end_of_stream, pongs not counted
	drainLimit   time.Duration // from end_of_stream to the close in all
	writeGrace   time.Duration // to find the service's reason after a failed write
	queue        int           // events
	maxMessage   int64         // bytes
	now          func() time.Time

	// Of a Link.
	settleEvery time.Duration // how often it looks what has been decided
	backOff     func(tries int, err error) time.Duration
}

func defaultStreamConfig() streamConfig {
	return streamConfig{
		pingEvery:    2 * time.Second,
		readTimeout:  30 * time.Second,
		writeTimeout: 10 * time.Second,
		drainTimeout: 10 * time.Second,
		drainLimit:   60 * time.Second,
		writeGrace:   time.Second,
		queue:        256,
		maxMessage:   1 << 20,
		now:          time.Now,
		settleEvery:  250 * time.Millisecond,
		backOff:      backOff,
	}
}

// StreamStats is what a stream has done so far.
type StreamStats struct {
	ChunksSent int64
	BytesSent  int64 // of audio
	// Ahead is how much audio the stream has covered, dropped chunks
	// included, minus the wall clock since the first chunk began to be sent:
	// above zero ahead of real time, below behind. 0 before the first chunk.
	Ahead          time.Duration
	EventsReceived int64
	// Undelivered counts events that were received but not put into Events,
	// because the stream was closed while nobody took them.
	Undelivered int64
	// RTT is the newest round trip of a ping; 0 before the first.
	RTT    time.Duration
	Opened time.Time
}

// Stream is one open stream of a service. Its methods may be called from any
// goroutine. Somebody must receive from Events until it is closed, or call
// Close.
type Stream struct {
	conn   *websocket.Conn
	config streamConfig
	opened time.Time

	events  chan Event
	quit    chan struct{} // closed by the first abort
	pingNow chan struct{}
	over    chan struct{} // closed by the reader at its very end
	parted  sync.WaitGroup

	watch bool // nothing is sent: the service ends the stream when it is over

	writing chan struct{} // holds a token while somebody writes
	frame   []byte        // owned by the holder of the token

	received, undelivered, rtt atomic.Int64
	pinged                     atomic.Pointer[ping]
	tap                        *streamTap // nil = nobody looks

	mu          sync.Mutex // for all below
	gaps        gaps
	sent        int64 // chunks
	nextSeq     int64
	acked       int64 // chunks that the service certainly has
	firstAcked  time.Time
	begun       time.Time // of the first chunk; before it, the opening
	newest      time.Time // of the newest chunk, likewise
	firstSent   time.Time
	ended       time.Time // when end_of_stream was sent; zero before
	lastMessage time.Time
	stalled     time.Duration // time spent waiting for the consumer since ended
	writeErr    error         // the first failed write
	abortInfo   *CloseInfo    // set by the first abort
	info        CloseInfo     // set before over is closed
}

// OpenStream opens the address that CreateStream returned. The address works
// once. ctx bounds the opening only: a stream ends by EndOfStream and the
// service's close, or by Close.
//
// A handshake that the service turns down is an *APIError.
func (c *Client) OpenStream(ctx context.Context, address string) (*Stream, error) {
	u, err := c.streamURL(address)
	if err != nil {
		return nil, err
	}
	return c.open(ctx, u, http.Header{}, false)
}

// open opens a WebSocket, to send on it or only to watch.
func (c *Client) open(ctx context.Context, u *url.URL, head http.Header, watch bool) (*Stream, error) {
	head.Set("User-Agent", c.userAgent)
	number := int(c.opened.Add(1))
	traced, look := c.tap.handshake(ctx, u, number)
	conn, resp, err := c.streamDialer().DialContext(traced, u.String(), head)
	if err != nil {
		return nil, c.handshakeError(ctx, u, resp, err, look)
	}
	look.answered(resp, nil)
	s := newStream(conn, c.stream)
	s.tapStream(c.tap, number)
	s.watch = watch
	s.start()
	return s, nil
}

// streamURL checks the address of a stream. Its errors do not show the token.
func (c *Client) streamURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, withHint(hintWrongService, "the service gave a stream address that cannot be read")
	}
	u.Scheme = strings.ToLower(u.Scheme)
	switch {
	case u.Hostname() == "" || u.Scheme != "ws" && u.Scheme != "wss":
		return nil, withHint(hintWrongService, "the service gave a stream address that is not one: it begins with %q", Clean(u.Scheme+"://"+u.Host, 80))
	case u.Scheme == "ws" && c.base.Scheme == "https":
		return nil, withHint("tell the service's operator (hubbub serve: --public-url); audio is not sent in the clear to a service reached over TLS",
			"the service gave a stream address without TLS, ws://%s", Clean(u.Host, 80))
	}
	u.Fragment = ""
	return u, nil
}

func (c *Client) handshakeError(ctx context.Context, u *url.URL, resp *http.Response, err error, look *exchange) error {
	if resp == nil || !errors.Is(err, websocket.ErrBadHandshake) {
		err = explain(ctx, u, c.timeout, err)
		look.failed(err)
		return err
	}
	defer resp.Body.Close()
	body := make([]byte, maxErrorBody)
	n, _ := resp.Body.Read(body) // gorilla has read what there is into memory
	look.answered(resp, body[:n])
	e := c.apiError(resp, body[:n])
	switch {
	case resp.StatusCode/100 < 3:
		e.Message = "this is no WebSocket"
		e.hint = "a proxy in between may not let WebSockets through"
	case resp.StatusCode == http.StatusUnauthorized:
		e.hint = "the stream's token is used up, expired or wrong: start again, which makes a new one"
	}
	return e
}

func newStream(conn *websocket.Conn, config streamConfig) *Stream {
	now := config.now()
	s := &Stream{
		conn: conn, config: config, opened: now, lastMessage: now, begun: now, newest: now,
		events:  make(chan Event, config.queue),
		quit:    make(chan struct{}),
		over:    make(chan struct{}),
		pingNow: make(chan struct{}, 1),
		writing: make(chan struct{}, 1),
		frame:   make([]byte, 0, ChunkBytes),
	}
	conn.SetReadLimit(config.maxMessage)
	conn.SetPongHandler(s.pong)
	return s
}

func (s *Stream) start() {
	s.parted.Add(2)
	go s.read()
	go s.ping()
}

// Events delivers every message of the service in order, those that are
// unknown or cannot be read (Event.Err) included. It is closed when the stream
// is over. Nothing is dropped: when nobody receives, the stream stops reading.
func (s *Stream) Events() <-chan Event { return s.events }

// Send sends one chunk, ChunkSamples long. seq is the chunk's number on the
// capture's clock and must grow; a gap is audio that was dropped, and is
// remembered for CaptureTime.
//
// ctx is heeded until the write begins. The write itself is bounded by 10 s;
// one that fails ends the stream. An error that is ErrStreamOver says that the
// stream had ended.
func (s *Stream) Send(ctx context.Context, seq int64, samples []float32) error {
	if len(samples) != ChunkSamples {
		return fmt.Errorf("a chunk has %d samples, not %d", ChunkSamples, len(samples))
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	begun := s.config.now()
	s.mu.Lock()
	ended, next := !s.ended.IsZero(), s.nextSeq
	s.mu.Unlock()
	switch {
	case ended:
		return errors.New("no chunk can follow end_of_stream")
	case seq < next:
		return fmt.Errorf("chunk %d cannot follow chunk %d", seq, next-1)
	}
	s.frame = AppendChunk(s.frame[:0], samples)
	s.tap.sending(begun)
	if err := s.write(websocket.BinaryMessage, s.frame); err != nil {
		s.tap.chunk(seq, begun, s.config.now(), 0, err)
		return err
	}
	s.noteChunk(seq, begun)
	if s.tap != nil {
		s.tap.chunk(seq, begun, s.config.now(), s.Stats().Ahead, nil)
	}
	return nil
}

// noteChunk remembers a chunk that was sent.
func (s *Stream) noteChunk(seq int64, begun time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gaps.add(s.sent, seq)
	if s.sent == 0 {
		s.begun = begun
	}
	s.newest = begun
	s.sent++
	s.nextSeq = seq + 1
	if s.firstSent.IsZero() {
		// As if the capture had begun with chunk 0, for Ahead.
		s.firstSent = begun.Add(-time.Duration(seq) * ChunkDuration)
		poke(s.pingNow)
	}
}

func (s *Stream) chunksSent() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// hasEnded tells whether end_of_stream was sent.
func (s *Stream) hasEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.ended.IsZero()
}

// firstChunk and lastChunk are when the first and the newest chunk began to be
// sent; before that, when the stream was opened.
func (s *Stream) firstChunk() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

func (s *Stream) lastChunk() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// arrived notes that the service has so many chunks.
func (s *Stream) arrived(chunks int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked = max(s.acked, chunks)
	if s.acked > 0 && s.firstAcked.IsZero() {
		s.firstAcked = s.config.now()
	}
}

// reach is how many chunks the service certainly has, and when it certainly had
// the first; zero before that is known.
func (s *Stream) reach() (acked int64, first time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acked, s.firstAcked
}

// EndOfStream says that no more audio comes, and returns when that is sent.
// Events go on until the service closes the stream, which it must do within
// 10 s of its last event: receive until Events is closed, then ask Wait. Called
// again, it does nothing.
func (s *Stream) EndOfStream(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	s.mu.Lock()
	if !s.ended.IsZero() {
		s.mu.Unlock()
		return nil
	}
	s.ended = s.config.now() // before the write: the close may come at once
	s.mu.Unlock()
	s.tap.message(EndOfStreamMessage)
	if err := s.write(websocket.TextMessage, []byte(EndOfStreamMessage)); err != nil {
		return err
	}
	s.armRead()
	return nil
}

// CaptureTime is the position on the capture's clock, in seconds, of a position
// on the service's clock, which does not know of chunks that were dropped.
func (s *Stream) CaptureTime(seconds float64) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gaps.capture(seconds, false)
}

// OnCaptureClock is the event with its timestamp on the capture's clock. Where
// audio was dropped exactly at a turn's end, the turn ends before the gap. Raw
// stays as received.
func (s *Stream) OnCaptureClock(e Event) Event {
	if e.Type == TypeSpeakerStart || e.Type == TypeSpeakerEnd {
		s.mu.Lock()
		defer s.mu.Unlock()
		e.Timestamp = s.gaps.capture(e.Timestamp, e.Type == TypeSpeakerEnd)
	}
	return e
}

// Wait blocks until the stream is over and tells how it ended. It does not
// receive from Events.
func (s *Stream) Wait() CloseInfo {
	<-s.over
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

// Stats is what the stream has done so far.
func (s *Stream) Stats() StreamStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := StreamStats{
		ChunksSent: s.sent, BytesSent: s.sent * ChunkBytes,
		EventsReceived: s.received.Load(), Undelivered: s.undelivered.Load(),
		RTT: time.Duration(s.rtt.Load()), Opened: s.opened,
	}
	if s.sent > 0 {
		st.Ahead = time.Duration(s.nextSeq)*ChunkDuration - s.config.now().Sub(s.firstSent)
	}
	return st
}

// Close ends the stream at once, without waiting for the service, and returns
// when its goroutines have. After the end it does nothing. Events that were
// received can still be taken from Events.
func (s *Stream) Close() error {
	s.abort(CloseInfo{Reason: Cancelled, Err: fmt.Errorf("the stream was closed by this side: %w", context.Canceled)})
	s.parted.Wait()
	return nil
}

// abort ends the stream for a cause, unless another came first.
func (s *Stream) abort(cause CloseInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.abortInfo != nil {
		return
	}
	s.abortInfo = &cause
	close(s.quit)
	// Not conn.Close: that of TLS waits up to 5 s for a peer that is gone.
	raw := s.conn.NetConn()
	if t, ok := raw.(*tls.Conn); ok {
		raw = t.NetConn()
	}
	_ = raw.Close()
}
