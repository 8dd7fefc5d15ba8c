// Package wire shows what went over the connection: the records of a trace.Log as
// rows, newest last, and in sentences. view.go has the state of the wire view, its
// filters and its selection; screen.go draws it, figures.go explains it, text.go
// turns records into text, and accessible.go is for the display without a screen.
package wire

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/trace"
	"hubbub/tui/display"
)

// readInterval is how often the log is read: rows that change more often cannot be read.
const readInterval = 200 * time.Millisecond

// maxUnacked is how much audio may be unacknowledged before that is a warning: a
// second.
const maxUnacked = 10 * protocol.ChunkBytes

// View is the state of the wire view. The zero value is a view that has read
// nothing yet. It is for one goroutine.
type View struct {
	snapshot trace.Snapshot
	at       time.Time // when it was taken
	readAt   time.Time // when the log was read last
	status   trace.Status
	statusAt int64 // the second of status, which changes once a second
	paused   bool
	missed   int64 // records since the pause

	display.Cursor[row]
	raw    bool // the selected record is shown in full
	held   bool // and selected only for that
	rawTop int

	unfolded bool // the list shows chunks one by one
	filter   filter
	rows     rowCache
}

// filter is what the list shows. The zero value is everything.
type filter struct {
	text  string
	kinds kinds
}

// kinds is a choice of kinds of records.
type kinds int

const (
	allRecords kinds = iota
	messageRecords
	connectionRecords
	faultRecords
	kindsCount
)

func (k kinds) String() string {
	return [...]string{"everything", "messages", "connection", "faults"}[k]
}

func (k kinds) includes(r row) bool {
	switch k {
	case messageRecords:
		return slices.Contains([]trace.Kind{trace.KindEvent, trace.KindError, trace.KindMessage, trace.KindClose, trace.KindEnd}, r.record.Kind)
	case connectionRecords:
		return !slices.Contains([]trace.Kind{trace.KindChunk, trace.KindEvent, trace.KindError, trace.KindMessage}, r.record.Kind)
	case faultRecords:
		return r.record.Fault || r.warning()
	}
	return true
}

// row is a row of the list: a record, or a run of chunks with the record of
// its newest.
type row struct {
	record *trace.Record
	run    *trace.Run // nil = a chunk of an unfolded run; one without chunks = another record
}

// asRun is the run of a row; a chunk of an unfolded run is one of its own.
func (r row) asRun() trace.Run {
	if r.run == nil {
		return trace.NewRun(*r.record)
	}
	return *r.run
}

// ID is the number of the row's first record.
func (r row) ID() int64 {
	if r.run != nil && r.run.Chunks > 0 {
		return r.run.First
	}
	return r.record.Number
}

// warning reports whether a row that is no fault is not as it should be.
func (r row) warning() bool {
	switch rec := r.record; rec.Kind {
	case trace.KindPong:
		return rec.Took > trace.MaxPong
	case trace.KindEvent:
		return rec.Lag > trace.MaxLag
	default:
		run := r.asRun()
		return run.Gap > trace.StallGap || run.MaxTook > trace.StallGap || run.Dropped > 0 || run.Unacked > maxUnacked
	}
}

// CloseRaw ends showing a record in full. It reports whether one was shown.
func (v *View) CloseRaw() bool {
	was := v.raw
	if v.held {
		v.Selected = 0
	}
	v.raw, v.held = false, false
	return was
}

// Reset follows the newest row again, or else shows all rows again. It reports
// whether there was something to do.
func (v *View) Reset() bool { return display.Reset(&v.Cursor, &v.filter) }

// Refresh reads the log when it is time.
func (v *View) Refresh(wire func() trace.Snapshot, now time.Time) {
	if d := now.Sub(v.readAt); d < readInterval && d >= 0 {
		return
	}
	v.readAt = now
	s := wire()
	if v.paused {
		v.missed = s.Version - v.snapshot.Version
		return
	}
	v.snapshot, v.at = s, now
	if old := v.status; now.Unix() != v.statusAt || old.Over != s.Status.Over || old.Faults != s.Status.Faults || old.Streams != s.Status.Streams {
		v.status, v.statusAt = s.Status, now.Unix()
	}
}

// TogglePause keeps the rows that are shown, or reads the log again.
func (v *View) TogglePause(wire func() trace.Snapshot, now time.Time) {
	if v.paused = !v.paused; !v.paused {
		v.missed, v.readAt = 0, time.Time{}
		v.Refresh(wire, now)
	}
}

