package protocol

import (
	"sync"
	"time"
)

const (
	wireBlock    = 64      // entries that are copied and forgotten together
	wireBlocks   = 64      // blocks that are kept beside the newest
	maxWireBytes = 4 << 20 // of messages that are kept
	maxRunChunks = 100     // of one run: 10 s
	wireWindow   = 50      // chunks over which the pace is told: 5 s
)

// WireStall is the gap between two chunks, or the time until the system had
// taken one, from which on a stream stutters.
const WireStall = 3 * ChunkDuration

// WireRun is a run of chunks without anything else between them.
type WireRun struct {
	Chunks  int           // 0 = no run
	First   int64         // number of its first record
	Began   time.Time     // when its first chunk began to be sent
	Gap     time.Duration // before its first chunk
	Dropped int64         // chunks that were given up before it
	MaxGap  time.Duration // inside of it
	MaxTook time.Duration
	Unacked int // most of them
}

// WireEntry is one line of a WireLog: a record, or a run of chunks with the
// record of its newest.
type WireEntry struct {
	WireRecord
	Run WireRun
}

// WireStatus is how the wire is at one moment.
type WireStatus struct {
	Streams  int       // that were opened so far
	Opened   time.Time // the newest one; zero before
	Over     bool      // the newest one has ended
	End      WireRecord
	Messages [2]int64 // outgoing and incoming, chunks included
	Bytes    [2]int64
	Chunks   int64 // of the newest stream

	// Pace is audio sent for each second of the wall clock, over the newest 5 s;
	// MaxGap and MaxTook are the worst of them.
	Pace            float64
	MaxGap, MaxTook time.Duration
	Ahead           time.Duration
	Queue           int // of the newest chunk; -1 = not known
	Ping            time.Duration
	PingAt          time.Time
	Unanswered      time.Time     // since when a pong is awaited; zero = none is
	Lag, MaxLag     time.Duration // of events; negative = not known
	Heard           time.Time     // when the service sent something
	Socket          *SocketState
	MaxUnacked      int
	Faults          int64
}

// WireSnapshot is a WireLog at one moment. It is never changed afterwards.
type WireSnapshot struct {
	// Version grows with every record.
	Version int64
	Status  WireStatus
	// Entries are the newest, Chunks the newest chunks one by one; Forgotten
	// counts entries that there is no room for any more.
	Entries   WireList[WireEntry]
	Chunks    WireList[WireRecord]
	Forgotten int64
}

// WireLog is a Tap that remembers the newest of what was on the wire: some
// thousand entries, into which chunks are folded as runs, and 4 MiB of
// messages. It never lets the wire wait.
type WireLog struct {
	mu      sync.Mutex // guards what follows
	stamp   wireStamp
	status  WireStatus
	entries wireRing[WireEntry]
	chunks  wireRing[WireRecord]
	recent  [wireWindow]WireRecord // chunks of this stream
	pinged  time.Time              // when the newest ping was sent
}

// NewWireLog makes an empty one.
func NewWireLog() *WireLog {
	return &WireLog{status: WireStatus{Queue: -1, Lag: -1, MaxLag: -1}}
}

// SetQueue says how to find out how many chunks wait to be sent. It must not
// wait.
func (l *WireLog) SetQueue(queue func() int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stamp.queue = queue
}

// Record keeps r.
func (l *WireLog) Record(r WireRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stamp.stamp(&r)
	l.note(&r)
	if r.Kind == WirePing && r.Dir == Outgoing {
		l.pinged = r.At
	}
	if r.Kind != WireChunk || r.Fault {
		l.entries.add(WireEntry{WireRecord: r}, len(r.Raw)+len(r.Text))
		return
	}
	l.chunks.add(r, 0)
	if last := l.entries.newest(); last != nil && last.Run.Chunks > 0 && last.Run.Chunks < maxRunChunks && last.Stream == r.Stream &&
		r.Gap <= WireStall && r.Dropped == 0 && r.Took <= WireStall && last.Took <= WireStall {
		last.WireRecord = r
		last.Run.add(r)
		return
	}
	e := WireEntry{WireRecord: r, Run: WireRun{First: r.Number, Began: r.At.Add(-r.Took), Gap: r.Gap, Dropped: r.Dropped}}
	e.Run.add(r)
	l.entries.add(e, 0)
}

func (w *WireRun) add(r WireRecord) {
	if w.Chunks++; w.Chunks > 1 {
		w.MaxGap = max(w.MaxGap, r.Gap)
	}
	w.MaxTook = max(w.MaxTook, r.Took)
	if r.Socket != nil {
		w.Unacked = max(w.Unacked, r.Socket.Unacked)
	}
}

