package stream

import (
	"context"
	"log/slog"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/engine"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/localserver/store"
	"hubbub/protocol"
	"hubbub/protocol/words"
)

// queuedChunks bounds the audio that waits for the diarizer. Beyond it the
// reader stops reading and the connection applies back pressure.
const queuedChunks = 8

// Diarizer turns the audio of one stream into starts and ends of turns. It is
// used by one goroutine only. engine.Engine is the implementation.
type Diarizer interface {
	// Push takes the next samples (16 kHz, mono) and appends to out the events
	// that they commit.
	Push(samples []float32, out []engine.Event) []engine.Event
	// Flush ends the input and appends to out the remaining events.
	Flush(out []engine.Event) []engine.Event
	// Enrol gives it the people whom it recognises, before anything else.
	Enrol(people []voiceprint.Person, m voiceprint.Matching)
	// AppendSnapshot appends to out what is known of the speakers. RestoreSnapshot
	// continues with it, before the first Push.
	AppendSnapshot(out []byte) []byte
	RestoreSnapshot(snapshot []byte) error
}

// Store is what streams and watchers need of the store.
type Store interface {
	Get(ctx context.Context, id string) (store.Stream, error)
	Renew(ctx context.Context, id string) error
	Finish(ctx context.Context, id string, outcome store.Status, at time.Time, cause string) error
	Append(ctx context.Context, stream string, first int, messages [][]byte) error
	Since(ctx context.Context, stream string, after uint64) (messages [][]byte, last uint64, err error)
	PublishProgress(stream string, p store.Progress) error
	SubscribeProgress(stream string, f func(store.Progress)) (stop func(), err error)
	PutSnapshot(ctx context.Context, stream string, snapshot []byte, received time.Duration) error
	CreateMedia(ctx context.Context, account, name string, now func() time.Time) (*store.MediaWriter, error)
}

// Config is what a stream needs of its server.
type Config struct {
	ID  string
	Log *slog.Logger
	// Now is the wall clock of pacing and of the record.
	Now func() time.Time
	// Unpaced allows audio faster than real time, and pauses.
	Unpaced bool
	// Revoked reports whether the API key of the stream was revoked.
	Revoked func() bool
	// CloseDelay is how much later than usual the client may acknowledge the close
	// frame.
	CloseDelay time.Duration

	Store    Store
	Outbox   *Outbox
	Counters *Counters

	// Recording is where the stream's audio is kept, nil for nowhere.
	Recording *AudioTarget
	// Recogniser gives the words of turns, which the client asked for; nil = it did
	// not.
	Recogniser words.Recogniser
	// Labels are those of the earlier stream whose snapshot the diarizer was
	// restored from.
	Labels Labels
}

// chunk is the audio of one frame.
type chunk struct {
	samples []float32
	arrived time.Time
}

// Stream is one open stream.
type Stream struct {
	config   Config
	log      *slog.Logger
	counters *Counters

	conn        Socket
	diarizer    Diarizer
	validator   validator
	counted     corrections // of the validator, in counters
	writer      *writer
	journal     *journal
	words       *transcript  // nil unless the client asked for words
	audioWriter *audioWriter // nil unless audio is recorded
	snapshots   *snapshotWriter

	chunks chan chunk    // from the reader to the worker; closed at the end of the input
	input  ending        // why chunks was closed
	stop   chan struct{} // closed when the worker takes no more chunks

	superseded context.Context // canceled when another stream resumes this one
	supersede  context.CancelFunc

	received time.Duration  // audio that was given to the diarizer
	raw      []engine.Event // scratch of the worker
	valid    []protocol.Event
}

// New returns a stream for an open connection. Run must be called.
func New(c Config, conn Socket, d Diarizer) *Stream {
	s := &Stream{
		config: c, log: c.Log, counters: c.Counters,
		conn:     conn,
		diarizer: d,
		writer:   newWriter(conn, c.Log),
		journal:  newJournal(c.Store, c.ID, &c.Counters.Lost, c.Log),
		chunks:   make(chan chunk, queuedChunks),
		stop:     make(chan struct{}),

		snapshots: startSnapshotWriter(c.Store, c.ID, c.Log),
	}
	s.superseded, s.supersede = context.WithCancel(context.Background())
	s.writer.closeTimeout += c.CloseDelay
	if c.Recogniser != nil {
		s.words = startTranscript(c.Recogniser, s)
	}
	if c.Recording != nil {
		s.audioWriter = startAudioWriter(c.Store, *c.Recording, c.Now, c.Log)
	}
	s.validator.restore(c.Labels)
	return s
}

// Run carries the stream to its end. It returns when none of its goroutines is
// left. Closing drain asks the stream to finish soon; canceling ctx
// disconnects it.
func (s *Stream) Run(ctx context.Context, drain <-chan struct{}) {
	began := time.Now()
	s.counters.Opened.Add(1)
	s.log.Info("stream opened")
	defer s.writer.start(ctx, s.read)()
	go s.journal.run()

	end := s.work(drain)
	close(s.stop)
	end = s.flush(end)
	s.takeSnapshot()
	s.snapshots.finish()
	if s.writer.timedOut.Load() && end.code == 0 {
		end.cause = "the client does not read"
	}
	if end.message != "" {
		s.tellWatchers(end.message)
		s.journal.publishProgress(false) // before the record says that the stream is over
	}
	s.words.finish(ctx, end == endOfStream) // before the record says that everything is stored
	kept := s.recordEnd(ctx, &end)
	sent := end
	if end.code == websocket.CloseNormalClosure && !(kept && end.status == store.Done) {
		// A close with 1000 says that the record and the events are stored.
		sent = notRecorded
	}
	s.writer.finish(sent)
	s.writer.close(sent)
	defer s.audioWriter.wait()
	defer s.snapshots.wait(context.WithoutCancel(ctx)) // each write has its own deadline
	s.counters.ended(end)
	s.log.Info("stream closed", "status", string(end.status), "cause", end.cause,
		"audio", s.received, "duration", time.Since(began).Round(time.Millisecond),
		"moved", s.validator.corrections.Moved, "dropped", s.validator.corrections.Dropped)
}

// sendError sends an error message to the client and its watchers.
func (s *Stream) sendError(message string) {
	s.writer.send(protocol.NewErrorEvent(message).Raw)
	s.tellWatchers(message)
}

// tellWatchers passes an error message on to the watchers.
func (s *Stream) tellWatchers(message string) {
	if !s.journal.addError(message) {
		s.counters.WatchErrors.Add(1)
	}
}
