package localserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/engine"
	"hubbub/localserver/store"
	"hubbub/protocol"
)

const (
	// queuedChunks is how much audio waits for the engine at most; then the
	// reader stops reading and the connection pushes back.
	queuedChunks = 8
	// keepTimeout bounds how long the end of a stream waits for the store:
	// the close has to leave within 2 s of end_of_stream.
	keepTimeout = 1500 * time.Millisecond
	// lateTimeout bounds how long a store of the server's own that was too slow
	// for that is tried afterwards: first for the events, then for the record.
	// What a store that nodes share is to be told waits in the outbox.
	lateTimeout = 20 * time.Second
	// linger is how long a client has to answer a close. Until then what it
	// sends is read and thrown away: closing a connection with bytes unread
	// would tear it down before the close has reached the client.
	linger = 2 * time.Second
	// retryAtMost bounds the time between two tries.
	retryAtMost = 5 * time.Second
)

// ending is why and how a stream ends.
type ending struct {
	code    int    // of the close frame; 0 when there is nobody left to tell
	text    string // in the close frame
	message string // in an error message before it, if not ""
	status  store.Status
	cause   string // for the record and the log
}

// The ways in which a stream ends.
var (
	endOfStream = ending{code: websocket.CloseNormalClosure, status: store.Done, cause: "end of stream"}
	clientClose = ending{status: store.Done, cause: "closed by the client"}
	lost        = ending{status: store.Failed, cause: "connection lost"}
	tooFast     = ending{code: websocket.ClosePolicyViolation, text: "too far ahead of real time",
		message: "Audio is more than 5 s ahead of real time", status: store.Failed, cause: "more than 5 s ahead of real time"}
	noAudio = ending{code: websocket.ClosePolicyViolation, text: "no audio for 60 s",
		message: "No audio for 60 s", status: store.Failed, cause: "no audio for 60 s"}
	broken = ending{code: websocket.CloseInternalServerErr, text: "internal error",
		message: "Internal error; the stream is over", status: store.Failed, cause: "internal error"}
	// The contract says done after end_of_stream or a close with 1000, else
	// error: here we cut the client's audio off, and the record says so.
	stopped = ending{code: websocket.CloseGoingAway, text: "the server is stopping", status: store.Failed,
		cause: "the server was stopped"}
)

// socket is a stream's connection as the stream uses it: a *websocket.Conn, or
// one with faults.
type socket interface {
	SetReadLimit(bytes int64)
	SetReadDeadline(t time.Time) error
	SetPongHandler(h func(data string) error)
	NextReader() (kind int, body io.Reader, err error)
	SetWriteDeadline(t time.Time) error
	WriteMessage(kind int, data []byte) error
	WriteControl(kind int, data []byte, deadline time.Time) error
	NetConn() net.Conn
	Close() error
}

// session is one open stream. Four goroutines belong to it besides the one
// that runs it: reader, writer, journal and keeper of its voices, and one more
// when its audio is kept; run ends them all.
type session struct {
	id       string
	log      *slog.Logger
	now      func() time.Time
	tick     time.Duration // how often the clock is looked at
	sessions store.Sessions
	count    *counters

	readTimeout time.Duration
	lateTimeout time.Duration

	conn     socket
	pace     *pacer
	diarizer Diarizer
	ledger   ledger
	writer   *writer
	journal  *journal
	outbox   *outbox      // nil when the store is this server's own
	audio    *audioKeeper // nil unless audio is kept
	voices   *voiceKeeper // nil for an engine whose voices cannot be kept

	chunks chan []float32 // full ones, from the reader to the worker; closed at the end of the input
	free   chan []float32 // empty ones, back again: together there are queuedChunks
	input  ending         // why chunks was closed
	stop   chan struct{}  // closed when the worker takes no more chunks
	stamps stamps         // when the chunks came

	received time.Duration  // audio that the engine was given
	raw      []engine.Event // scratch of the worker
	legal    []protocol.Event
}

func (s *Server) newSession(id string, conn socket, d Diarizer, request string) *session {
	log := s.log.With("stream", id, "request", request)
	n := &session{
		id: id, log: log, now: s.now, tick: s.options.tick, sessions: s.sessions, count: &s.count,
		readTimeout: s.options.readTimeout,
		lateTimeout: s.options.lateTimeout,

		conn:     conn,
		pace:     newPacer(s.now, s.options.Unpaced),
		diarizer: d,
		writer:   newWriter(conn, log, s.options.pingEvery, s.options.writeTimeout),
		journal:  newJournal(s.journal, s.sessions, id, log),
		outbox:   s.outbox,
		chunks:   make(chan []float32, queuedChunks),
		free:     make(chan []float32, queuedChunks),
		stop:     make(chan struct{}),
	}
	n.journal.announce = func(p store.Pulse) error { return s.feed.Announce(id, p) }
	if _, ok := d.(rememberer); ok {
		n.voices = newVoiceKeeper(s.voices, id, log)
	}
	for range queuedChunks {
		n.free <- nil // made when first needed
	}
	return n
}