// note brings the status up to date.
func (l *WireLog) note(r *WireRecord) {
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
		s.Heard = r.At
	}
	if r.Socket != nil {
		s.Socket = r.Socket
	}
	switch r.Kind {
	case WireHandshake:
		if r.Dir == Incoming && !r.Fault {
			s.Streams, s.Opened, s.Over, s.Chunks = r.Stream, r.At, false, 0
			s.Lag, s.MaxLag, s.Ping, s.PingAt, s.Unanswered, s.Queue = -1, -1, 0, time.Time{}, time.Time{}, -1
		}
	case WireChunk:
		if !r.Fault {
			l.recent[s.Chunks%wireWindow] = *r
			s.Chunks++
			s.Ahead, s.Queue = r.Ahead, r.Queue
		}
	case WirePing:
		if r.Dir == Outgoing && s.Unanswered.IsZero() {
			s.Unanswered = r.At
		}
	case WirePong:
		if r.Dir == Incoming && r.Took > 0 {
			s.Ping, s.PingAt, s.Unanswered = r.Took, r.At, time.Time{}
			if l.pinged.After(r.At.Add(-r.Took)) { // one was sent since
				s.Unanswered = l.pinged
			}
		}
	case WireEvent:
		if r.Lag >= 0 && (r.Type == TypeSpeakerStart || r.Type == TypeSpeakerEnd) {
			s.Lag, s.MaxLag = r.Lag, max(s.MaxLag, r.Lag)
		}
	case WireEnd:
		s.Over, s.End = true, *r
	}
}

// Snapshot is the log now.
func (l *WireLog) Snapshot() WireSnapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := WireSnapshot{Version: l.stamp.number, Status: l.status, Entries: l.entries.list(), Chunks: l.chunks.list(), Forgotten: l.entries.forgotten}
	n := min(s.Status.Chunks, wireWindow)
	var gaps time.Duration
	counted := 0
	for i := range n {
		r := &l.recent[i]
		if r.Gap > 0 {
			gaps += r.Gap
			counted++
		}
		s.Status.MaxGap, s.Status.MaxTook = max(s.Status.MaxGap, r.Gap), max(s.Status.MaxTook, r.Took)
		if r.Socket != nil {
			s.Status.MaxUnacked = max(s.Status.MaxUnacked, r.Socket.Unacked)
		}
	}
	if gaps > 0 {
		s.Status.Pace = float64(counted) * ChunkDuration.Seconds() / gaps.Seconds()
	}
	return s
}

// Version is that of the newest Snapshot, at little cost.
func (l *WireLog) Version() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stamp.number
}

// WireList is a list that nobody changes.
type WireList[T any] struct {
	full [][]T
	last []T
}

// Len is how many there are.
func (l WireList[T]) Len() int { return len(l.full)*wireBlock + len(l.last) }

// At is the i-th, counted from the oldest. It must not be changed.
func (l WireList[T]) At(i int) *T {
	if b := i / wireBlock; b < len(l.full) {
		return &l.full[b][i%wireBlock]
	}
	return &l.last[i-len(l.full)*wireBlock]
}

// wireRing holds the newest of a list in blocks. Only the newest block ever
// changes: that one is copied for a list, the others are shared.
type wireRing[T any] struct {
	full      [][]T
	sizes     []int
	last      []T
	lastSize  int
	bytes     int
	forgotten int64
}

func (r *wireRing[T]) add(v T, size int) {
	if len(r.last) == wireBlock {
		r.full, r.sizes = append(r.full, r.last), append(r.sizes, r.lastSize)
		r.last, r.lastSize = nil, 0
	}
	if r.last == nil {
		r.last = make([]T, 0, wireBlock)
	}
	r.last = append(r.last, v)
	r.lastSize += size
	r.bytes += size
	for len(r.full) > 0 && (len(r.full) > wireBlocks || r.bytes > maxWireBytes) {
		r.bytes -= r.sizes[0]
		r.forgotten += int64(len(r.full[0]))
		// Lists share the old one.
		r.full, r.sizes = append([][]T(nil), r.full[1:]...), r.sizes[1:]
	}
}

func (r *wireRing[T]) newest() *T {
	if len(r.last) == 0 {
		return nil
	}
	return &r.last[len(r.last)-1]
}

func (r *wireRing[T]) list() WireList[T] {
	return WireList[T]{full: r.full[:len(r.full):len(r.full)], last: append([]T(nil), r.last...)}
}
