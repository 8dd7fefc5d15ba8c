package recording

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hubbub/capture"
	"hubbub/protocol"
)

// lateMargin is how much longer than the latency of the service the end of a
// recording waits for the events of its last audio.
const lateMargin = 500 * time.Millisecond

// Recorder records a session, or parts of it, one after the other: it gets all
// audio and events, and passes them to a Writer while a recording runs. The clock
// of each recording begins with it: a turn that is open then starts at 0.
//
// Audio may be called from one goroutine, Event, Turn and Transcript from another, all
// else from any. Status and Dropped do not wait for the disk, nor does Audio of a
// microphone.
type Recorder struct {
	// Gaps are those of the session so far. Whoever runs the session sets it before.
	Gaps func() []protocol.Span

	info        Info
	annotations *protocol.AnnotationsStore
	changed     chan struct{}

	op      sync.Mutex // held by Start, Stop and Close
	failed  error      // the first of an earlier writer
	closing chan struct{}
	writer  atomic.Pointer[Writer] // nil = no recording runs
	dropped atomic.Int64           // of earlier writers

	audio audioTap

	mu      sync.Mutex // guards what follows, and the writer's files but the audio
	excerpt excerpt    // of writer
	open    map[string]protocol.Event
}

// audioTap passes chunks to a writer.
type audioTap struct {
	mu     sync.Mutex
	next   int64 // sequence number of the next chunk
	first  int64 // of writer
	writer *Writer
}

// use passes the chunks from now on to a writer, nil = to none, and returns the
// position in seconds.
func (t *audioTap) use(w *Writer) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writer, t.first = w, t.next
	return float64(t.next*capture.ChunkSamples) / capture.SampleRate
}

// NewRecorder records nothing until Start. info describes the session.
func NewRecorder(info Info, annotations *protocol.AnnotationsStore) *Recorder {
	return &Recorder{
		Gaps: func() []protocol.Span { return nil },
		info: info, annotations: annotations, changed: make(chan struct{}, 1),
		closing: make(chan struct{}), open: map[string]protocol.Event{},
	}
}

// Start begins a recording in dir, which must not contain one; "" = none. One that has
// failed is closed first.
func (r *Recorder) Start(dir string) error {
	if dir == "" {
		return nil
	}
	r.op.Lock()
	defer r.op.Unlock()
	select {
	case <-r.closing:
		return errors.New("cannot record: the session is over")
	default:
	}
	if s := r.Status(); s != nil {
		if s.Failure == nil {
			return errors.New("a recording runs already")
		}
		r.failed = cmp.Or(r.failed, r.close())
	}
	w, err := newWriter(dir, r.info, r.changed)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	position := r.audio.use(w)
	w.begin(r.annotations, position)
	r.excerpt = excerpt{position, math.Inf(1)}
	for _, e := range slices.SortedFunc(maps.Values(r.open), func(a, b protocol.Event) int { return cmp.Compare(a.Timestamp, b.Timestamp) }) {
		if e, inside := r.excerpt.event(e); inside {
			w.Event(0, e)
		}
	}
	r.writer.Store(w)
	return nil
}

// Stop ends the recording here and returns its state then. It waits for the
// events of its last audio, at most for the latency of the service. The error is
// that of the recording.
func (r *Recorder) Stop() (*Status, error) {
	r.op.Lock()
	defer r.op.Unlock()
	w := r.writer.Load()
	if w == nil {
		return nil, errors.New("no recording runs")
	}
	r.mu.Lock()
	r.excerpt.until = r.audio.use(nil)
	r.mu.Unlock()
	if w.failure.Load() == nil {
		select {
		case <-time.After(time.Duration(cmp.Or(r.info.Latency, assumedLatency)*float64(time.Second)) + lateMargin):
		case <-r.closing:
		}
	}
	err := r.close()
	return w.Status(), err
}

// Close ends the recording, if one runs. The session must have ended: no call may
// follow. The error is that of the first recording that failed.
func (r *Recorder) Close() error {
	close(r.closing)
	r.op.Lock()
	defer r.op.Unlock()
	if r.writer.Load() != nil {
		r.failed = cmp.Or(r.failed, r.close())
	}
	return r.failed
}

