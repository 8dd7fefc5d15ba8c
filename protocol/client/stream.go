package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/trace"
)

// A Stream has three parties:
//   - The sender is the caller of Send and EndOfStream: one goroutine at a time.
//     Each write is bounded by writeTimeout.
//   - The reader is a goroutine. It alone reads, delivers events, decides why
//     the stream ended and closes the channel of events.
//   - The pinger is a goroutine that sends pings and pongs until the reader has
//     ended.
//
// Whoever finds that the stream cannot continue passes the cause to abort or
// writeFailed, which makes the reader return.

const (
	readTimeout     = 9 * time.Second  // silence of the service, pongs included
	drainTimeout    = 10 * time.Second // after end_of_stream without an event or acknowledged audio, see Stream.armRead
	drainLimit      = 60 * time.Second // after end_of_stream without progress, see Stream.progress
	maxServiceDelay = 50 * time.Second // what these are extended by at most, see Stream.serviceDelay
	maxMessageBytes = 1 << 20
)

// config holds what tests shorten.
type config struct {
	pingEvery    time.Duration
	writeTimeout time.Duration // for one message, and for audio to be acknowledged
	patience     time.Duration // added to each wait for the service
	writeGrace   time.Duration // to find the service's reason after a failed write
	eventQueue   int           // events
	minUptime    time.Duration
	backOff      func(attempt int, err error) time.Duration
}

func defaultConfig() config {
	return config{pingEvery: 2 * time.Second, writeTimeout: time.Minute, writeGrace: time.Second, eventQueue: 256, minUptime: minUptime, backOff: backOff}
}

// StreamStats are the counters of a stream.
type StreamStats struct {
	ChunksSent int64
	// RTT is the newest round-trip time of a ping; 0 before the first.
	RTT time.Duration
	// Behind is the length of the audio that was sent and that the service has
	// not acknowledged.
	Behind time.Duration
}

// Stream is an open stream. Its methods may be called from any goroutine, Send and
// EndOfStream from one at a time. The caller must receive from Events until it is
// closed, or call Close.
type Stream struct {
	conn   *websocket.Conn
	config config
	opened time.Time

	events     chan protocol.Event
	acks       chan struct{} // audio was acknowledged or decided
	pingNow    chan struct{}
	pongs      chan string // the newest ping of the service, to be answered
	goroutines sync.WaitGroup
	ctx        context.Context // ended by the first abort, at the latest by that of the reader at its end
	cancel     context.CancelFunc

	receiveOnly bool // nothing is sent: the service ends the stream when it is over

	frame   []byte     // of the sender
	waiting func() int // of the sender: how many chunks wait behind the one that was sent; nil = not known

	tracer   *streamTracer   // nil = not traced
	redactor *trace.Redactor // for what the service repeats

	mu sync.Mutex // for all below

	// What was sent.
	sendingState
	sent      int64 // chunks
	nextSeq   int64
	realStart time.Time // when chunk 0 would have been sent; zero before the first
	clock     clockMap
	times     sentTimes

	// What the service has read: it answers a ping behind the audio before it.
	pings      []ping        // unanswered, at most maxPings
	lastPing   uint64        // number of the newest
	beforePing int64         // chunks before it
	rtt        time.Duration // newest round-trip time; 0 before the first
	progress   time.Time     // when the service last acknowledged audio, or end_of_stream was sent; zero before

	// What the service has sent.
	lastMessage time.Time
	decided     float64            // newest time of an event, on the service's clock
	open        map[string]float64 // starts of the turns without an end, by label; of a stream that is sent

	// The end.
	writeErr error         // the first failed write
	failedAt time.Time     // when it failed
	stalled  time.Duration // time spent waiting for the receiver of Events since endSent or failedAt
	info     *CloseInfo    // set by the first abort, and by the reader at its end
}

// sendingState is how far the sending of a stream is.
type sendingState struct {
	acked      int64     // chunks that the service has acknowledged by a pong
	firstAcked time.Time // when it acknowledged the first; zero before
	firstBegun time.Time // when the first chunk began to be sent; before it, the opening
	lastBegun  time.Time // the same for the newest chunk
	endSent    time.Time // when end_of_stream was sent; zero before
}

