package trace

import (
	"slices"
	"time"

	"hubbub/protocol"
)

const (
	maxEntries   = 4096    // that are kept
	maxLogBytes  = 4 << 20 // of messages that are kept
	maxRunChunks = 100     // of one run: 10 s
	paceWindow   = 50      // chunks over which the pace is measured: 5 s
)

// StallGap is the shortest gap between two chunks, or duration of a write, that
// counts as a stall.
const StallGap = 3 * protocol.ChunkDuration

// Run is a run of chunks without anything else between them.
type Run struct {
	Chunks  int           // 0 = no run
	First   int64         // number of its first record
	Began   time.Time     // when its first chunk began to be sent
	Gap     time.Duration // before its first chunk
	Dropped int64         // chunks that were dropped before it
	MaxGap  time.Duration // between its chunks
	MaxTook time.Duration // longest write
	Unacked int           // most unacknowledged bytes
}

// Entry is one line of a Log: a record, or a run of chunks with the record of its
// newest.
type Entry struct {
	Record
	Run Run
}

// Status is the state of the connection at one moment.
type Status struct {
	Streams  int       // opened so far
	Opened   time.Time // when the newest one was opened; zero before
	Over     bool      // the newest one has ended
	End      Record    // its end
	Messages [2]int64  // outgoing and incoming, chunks included
	Bytes    [2]int64
	Chunks   int64 // of the newest stream

	// Pace is the seconds of audio sent per second, over the newest 5 s; 0 = not
	// known. MaxGap and MaxTook are the largest of these chunks.
	Pace            float64
	MaxGap, MaxTook time.Duration
	Ahead           time.Duration // of the newest chunk
	Waiting         int           // of the newest chunk; -1 = not known
	Ping            time.Duration // newest round-trip time
	PingAt          time.Time     // when it was measured
	Unanswered      time.Time     // when the oldest unanswered ping was sent; zero = none
	Lag, MaxLag     time.Duration // of events; negative = not known
	LastReceived    time.Time     // when the service last sent something
	Socket          *SocketState
	Faults          int64
}

// Snapshot is a Log at one moment. It is never changed afterwards.
type Snapshot struct {
	// Version grows with every record.
	Version int64
	Status  Status
	// Entries are the newest entries, Chunks the newest chunks one by one; Removed
	// counts entries that were removed for newer ones.
	Entries List[Entry]
	Chunks  List[Record]
	Removed int64
}

// Log is a Tracer that keeps the newest records: some thousand entries, in which
// consecutive chunks are one run, and 4 MiB of messages. It never blocks.
type Log struct {
	stamper
	status   Status
	entries  window[Entry]
	chunks   window[Record]
	lastPing time.Time // when the newest ping was sent
}

// NewLog returns an empty Log.
func NewLog() *Log {
	return &Log{status: Status{Waiting: -1, Lag: -1, MaxLag: -1}}
}

// Record adds a record.
func (l *Log) Record(r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stamp(&r)
	l.note(&r)
	if r.Kind == KindPing && r.Dir == Outgoing {
		l.lastPing = r.At
	}
	if r.Kind != KindChunk || r.Fault {
		l.entries.add(Entry{Record: r}, len(r.Raw)+len(r.Text))
		return
	}
	l.chunks.add(r, 0)
	if last := l.entries.newest(); last != nil && last.Run.Chunks > 0 && last.Run.Chunks < maxRunChunks && last.Stream == r.Stream &&
		r.Gap <= StallGap && r.Dropped == 0 && r.Took <= StallGap && last.Took <= StallGap {
		last.Record = r
		last.Run.add(r)
		return
	}
	l.entries.add(Entry{Record: r, Run: NewRun(r)}, 0)
}

// NewRun is a run of one chunk.
func NewRun(r Record) Run {
	run := Run{First: r.Number, Began: r.At.Add(-r.Took), Gap: r.Gap, Dropped: r.Dropped}
	run.add(r)
	return run
}

func (w *Run) add(r Record) {
	if w.Chunks++; w.Chunks > 1 {
		w.MaxGap = max(w.MaxGap, r.Gap)
	}
	w.MaxTook = max(w.MaxTook, r.Took)
	if r.Socket != nil {
		w.Unacked = max(w.Unacked, r.Socket.Unacked)
	}
}

