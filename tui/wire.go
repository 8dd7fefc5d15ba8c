package tui

import (
	"fmt"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"hubbub/protocol"
	"hubbub/protocol/trace"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// The wire view shows what went over the connection: the records of a trace.Log
// as rows, newest last. This file has its state, filters and keys;
// wire_screen.go draws it, wire_text.go turns records into text.

const (
	// wireInterval is how often the log is read: rows that change more often
	// cannot be read.
	wireInterval = 200 * time.Millisecond
	// maxWireFilter bounds the text of a filter, in runes.
	maxWireFilter = 60
)

// maxUnacked is how much audio may be unacknowledged before that is a warning: a
// second.
const maxUnacked = 10 * protocol.ChunkBytes

// wireView is the state of the wire view.
type wireView struct {
	snapshot trace.Snapshot
	at       time.Time // when it was taken
	readAt   time.Time // when the log was read last
	status   trace.Status
	statusAt int64 // the second of status, which changes once a second
	paused   bool
	missed   int64 // records since the pause

	display.Cursor
	raw    bool // the selected record is shown in full
	rawTop int

	filter wireFilter
	rows   wireRows
}

// wireFilter is what the list shows. The zero value is everything.
type wireFilter struct {
	unfolded  bool // chunks one by one
	text      string
	kinds     wireKinds
	direction trace.Direction // "" = both
}

// active reports whether the filter omits rows.
func (f wireFilter) active() bool { return f != wireFilter{unfolded: f.unfolded} }

// wireKinds is a choice of kinds of records.
type wireKinds int

const (
	allRecords wireKinds = iota
	messageRecords
	connectionRecords
	faultRecords
	wireKindsCount
)

func (k wireKinds) String() string {
	return [...]string{"everything", "messages", "connection", "faults"}[k]
}

func (k wireKinds) includes(r wireRow) bool {
	switch k {
	case messageRecords:
		switch r.record.Kind {
		case trace.KindEvent, trace.KindError, trace.KindMessage, trace.KindClose, trace.KindEnd:
			return true
		}
		return false
	case connectionRecords:
		switch r.record.Kind {
		case trace.KindChunk, trace.KindEvent, trace.KindError, trace.KindMessage:
			return false
		}
		return true
	case faultRecords:
		return r.record.Fault || r.warning()
	}
	return true
}

// wireRow is a row of the list: a record, or a run of chunks with the record of
// its newest.
type wireRow struct {
	record *trace.Record
	run    *trace.Run // nil = one record
}

func entryRow(e *trace.Entry) wireRow {
	if e.Run.Chunks == 0 {
		return wireRow{record: &e.Record}
	}
	return wireRow{&e.Record, &e.Run}
}

// id is the number of the row's first record.
func (r wireRow) id() int64 {
	if r.run != nil {
		return r.run.First
	}
	return r.record.Number
}

// warning reports whether a row that is no fault is not as it should be.
func (r wireRow) warning() bool {
	rec, run := r.record, r.run
	switch rec.Kind {
	case trace.KindChunk:
	case trace.KindPong:
		return rec.Took > trace.MaxPong
	case trace.KindEvent:
		return rec.Lag > trace.MaxLag
	default:
		return false
	}
	if run != nil {
		return run.Gap > trace.StallGap || run.MaxTook > trace.StallGap || run.Dropped > 0 || run.Unacked > maxUnacked
	}
	return rec.Gap > trace.StallGap || rec.Took > trace.StallGap || rec.Dropped > 0 || rec.Socket != nil && rec.Socket.Unacked > maxUnacked
}

func (m *model) openWire() {
	m.wire = &wireView{}
	m.wire.refresh(m.o.Wire, m.now())
}

func (m *model) closeWire() { m.wire = nil }

// wireBack closes what is over the list, one layer at a time, then the view.
func (m *model) wireBack() {
	w := m.wire
	switch {
	case m.help > 0:
		m.help = 0
	case w.raw:
		w.raw = false
	case m.notice != "":
		m.notice = ""
	case w.Selected != 0:
		w.Selected = 0
	case w.filter.active():
		w.filter = wireFilter{unfolded: w.filter.unfolded}
	default:
		m.closeWire()
	}
}

// refresh reads the log when it is time, and reports whether the view looks
// different.
func (w *wireView) refresh(wire func() trace.Snapshot, now time.Time) bool {
	if d := now.Sub(w.readAt); d < wireInterval && d >= 0 && !w.readAt.IsZero() {
		return false
	}
	w.readAt = now
	s := wire()
	if w.paused {
		missed := s.Version - w.snapshot.Version
		changed := missed != w.missed
		w.missed = missed
		return changed
	}
	changed := s.Version != w.snapshot.Version || now.Unix() != w.at.Unix()
	w.snapshot, w.at = s, now
	if old := w.status; now.Unix() != w.statusAt || old.Over != s.Status.Over || old.Faults != s.Status.Faults || old.Streams != s.Status.Streams {
		w.status, w.statusAt = s.Status, now.Unix()
	}
	return changed
}

func (m *model) toggleWirePause() {
	w := m.wire
	if w.paused = !w.paused; !w.paused {
		w.missed, w.readAt = 0, time.Time{}
		w.refresh(m.o.Wire, m.now())
	}
}

func (m *model) toggleWireRaw() { m.wire.raw, m.wire.rawTop = !m.wire.raw, 0 }

func (m *model) toggleWireFold() { m.wire.filter.unfolded = !m.wire.filter.unfolded }

func (m *model) nextWireKind() { m.wire.filter.kinds = (m.wire.filter.kinds + 1) % wireKindsCount }

func (m *model) nextWireDirection() {
	f := &m.wire.filter
	f.direction = map[trace.Direction]trace.Direction{"": trace.Outgoing, trace.Outgoing: trace.Incoming}[f.direction]
}

// askWireFilter asks for words that a row must have.
func (m *model) askWireFilter() {
	m.askText(textInput{
		label: "only rows with:", style: canvas.Brand, limit: maxWireFilter, before: m.wire.filter.text,
		done: func(m *model, text string) tea.Cmd {
			if m.wire != nil {
				m.wire.filter.text = text
			}
			return nil
		},
	})
}

// filterText says what the list shows.
func (w *wireView) filterText() string {
	f := w.filter
	text := f.kinds.String()
	switch f.direction {
	case trace.Outgoing:
		text += ", sent"
	case trace.Incoming:
		text += ", received"
	}
	if f.text != "" {
		text += fmt.Sprintf(", %q", f.text)
	}
	return text
}

// wireRows caches the rows of a snapshot under a filter: searching thousands of
// records for a text on every redraw would cost too much.
type wireRows struct {
	version int64
	filter  wireFilter
	rows    []wireRow
	matches map[int64]bool // by record number, whether it matches the filter's text
}

// maxMatches bounds the matches that are cached.
const maxMatches = 1 << 14

// visibleRows are the rows that the filter leaves, oldest first.
func (w *wireView) visibleRows() []wireRow {
	cache := &w.rows
	if cache.filter != w.filter || len(cache.matches) > maxMatches || cache.matches == nil {
		cache.matches, cache.version = map[int64]bool{}, -1
	}
	if cache.version == w.snapshot.Version {
		return cache.rows
	}
	words := strings.Fields(strings.ToLower(w.filter.text))
	out := make([]wireRow, 0, w.snapshot.Entries.Len())
	for r := range w.allRows {
		if w.filter.direction != "" && r.record.Dir != w.filter.direction || !w.filter.kinds.includes(r) || len(words) > 0 && !cache.match(r, words) {
			continue
		}
		out = append(out, r)
	}
	cache.version, cache.filter, cache.rows = w.snapshot.Version, w.filter, out
	return out
}

// allRows iterates over the rows without a filter. Unfolded, a run is chunk by
// chunk, unless the log no longer has its chunks.
func (w *wireView) allRows(yield func(wireRow) bool) {
	entries, chunks, next := w.snapshot.Entries, w.snapshot.Chunks, 0
	for i := range entries.Len() {
		e := entries.At(i)
		if e.Run.Chunks > 0 && w.filter.unfolded {
			for next < chunks.Len() && chunks.At(next).Number < e.Run.First {
				next++
			}
			if next < chunks.Len() && chunks.At(next).Number == e.Run.First {
				for ; next < chunks.Len() && chunks.At(next).Number <= e.Number; next++ {
					if !yield(wireRow{record: chunks.At(next)}) {
						return
					}
				}
				continue
			}
		}
		if !yield(entryRow(e)) {
			return
		}
	}
}

// match reports whether a row has all words.
func (c *wireRows) match(r wireRow, words []string) bool {
	if r.run == nil { // a run still grows
		if ok, known := c.matches[r.record.Number]; known {
			return ok
		}
	}
	text, ok := strings.ToLower(searchText(r)), true
	for _, word := range words {
		ok = ok && strings.Contains(text, word)
	}
	if r.run == nil {
		c.matches[r.record.Number] = ok
	}
	return ok
}

// index is the index of the selected row; -1 = there are no rows.
func (w *wireView) index(rows []wireRow) int {
	return w.Cursor.Index(len(rows), func(i int) int64 { return rows[i].id() })
}

// top is the first row that the list shows, at a height.
func (w *wireView) top(rows []wireRow, height int) int {
	return w.Cursor.Top(len(rows), height, func(i int) int64 { return rows[i].id() })
}

func (m *model) toNewestRow() { m.wire.Selected, m.wire.Line, m.wire.rawTop = 0, 0, 0 }

func (m *model) toOldestRow() {
	m.toNewestRow()
	if rows := m.wire.visibleRows(); len(rows) > 0 {
		m.wire.Selected = rows[0].id()
	}
}

// wireBy selects the row above (-1) or below (1), or goes a page. While a record
// is shown in full, a page is one of that.
func wireBy(by int, page bool) func(*model) tea.Cmd {
	return action(func(m *model) {
		w := m.wire
		if page && w.raw {
			w.rawTop = max(w.rawTop+by*max(newWireLayout(m.w, m.h, true).rawH-2, 1), 0) // drawing bounds it at the other end
			return
		}
		m.moveRow(by, page)
	})
}

func (m *model) moveRow(by int, page bool) {
	w := m.wire
	height := newWireLayout(m.w, m.h, w.raw).listH
	if page {
		by *= max(height-1, 1)
	}
	rows := w.visibleRows()
	if len(rows) == 0 {
		return
	}
	w.Move(len(rows), height, by, func(i int) int64 { return rows[i].id() })
	w.rawTop = 0
	if w.raw && w.Selected == 0 { // the record that is shown stays
		w.Selected = rows[len(rows)-1].id()
	}
}

// clickWire handles the mouse: the wheel moves, a click selects.
func (m *model) clickWire(msg tea.MouseMsg) {
	m.dirty = true
	switch msg.Button {
	case tea.MouseButtonWheelUp:
		m.moveRow(-3, false)
	case tea.MouseButtonWheelDown:
		m.moveRow(3, false)
	case tea.MouseButtonLeft:
		l := newWireLayout(m.w, m.h, m.wire.raw)
		rows := m.wire.visibleRows()
		i := m.wire.top(rows, l.listH) + msg.Y - l.listY
		if msg.Y >= l.listY && msg.Y < l.listY+l.listH && i < len(rows) {
			m.wire.Line, m.wire.rawTop = msg.Y-l.listY, 0
			m.wire.Selected = rows[i].id()
		}
	}
}