func newStream(conn *websocket.Conn, config config, redactor *trace.Redactor) *Stream {
	now := time.Now()
	s := &Stream{
		conn: conn, config: config, opened: now, lastMessage: now,
		sendingState: sendingState{firstBegun: now, lastBegun: now},
		events:       make(chan protocol.Event, config.eventQueue),
		acks:         make(chan struct{}, 1),
		pingNow:      make(chan struct{}, 1),
		pongs:        make(chan string, 1),
		frame:        make([]byte, 0, protocol.ChunkBytes),
		open:         map[string]float64{},
		redactor:     redactor,
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	conn.SetReadLimit(maxMessageBytes)
	conn.SetPingHandler(s.pinged)
	conn.SetPongHandler(s.pong)
	return s
}

func (s *Stream) start() {
	s.goroutines.Go(s.read)
	s.goroutines.Go(s.ping)
}

// Events delivers every message of the service in order, including those that
// are unknown or cannot be parsed (Event.Err). Times are on the capture clock; Raw
// stays as received, but for an error that repeats the key or a token. It is closed when the stream is over. Nothing is dropped:
// while nobody receives, the stream stops reading.
func (s *Stream) Events() <-chan protocol.Event { return s.events }

// checkChunk checks the length of a chunk.
func checkChunk(samples []float32) error {
	if len(samples) != protocol.ChunkSamples {
		return fmt.Errorf("a chunk has %d samples, not %d", protocol.ChunkSamples, len(samples))
	}
	return nil
}

// Send sends one chunk of ChunkSamples. seq is the chunk's number on the capture
// clock and must grow; a gap is audio that was dropped, and is remembered for
// events on the capture clock.
//
// The write is bounded by a minute; a failed one ends the stream. An error that is
// ErrStreamOver says that the stream had ended.
func (s *Stream) Send(seq int64, samples []float32) error {
	if err := cmp.Or(checkChunk(samples), s.checkOpen()); err != nil {
		return err
	}
	begun := time.Now()
	chunk, err := s.beginChunk(seq, begun)
	if err != nil {
		return err
	}
	s.frame = protocol.AppendChunk(s.frame[:0], samples)
	if err = s.write(websocket.BinaryMessage, s.frame); err == nil {
		chunk.Ahead = s.noteSent(seq, begun)
	}
	if s.waiting != nil {
		chunk.Waiting = s.waiting()
	}
	s.tracer.chunk(chunk, begun, time.Now(), err)
	return err
}

// beginChunk notes a chunk that is about to be sent: the response may come before the
// write returns, and the time that the write waits for the service counts as lag.
func (s *Stream) beginChunk(seq int64, begun time.Time) (r trace.Record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.endSent.IsZero():
		return r, errors.New("no chunk can follow end_of_stream")
	case seq < s.nextSeq:
		return r, fmt.Errorf("chunk %d cannot follow chunk %d", seq, s.nextSeq-1)
	}
	s.clock.add(s.sent, seq)
	s.times.add(begun.Sub(s.opened))
	r = trace.Record{Dir: trace.Outgoing, Kind: trace.KindChunk, Size: protocol.ChunkBytes, Chunk: seq, Waiting: -1}
	if s.sent > 0 {
		r.Gap, r.Dropped = begun.Sub(s.lastBegun), seq-s.nextSeq
	}
	return r, nil
}

// maxSentTimes is how many times of chunks are kept for the lag of events: five
// minutes.
const maxSentTimes = 3000

// sentTimes is when the newest chunks began to be sent, since the opening of the stream.
type sentTimes struct {
	times  []time.Duration
	chunks int // that were sent
}

func (t *sentTimes) add(at time.Duration) {
	if t.times = append(t.times, at); len(t.times) >= 2*maxSentTimes {
		t.times = append(t.times[:0], t.times[maxSentTimes:]...)
	}
	t.chunks++
}