// SaveGaps stores the gaps of the session so far, so that a recording that is cut off has them.
func (r *Recorder) SaveGaps() {
	gaps := r.Gaps()
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.writer.Load(); w != nil {
		w.setGaps(r.excerpt.spans(gaps))
	}
}

// close closes the writer. A turn that is open ends with the recording.
func (r *Recorder) close() error {
	r.audio.use(nil)
	r.mu.Lock()
	w := r.writer.Swap(nil)
	if !math.IsInf(r.excerpt.until, 1) {
		for _, e := range r.open {
			if t, inside := r.excerpt.turn(protocol.Turn{Speaker: protocol.Label(e.Speaker), Start: e.Timestamp, End: r.excerpt.until}); inside {
				w.Turn(t)
			}
		}
	}
	excerpt := r.excerpt
	r.mu.Unlock()
	err := w.Close(excerpt.spans(r.Gaps()))
	r.dropped.Add(w.dropped.Load())
	return err
}

// Status may be called from any goroutine; nil while no recording runs.
func (r *Recorder) Status() *Status {
	if w := r.writer.Load(); w != nil {
		return w.Status()
	}
	return nil
}

// Changed receives after a recording has stopped because of a failure.
func (r *Recorder) Changed() <-chan struct{} { return r.changed }

// Dropped is how many chunks the recordings lack.
func (r *Recorder) Dropped() int64 {
	n := r.dropped.Load()
	if w := r.writer.Load(); w != nil {
		n += w.dropped.Load()
	}
	return n
}

// Dir is the folder of the recording that runs; "" = none runs. whole says that it
// has the session from its start.
func (r *Recorder) Dir() (dir string, whole bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.writer.Load(); w != nil {
		return w.dir, r.excerpt.from == 0
	}
	return "", false
}

// Audio takes a chunk of the session. A file waits for the disk. A microphone does
// not: when the disk is 30 s behind, chunks are dropped from the recording and
// counted.
func (r *Recorder) Audio(c capture.Chunk) {
	r.audio.mu.Lock()
	defer r.audio.mu.Unlock()
	r.audio.next = c.Seq + 1
	if w := r.audio.writer; w != nil {
		c.Seq -= r.audio.first
		w.Audio(c)
	}
}

// Event takes a message as received, with its timestamp on the session's clock.
// position is how many seconds of audio had been read when it arrived.
func (r *Recorder) Event(position float64, e protocol.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	start, open := r.open[protocol.Label(e.Speaker)]
	r.follow(e)
	if w := r.writer.Load(); w != nil {
		if e.Type == protocol.TypeSpeakerEnd && e.Err == "" && open && start.Timestamp >= r.excerpt.until {
			return // the end of a turn whose start is outside
		}
		if e, inside := r.excerpt.event(e); inside {
			w.Event(r.excerpt.place(position), e)
		}
	}
}

// follow keeps the start events of the turns that are open.
func (r *Recorder) follow(e protocol.Event) {
	label := protocol.Label(e.Speaker)
	switch _, open := r.open[label]; {
	case e.Err != "":
	case e.Type == protocol.TypeSpeakerEnd:
		delete(r.open, label)
	case e.Type == protocol.TypeSpeakerStart && !open && len(r.open) < protocol.MaxLabels:
		r.open[label] = e
	}
}

// Turn takes a finished turn.
func (r *Recorder) Turn(t protocol.Turn) { r.pass(t, (*Writer).Turn) }

// Transcript takes a finished turn with its transcript.
func (r *Recorder) Transcript(t protocol.Turn) { r.pass(t, (*Writer).Transcript) }

// pass writes a turn as the recording has it, if one runs that has it.
func (r *Recorder) pass(t protocol.Turn, write func(*Writer, protocol.Turn)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.writer.Load(); w != nil {
		if t, inside := r.excerpt.turn(t); inside {
			write(w, t)
		}
	}
}
