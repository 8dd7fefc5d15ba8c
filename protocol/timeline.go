package protocol

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// What a Timeline keeps at most. A service tracks up to 8 speakers; the bounds
// are there for one that misbehaves.
const (
	MaxLabels    = 64
	MaxTurns     = 1 << 18        // all labels together
	MaxTimestamp = 30 * 24 * 3600 // seconds
)

// Turn is one finished stretch of speech of one speaker, in seconds of the
// stream clock, End > Start.
type Turn struct {
	Speaker string  `json:"speaker"`
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
}

// Lane is everything known of one label.
type Lane struct {
	Speaker string
	// Turns are the finished turns, in order of time and without overlap.
	// The slice is shared between snapshots: read only.
	Turns []Turn
	// Open says that a turn began at OpenSince and has not ended yet.
	Open      bool
	OpenSince float64
	// Talk is the length of all finished turns, in seconds.
	Talk float64
}

// Counts says what became of a stream's messages.
type Counts struct {
	Events     int64 // messages in all
	Errors     int64 // of type error
	Unknown    int64 // of a type that this package does not know
	Malformed  int64 // could not be read
	Degenerate int64 // understood, but not a legal step: repeated, without a start, empty, out of order, out of range
	Refused    int64 // legal, but beyond MaxLabels or MaxTurns
}

// Snapshot is a Timeline at one moment; it never changes.
type Snapshot struct {
	// Lanes are in order of first speech, as the events arrived.
	Lanes []Lane
	// Decided is the newest timestamp that any event has carried, in seconds.
	Decided float64
	Counts  Counts
}

// Timeline folds the events of a stream into turns by label. One goroutine may
// apply events while any number take snapshots.
//
// Whatever the events, in whatever order and however often repeated: the turns
// of a label are sorted, longer than zero and do not overlap. A step that the
// protocol does not allow is counted as Degenerate and mended as follows.
//   - A start while the label's turn is open changes nothing; nor does an end
//     without a start.
//   - An end not after its start closes the turn and leaves none; but one
//     that repeats the end of a finished turn changes nothing.
//   - A turn that covers time already given to the label keeps only what is
//     new, which may be several pieces, or none.
//   - A timestamp that is negative, not finite or beyond MaxTimestamp is
//     passed over.
//
// Labels pass through Label, timestamps through Round1ms.
type Timeline struct {
	mu      sync.Mutex
	byLabel map[string]int // index in lanes
	lanes   []Lane
	turns   int
	decided float64
	counts  Counts
}

// NewTimeline is an empty Timeline.
func NewTimeline() *Timeline {
	return &Timeline{byLabel: make(map[string]int)}
}

// Apply takes one event and returns the turns that it finished: none, one, or
// several pieces of one that overlapped older turns of its label.
func (t *Timeline) Apply(e Event) (finished []Turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.Events++
	switch {
	case e.Err != "":
		t.counts.Malformed++
		return nil
	case e.Type == TypeError:
		t.counts.Errors++
		return nil
	case e.Type != TypeSpeakerStart && e.Type != TypeSpeakerEnd:
		t.counts.Unknown++
		return nil
	case !(e.Timestamp >= 0 && e.Timestamp <= MaxTimestamp): // also NaN
		t.counts.Degenerate++
		return nil
	}
	at, label := Round1ms(e.Timestamp), Label(e.Speaker)
	t.decided = max(t.decided, at)
	if e.Type == TypeSpeakerStart {
		t.start(label, at)
		return nil
	}
	return t.end(label, at)
}

func (t *Timeline) start(label string, at float64) {
	i, known := t.byLabel[label]
	if !known {
		if len(t.lanes) == MaxLabels {
			t.counts.Refused++
			return
		}
		i = len(t.lanes)
		t.byLabel[label] = i
		t.lanes = append(t.lanes, Lane{Speaker: label})
	}
	l := &t.lanes[i]
	if l.Open {
		t.counts.Degenerate++
		return
	}
	l.Open, l.OpenSince = true, at
}