// lag is the time since the chunk with the last sample before a timestamp of the
// stream's clock was sent, or since the oldest that is kept; negative when none was.
func (t *sentTimes) lag(timestamp float64, now time.Duration) time.Duration {
	if t.chunks == 0 {
		return -1
	}
	gone := t.chunks - len(t.times)
	i := min(max(int(protocol.ChunkBefore(timestamp))-gone, 0), len(t.times)-1)
	return max(now-t.times[i], 0)
}

// noteSent notes a chunk that was sent, and returns how far the audio is ahead of real time then.
func (s *Stream) noteSent(seq int64, begun time.Time) (ahead time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastBegun = begun
	s.nextSeq = seq + 1
	if s.sent++; s.sent == 1 {
		s.firstBegun = begun
		s.realStart = begun.Add(-time.Duration(seq) * protocol.ChunkDuration)
	}
	if s.sent == 1 || s.sent-s.beforePing >= maxUnacked/2 {
		notify(s.pingNow)
	}
	return time.Duration(s.nextSeq)*protocol.ChunkDuration - time.Since(s.realStart)
}

// sending is the state of the sending now.
func (s *Stream) sending() sendingState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sendingState
}

// EndOfStream says that no more audio comes, and returns when that was sent.
// Events continue until the service closes the stream. It is given up after 10 s
// without an event or acknowledged audio, later if it is behind: receive until
// Events is closed, then call Wait. A second call does nothing.
func (s *Stream) EndOfStream() error {
	if err := s.checkOpen(); err != nil {
		return err
	}
	s.mu.Lock()
	if !s.endSent.IsZero() {
		s.mu.Unlock()
		return nil
	}
	s.endSent = time.Now() // before the write: the close may come at once
	s.progress = s.endSent
	s.mu.Unlock()
	message := []byte(protocol.EndOfStreamMessage)
	// Before the write: the response may come before it returns.
	s.tracer.put(trace.Record{Dir: trace.Outgoing, Kind: trace.KindMessage, Size: len(message), Type: protocol.TypeEndOfStream, Raw: message})
	if err := s.write(websocket.TextMessage, message); err != nil {
		return err
	}
	s.armRead()
	return nil
}

// captureTime converts a time on the service's clock, in seconds, to the capture
// clock. The service's clock does not include chunks that were dropped.
func (s *Stream) captureTime(seconds float64) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.capture(seconds, false)
}

// onCaptureClock is the event with its times on the capture clock. Where
// audio was dropped exactly at a turn's end, the turn ends before the gap.
func (s *Stream) onCaptureClock(e protocol.Event) protocol.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Type {
	case protocol.TypeSpeakerStart, protocol.TypeSpeakerEnd:
		e.Timestamp = s.clock.capture(e.Timestamp, e.Type == protocol.TypeSpeakerEnd)
	case protocol.TypeText:
		e.Transcript.Start = protocol.Round1ms(s.clock.capture(e.Transcript.Start, false))
		e.Transcript.End = protocol.Round1ms(s.clock.capture(e.Transcript.End, true))
	}
	return e
}

// Wait blocks until the stream is over, with its goroutines, and says how it ended.
// It does not receive from Events.
func (s *Stream) Wait() CloseInfo {
	s.goroutines.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.info
}

// Stats are the stream's counters now.
func (s *Stream) Stats() StreamStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return StreamStats{ChunksSent: s.sent, RTT: s.rtt, Behind: time.Duration(s.sent-s.acked) * protocol.ChunkDuration}
}

// Close ends the stream at once, without waiting for the service, and returns
// when its goroutines have ended. After the end it does nothing. Events that
// were received can still be read from Events.
func (s *Stream) Close() {
	s.abort(CloseInfo{Reason: Cancelled, Err: errClosedHere})
	s.goroutines.Wait()
}

// abort ends the stream for a cause, unless another came first.
func (s *Stream) abort(cause CloseInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.info != nil {
		return
	}
	s.info = &cause
	s.cancel()
	_ = s.tcp().Close()
}

// tcp is the connection below TLS.
func (s *Stream) tcp() net.Conn { return protocol.BelowTLS(s.conn.NetConn()) }