// ToggleRaw shows the selected record in full, or no longer.
func (v *View) ToggleRaw() {
	if v.CloseRaw() {
		return
	}
	v.raw = true
	v.holdRaw()
}

// holdRaw selects the record that is shown in full, from its first line: it stays while others arrive.
func (v *View) holdRaw() {
	rows := v.visibleRows()
	v.rawTop = 0
	if v.held = v.raw && v.Selected == 0 && len(rows) > 0; v.held {
		v.Selected, v.Line = rows[len(rows)-1].ID(), len(rows)
	}
}

// ToggleFold shows runs of chunks as one row, or chunk by chunk.
func (v *View) ToggleFold() { v.unfolded, v.rows = !v.unfolded, rowCache{} }

// NextKind filters by the next choice of kinds.
func (v *View) NextKind() { v.filter.kinds = (v.filter.kinds + 1) % kindsCount }

// Filter are the words that a row must have, SetFilter replaces them.
func (v *View) Filter() string { return v.filter.text }

// SetFilter filters by words.
func (v *View) SetFilter(text string) { v.filter.text = text }

// FilterText says what the list shows.
func (v *View) FilterText() string {
	f := v.filter
	text := f.kinds.String()
	if f.text != "" {
		text += fmt.Sprintf(", %q", f.text)
	}
	return text
}

// rowCache caches the rows of a snapshot under a filter: searching thousands of
// records for a text on every redraw would cost too much.
type rowCache struct {
	version int64
	filter  filter
	rows    []row
}

// visibleRows are the rows that the filter leaves, oldest first.
func (v *View) visibleRows() []row {
	if c := v.rows; c.rows != nil && c.filter == v.filter && c.version == v.snapshot.Version {
		return c.rows
	}
	out := make([]row, 0, v.snapshot.Entries.Len())
	for i := range v.snapshot.Entries.Len() {
		e := v.snapshot.Entries.At(i)
		for _, r := range v.unfold(row{&e.Record, &e.Run}) {
			if v.filter.kinds.includes(r) && r.matches(v.filter.text) {
				out = append(out, r)
			}
		}
	}
	v.rows = rowCache{v.snapshot.Version, v.filter, out}
	return out
}

// unfold is a row, or when runs are unfolded the chunks of one, unless the log no longer
// has its first.
func (v *View) unfold(r row) []row {
	if v.unfolded {
		if chunks := v.chunks(r); len(chunks) > 0 && chunks[0].ID() == r.ID() {
			return chunks
		}
	}
	return []row{r}
}

// chunks are those of a run that the log still has; none of another row.
func (v *View) chunks(r row) (rows []row) {
	all := v.snapshot.Chunks
	if r.run == nil || r.run.Chunks == 0 {
		return nil
	}
	from := sort.Search(all.Len(), func(i int) bool { return all.At(i).Number >= r.run.First })
	for i := from; i < all.Len() && all.At(i).Number <= r.record.Number; i++ {
		rows = append(rows, row{record: all.At(i)})
	}
	return rows
}

// directions are the words for them.
var directions = map[trace.Direction]string{trace.Outgoing: "sent ", trace.Incoming: "received "}

// matches reports whether a row has all words, in what is visible, in the raw message, or sent or received.
func (r row) matches(words string) bool {
	if words == "" { // the common case
		return true
	}
	return display.HasWords(directions[r.record.Dir]+string(r.record.Kind)+" "+rowText(r)+" "+string(r.record.Raw), words)
}

// ToNewest shows the newest rows.
func (v *View) ToNewest() {
	v.Selected, v.Line = 0, 0
	v.holdRaw()
}

// ToOldest selects the oldest row.
func (v *View) ToOldest() {
	v.Cursor.ToOldest(v.visibleRows())
	v.holdRaw()
}

// Page goes some pages up or down on a screen of h rows. While a record is
// shown in full, a page is one of that.
func (v *View) Page(by, h int) {
	l := newLayout(h, v.raw)
	if v.raw {
		v.rawTop = max(v.rawTop+by*max(l.rawH-2, 1), 0) // drawing bounds it at the other end
		return
	}
	v.Move(by*max(l.listH-1, 1), h)
}

// Move moves the selection by rows.
func (v *View) Move(by, h int) {
	v.Cursor.Move(v.visibleRows(), newLayout(h, v.raw).listH, by)
	v.holdRaw()
}

// Click selects the row at a line of the screen.
func (v *View) Click(y, h int) {
	l := newLayout(h, v.raw)
	if v.Cursor.Click(v.visibleRows(), l.listH, y-l.listY) {
		v.holdRaw()
	}
}