// run carries the stream from its handshake to its end. It returns when
// nothing of it is left running. A closed drain asks it to finish soon; the
// end of life cuts it off.
func (s *session) run(life context.Context, drain <-chan struct{}) {
	began := time.Now()
	s.count.opened.Add(1)
	s.log.Info("stream opened")
	cut := context.AfterFunc(life, func() { cutOff(s.conn) })
	defer cut()

	read := make(chan struct{})
	go func() {
		defer close(read)
		s.read()
	}()
	go s.writer.run(read)
	go s.journal.run()

	end := s.work(drain)
	close(s.stop)
	end = s.flush(end)
	s.keepVoices()
	s.voices.finish()
	if s.writer.slow.Load() && end.code == 0 {
		end.cause = "the client does not read"
	}
	settled := s.settle(life, &end)
	if !settled && s.outbox != nil {
		s.handOver(&end)
		settled = true
	}
	s.close(end, read)
	defer s.audio.wait()
	defer s.voices.wait(context.WithoutCancel(life)) // each write has its own deadline
	if !settled {
		s.settleLate(life, drain, &end)
	}
	s.count.finished(end, s.ledger.fixed, s.journal.missing())
	s.log.Info("stream closed", "status", string(end.status), "cause", end.cause,
		"audio", s.received, "duration", time.Since(began).Round(time.Millisecond),
		"moved", s.ledger.fixed.Moved, "dropped", s.ledger.fixed.Dropped, "ended", s.ledger.fixed.Ended)
}

// settle writes down how the stream ended, after all of its events: who reads
// done finds them. It reports whether the store took it in the time that the
// client can be kept waiting.
func (s *session) settle(life context.Context, end *ending) bool {
	// Also a stream that is cut off gets its moment.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(life), keepTimeout)
	defer cancel()
	s.audio.finish(ctx, end.status == store.Done)
	s.voices.wait(ctx)
	if !s.journal.drain(ctx) {
		return false
	}
	s.finishJournal(ctx, end)
	return s.conclude(ctx, *end)
}

// handOver leaves what the store does not know of the stream to the outbox,
// before the client is told that all is well.
func (s *session) handOver(end *ending) {
	r, whole := s.journal.rest()
	if !whole && end.status == store.Done {
		end.status, end.cause = store.Failed, eventsLost
	}
	r.Status, r.Cause, r.At = end.status, end.cause, s.now().UTC()
	s.outbox.put(&r)
}

// eventsLost is the cause in a record of whose events some are missing.
const eventsLost = "its events could not be kept"

// finishJournal makes a stream of which not all is kept one that failed.
func (s *session) finishJournal(ctx context.Context, end *ending) {
	if err := s.journal.finish(ctx); err != nil {
		s.log.Error("events of a stream could not be kept", "error", err)
		if end.status == store.Done {
			end.status, end.cause = store.Failed, eventsLost
		}
	}
}

// conclude writes the end of the stream into its record and reports whether
// there is nothing left to try.
func (s *session) conclude(ctx context.Context, end ending) bool {
	err := s.sessions.Finish(ctx, s.id, end.status, s.now().UTC(), end.cause)
	if err != nil {
		s.log.Error("the end of a stream could not be kept", "error", err)
	}
	settled := err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound)
	if settled {
		s.journal.pulse(true)
	}
	return settled
}

// settleLate tries on when the client has long been told.
//
// It does not give up while the server lives, for as long the record reads
// running; a server that is stopping tries a while longer.
func (s *session) settleLate(life context.Context, drain <-chan struct{}, end *ending) {
	ctx, cancel := context.WithTimeout(life, s.lateTimeout)
	defer cancel()
	s.finishJournal(ctx, end)
	enough := time.Now().Add(s.lateTimeout)
	try := func() bool {
		// A call whose answer is lost must not take the time of all others.
		ctx, cancel := context.WithTimeout(life, storeTimeout)
		defer cancel()
		return s.conclude(ctx, *end)
	}
	for wait := retryAfter; !try(); wait = min(2*wait, retryAtMost) {
		stopping := drain
		if time.Now().Before(enough) {
			stopping = nil
		}
		select {
		case <-life.Done():
		case <-stopping:
		case <-time.After(wait):
			continue
		}
		s.log.Error("the end of a stream was never kept: it will read error once this server is gone")
		return
	}
}

// close tells the client, waits a while for it to answer, and takes the
// connection down. Then neither reader nor writer is left.
func (s *session) close(end ending, read <-chan struct{}) {
	s.writer.finish(end)
	s.writer.hangUp(end, read)
}