func (t *Timeline) end(label string, at float64) []Turn {
	i, known := t.byLabel[label]
	if !known && len(t.lanes) == MaxLabels { // its start was most likely refused
		t.counts.Refused++
		return nil
	}
	if !known || !t.lanes[i].Open {
		t.counts.Degenerate++
		return nil
	}
	l := &t.lanes[i]
	if at <= l.OpenSince {
		t.counts.Degenerate++
		if at == l.OpenSince || !l.endsAt(at) {
			l.Open = false
		}
		return nil
	}
	l.Open = false
	pieces := l.missing(Turn{Speaker: l.Speaker, Start: l.OpenSince, End: at})
	if len(pieces) != 1 || pieces[0].Start != l.OpenSince || pieces[0].End != at {
		t.counts.Degenerate++
	}
	if t.turns+len(pieces) > MaxTurns {
		t.counts.Refused++
		return nil
	}
	t.turns += len(pieces)
	l.insert(pieces)
	return pieces
}

// EndOpen ends every open turn at a stream position in seconds, as at the end
// of a session that the service did not end. It returns the turns that this
// finished, in order of their starts; a turn that begins at or after that
// position is dropped.
func (t *Timeline) EndOpen(at float64) []Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	var finished []Turn
	for i := range t.lanes {
		l := &t.lanes[i]
		if !l.Open {
			continue
		}
		l.Open = false
		if !(at >= 0 && at <= MaxTimestamp) {
			continue
		}
		pieces := l.missing(Turn{Speaker: l.Speaker, Start: l.OpenSince, End: Round1ms(at)})
		if t.turns+len(pieces) > MaxTurns {
			t.counts.Refused++
			continue
		}
		t.turns += len(pieces)
		l.insert(pieces)
		finished = append(finished, pieces...)
	}
	slices.SortStableFunc(finished, func(a, b Turn) int { return cmp.Compare(a.Start, b.Start) })
	return finished
}

// Snapshot is the timeline as it is now. It costs a copy of one small struct
// for each label, however many turns there are.
func (t *Timeline) Snapshot() Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Snapshot{Lanes: slices.Clone(t.lanes), Decided: t.decided, Counts: t.counts}
}

// Turns are the finished turns of all labels in order of their starts; with
// equal starts, in order of the lanes.
func (s Snapshot) Turns() []Turn {
	n := 0
	for _, l := range s.Lanes {
		n += len(l.Turns)
	}
	all := make([]Turn, 0, n)
	for _, l := range s.Lanes {
		all = append(all, l.Turns...)
	}
	slices.SortStableFunc(all, func(a, b Turn) int { return cmp.Compare(a.Start, b.Start) })
	return all
}

// endsAt reports whether a finished turn ends at that position.
func (l *Lane) endsAt(at float64) bool {
	_, found := slices.BinarySearchFunc(l.Turns, at, func(t Turn, at float64) int { return cmp.Compare(t.End, at) })
	return found
}

// missing is the part of turn that the lane does not have yet, in order.
func (l *Lane) missing(turn Turn) []Turn {
	if turn.End <= turn.Start {
		return nil
	}
	// The first finished turn that could overlap.
	i, _ := slices.BinarySearchFunc(l.Turns, turn.Start, func(t Turn, at float64) int {
		if t.End <= at {
			return -1
		}
		return 1
	})
	var pieces []Turn
	from := turn.Start
	for ; i < len(l.Turns) && l.Turns[i].Start < turn.End; i++ {
		if has := l.Turns[i]; has.Start > from {
			pieces = append(pieces, Turn{Speaker: turn.Speaker, Start: from, End: has.Start})
		}
		from = l.Turns[i].End
	}
	if from < turn.End {
		pieces = append(pieces, Turn{Speaker: turn.Speaker, Start: from, End: turn.End})
	}
	return pieces
}

// insert adds turns that overlap none of the lane's and are in order.
// Snapshots share the slice, so that it may only grow at its end; anywhere else
// the lane gets a copy.
func (l *Lane) insert(turns []Turn) {
	if len(turns) == 0 {
		return
	}
	for _, t := range turns {
		l.Talk += t.End - t.Start
	}
	if n := len(l.Turns); n == 0 || l.Turns[n-1].End <= turns[0].Start {
		l.Turns = append(l.Turns, turns...)
		return
	}
	total := len(l.Turns) + len(turns)
	merged := make([]Turn, 0, total+total/8)
	for _, old := range l.Turns {
		for len(turns) > 0 && turns[0].Start < old.Start {
			merged, turns = append(merged, turns[0]), turns[1:]
		}
		merged = append(merged, old)
	}
	l.Turns = append(merged, turns...)
}

// Round1ms rounds a stream position in seconds to whole milliseconds, the
// resolution of the service.
func Round1ms(seconds float64) float64 { return math.Round(seconds*1000) / 1000 }
