package protocol

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// Bounds of a Timeline. A service has up to 8 speakers; the bounds are for one that
// misbehaves.
const (
	MaxLabels    = 64
	MaxTurns     = 1 << 18        // all labels together
	MaxTimestamp = 30 * 24 * 3600 // seconds
)

// Span is a stretch of audio, in seconds.
type Span struct {
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

// Turn is a finished turn of one speaker, in seconds on the stream's clock,
// End > Start.
type Turn struct {
	Speaker string  `json:"speaker"`
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
	// Match is the label of the voiceprint that the speaker matches; "" = none.
	Match string `json:"match,omitempty"`
	// Text is the transcript; "" = not recognised.
	Text string `json:"text,omitempty"`
}

func byStart(a, b Turn) int { return cmp.Compare(a.Start, b.Start) }

// Lane is everything that is known of one label.
type Lane struct {
	Speaker string
	// Match is the label of the voiceprint that the speaker matches; "" = none,
	// or not decided yet.
	Match string
	// Turns are the finished turns, in order of time and without overlap.
	// The slice is shared between snapshots: read only.
	Turns []Turn
	// Open says that a turn started at OpenSince and has not ended.
	Open      bool
	OpenSince float64
	// Talk is the total length of the finished turns, in seconds.
	Talk float64
}

// Counts counts the messages of a stream by their effect.
type Counts struct {
	Events     int64 // messages in all
	Errors     int64 // of type error
	Unknown    int64 // of an unknown type
	Malformed  int64 // could not be parsed
	Degenerate int64 // not a valid step: repeated, without a start, empty, out of order, out of range
	Refused    int64 // valid, but beyond MaxLabels or MaxTurns
	Unended    int64 // turns that EndOpen ended
}

// Snapshot is a Timeline at one moment. It never changes.
type Snapshot struct {
	// Lanes are in order of their first events.
	Lanes []Lane
	// Decided is the newest timestamp of the events, in seconds.
	Decided float64
	Counts  Counts
	// Texts counts the texts that turns were given.
	Texts int
}

// Timeline builds turns by label from the events of a stream. One goroutine may
// apply events while any number take snapshots.
//
// For any events, in any order and with any repetition, the turns of a label are
// sorted, longer than zero and do not overlap. A step that the protocol does not
// allow is counted as Degenerate and corrected as follows.
//   - A start while the label's turn is open changes nothing; nor does an end
//     without a start.
//   - An end not after its start closes the turn and leaves none; but one
//     that repeats the end of a finished turn changes nothing.
//   - Of a turn that overlaps finished turns of the label, only the rest is
//     added, which may be several turns, or none.
//   - An event with a timestamp that is negative, not finite or beyond
//     MaxTimestamp is ignored.
//
// Labels are cleaned by Label, timestamps rounded by Round1ms.
type Timeline struct {
	mu      sync.Mutex
	byLabel map[string]int // index in lanes
	lanes   []Lane
	owned   [MaxLabels]bool // by lane: no snapshot shares its finished turns
	turns   int
	decided float64
	counts  Counts
	texts   int
}

// NewTimeline is an empty Timeline.
func NewTimeline() *Timeline {
	return &Timeline{byLabel: make(map[string]int)}
}

// Apply applies one event and returns the turns that it finished: none, one, or
// several where a turn overlapped older turns of its label.
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
	case e.Type == TypeText:
		t.setText(e.Transcript)
		return nil
	case !e.IsTurn():
		t.counts.Unknown++
		return nil
	case !(e.Timestamp >= 0 && e.Timestamp <= MaxTimestamp): // also NaN
		t.counts.Degenerate++
		return nil
	}
	at, label := Round1ms(e.Timestamp), Label(e.Speaker)
	t.decided = max(t.decided, at)
	if e.Type == TypeSpeakerStart {
		t.start(label, at, e)
		return nil
	}
	return t.end(label, at)
}

func (t *Timeline) start(label string, at float64, e Event) {
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
	if e.Match != "" || e.Unmatched {
		l.Match = e.Match
	}
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
	rest := l.missing(Turn{Speaker: l.Speaker, Start: l.OpenSince, End: at})
	if len(rest) != 1 || rest[0].Start != l.OpenSince || rest[0].End != at {
		t.counts.Degenerate++
	}
	return t.add(l, rest)
}

// add adds turns that are in order and overlap none of the lane's, and returns them
// with the lane's match.
func (t *Timeline) add(l *Lane, turns []Turn) []Turn {
	if t.turns+len(turns) > MaxTurns {
		t.counts.Refused++
		return nil
	}
	t.turns += len(turns)
	l.insert(turns)
	return l.matched(slices.Clone(turns))
}