// note updates the status.
func (l *Log) note(r *Record) {
	s := &l.status
	if r.Fault {
		s.Faults++
	}
	switch r.Dir {
	case Outgoing:
		s.Messages[0]++
		s.Bytes[0] += int64(r.Size)
	case Incoming:
		s.Messages[1]++
		s.Bytes[1] += int64(r.Size)
		s.LastReceived = r.At
	}
	if r.Socket != nil {
		s.Socket = r.Socket
	}
	switch r.Kind {
	case KindHandshake:
		if r.Dir == Incoming && !r.Fault {
			s.Streams, s.Opened, s.Over, s.Chunks = r.Stream, r.At, false, 0
			s.Lag, s.MaxLag, s.Ping, s.PingAt, s.Unanswered, s.Waiting = -1, -1, 0, time.Time{}, time.Time{}, -1
		}
	case KindChunk:
		if !r.Fault {
			s.Chunks++
			s.Ahead, s.Waiting = r.Ahead, r.Waiting
		}
	case KindPing:
		if r.Dir == Outgoing && s.Unanswered.IsZero() {
			s.Unanswered = r.At
		}
	case KindPong:
		if r.Dir == Incoming && r.Took > 0 {
			s.Ping, s.PingAt, s.Unanswered = r.Took, r.At, time.Time{}
			if l.lastPing.After(r.At.Add(-r.Took)) { // a newer one was sent since
				s.Unanswered = l.lastPing
			}
		}
	case KindEvent:
		if r.Lag >= 0 && (r.Type == protocol.TypeSpeakerStart || r.Type == protocol.TypeSpeakerEnd) {
			s.Lag, s.MaxLag = r.Lag, max(s.MaxLag, r.Lag)
		}
	case KindEnd:
		s.Over, s.End = true, *r
	}
}

// minPaceTime is the shortest time that a pace is measured over.
const minPaceTime = 10 * time.Millisecond

// Snapshot returns the log at this moment.
func (l *Log) Snapshot() Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Snapshot{Version: l.number, Status: l.status, Entries: l.entries.list(), Chunks: l.chunks.list(), Removed: l.entries.removed}
	var gaps time.Duration
	counted := 0
	for i := range int(min(s.Status.Chunks, paceWindow)) {
		r := s.Chunks.At(s.Chunks.Len() - 1 - i)
		if r.Gap > 0 {
			gaps += r.Gap
			counted++
		}
		s.Status.MaxGap, s.Status.MaxTook = max(s.Status.MaxGap, r.Gap), max(s.Status.MaxTook, r.Took)
	}
	if gaps >= minPaceTime { // else a burst, as after a reconnection
		s.Status.Pace = float64(counted) * protocol.ChunkDuration.Seconds() / gaps.Seconds()
	}
	return s
}

// List is an immutable list.
type List[T any] struct{ older, newest []T }

// Len is the number of elements.
func (l List[T]) Len() int { return len(l.older) + len(l.newest) }

// At is the i-th element, counted from the oldest. It must not be changed.
func (l List[T]) At(i int) *T {
	if i < len(l.older) {
		return &l.older[i]
	}
	return &l.newest[i-len(l.older)]
}

// window holds the newest elements of a list. Only the newest one ever changes: that
// one is copied for a List, the others are shared.
type window[T any] struct {
	all     []T
	sizes   []int // of each, in bytes
	bytes   int
	removed int64
}

func (w *window[T]) add(v T, size int) {
	w.all, w.sizes, w.bytes = append(w.all, v), append(w.sizes, size), w.bytes+size
	for len(w.all) > maxEntries || w.bytes > maxLogBytes {
		w.bytes -= w.sizes[0]
		w.all, w.sizes = w.all[1:], w.sizes[1:]
		w.removed++
	}
}

func (w *window[T]) newest() *T {
	if len(w.all) == 0 {
		return nil
	}
	return &w.all[len(w.all)-1]
}

func (w *window[T]) list() List[T] {
	n := max(len(w.all)-1, 0)
	return List[T]{older: w.all[:n:n], newest: slices.Clone(w.all[n:])}
}