// EndOpen ends every open turn at a time in seconds, as at the end of a session
// that the service did not end. It returns the turns that this finished, in order
// of their starts; a turn that starts at or after that time is dropped.
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
		t.counts.Unended++
		if at <= MaxTimestamp {
			finished = append(finished, t.add(l, l.missing(Turn{Speaker: l.Speaker, Start: l.OpenSince, End: Round1ms(at)}))...)
		}
	}
	slices.SortStableFunc(finished, byStart)
	return finished
}

// SetText gives a finished turn its transcript; a turn that is not there
// changes nothing.
func (t *Timeline) SetText(turn Turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setText(turn)
}

func (t *Timeline) setText(turn Turn) {
	i, known := t.byLabel[turn.Speaker]
	if !known {
		return
	}
	l := &t.lanes[i]
	k, found := slices.BinarySearchFunc(l.Turns, turn.Start, func(t Turn, at float64) int { return cmp.Compare(t.Start, at) })
	if !found || l.Turns[k].End != turn.End {
		return
	}
	if !t.owned[i] {
		l.Turns, t.owned[i] = slices.Clone(l.Turns), true
	}
	l.Turns[k].Text = turn.Text
	t.texts++
}

// Snapshot is the timeline at this moment. It copies one small struct for each
// label, regardless of the number of turns.
func (t *Timeline) Snapshot() Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owned = [MaxLabels]bool{}
	return Snapshot{Lanes: slices.Clone(t.lanes), Decided: t.decided, Counts: t.counts, Texts: t.texts}
}

// SnapshotOf is the timeline of finished turns, in any order. They may come from a file that was
// edited: invalid turns are ignored, those of a speaker that overlap stay.
func SnapshotOf(turns []Turn) (s Snapshot) {
	turns = slices.Clone(turns)
	slices.SortStableFunc(turns, byStart)
	index := map[string]int{}
	for _, t := range turns {
		t.Speaker, t.Start, t.End = Label(t.Speaker), Round1ms(t.Start), Round1ms(t.End)
		if !(t.Start >= 0 && t.End > t.Start && t.End <= MaxTimestamp) {
			continue
		}
		i, known := index[t.Speaker]
		if !known {
			i = len(s.Lanes)
			index[t.Speaker] = i
			s.Lanes = append(s.Lanes, Lane{Speaker: t.Speaker})
		}
		l := &s.Lanes[i]
		l.Match = cmp.Or(t.Match, l.Match)
		l.Turns = append(l.Turns, t)
		l.Talk += t.End - t.Start
	}
	return s
}

// Turns are the finished turns of all labels in order of their starts; those with
// equal starts in order of the lanes.
func (s Snapshot) Turns() []Turn {
	all := []Turn{}
	for _, l := range s.Lanes {
		all = append(all, l.Turns...)
		l.matched(all[len(all)-len(l.Turns):])
	}
	slices.SortStableFunc(all, byStart)
	return all
}

// matched sets the match of turns of the lane. The turns in the lane have none,
// because it may be decided after them.
func (l *Lane) matched(turns []Turn) []Turn {
	for i := range turns {
		turns[i].Match = l.Match
	}
	return turns
}

// endsAt reports whether a finished turn ends at that time.
func (l *Lane) endsAt(at float64) bool {
	_, found := slices.BinarySearchFunc(l.Turns, at, func(t Turn, at float64) int { return cmp.Compare(t.End, at) })
	return found
}

// missing is the part of turn that does not overlap the turns of the lane, in order.
func (l *Lane) missing(turn Turn) []Turn {
	// The first finished turn that could overlap.
	i, _ := slices.BinarySearchFunc(l.Turns, turn.Start, func(t Turn, at float64) int {
		if t.End <= at {
			return -1
		}
		return 1
	})
	var rest []Turn
	from := turn.Start
	for ; i < len(l.Turns) && l.Turns[i].Start < turn.End; i++ {
		if has := l.Turns[i]; has.Start > from {
			rest = append(rest, Turn{Speaker: turn.Speaker, Start: from, End: has.Start})
		}
		from = l.Turns[i].End
	}
	if from < turn.End {
		rest = append(rest, Turn{Speaker: turn.Speaker, Start: from, End: turn.End})
	}
	return rest
}

// insert adds turns that are in order and overlap none of the lane's. Snapshots
// share the slice: it is appended to, and otherwise copied.
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
	l.Turns = slices.Concat(l.Turns, turns)
	slices.SortFunc(l.Turns, byStart)
}

// Round1ms rounds a time in seconds to whole milliseconds, the resolution of
// timestamps.
func Round1ms(seconds float64) float64 { return math.Round(seconds*1000) / 1000 }
