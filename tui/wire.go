package tui

import (
	"fmt"
	"sort"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"hubbub/protocol"
)

const (
	// wireEvery is how often the wire is looked at: rows that change twenty
	// times a second nobody reads.
	wireEvery = 200 * time.Millisecond
	// maxWireFilter bounds the text of a filter, in runes.
	maxWireFilter = 60
)

// wireView is the state of the wire view. What is selected is told by its
// record's number, for a run by that of its first chunk: rows come and go.
type wireView struct {
	snap   protocol.WireSnapshot
	at     time.Time           // when it was taken
	asked  time.Time           // when the wire was looked at last
	calm   protocol.WireStatus // the status that is shown, of this second
	calmAt int64
	paused bool
	missed int64 // records since the pause

	selected int64 // 0 = the newest, always
	row      int   // of the list, where the selected one stands
	raw      bool
	rawTop   int

	wireFilter

	listed wireListed // the rows as they were listed last
}

// wireFilter is what the list shows.
type wireFilter struct {
	unfold bool
	filter string
	kind   wireKinds
	way    protocol.Direction // "" = both
}

// wireListed keeps the rows of a version: to look through thousands of messages
// for a text, again and again, would be noticed.
type wireListed struct {
	version int64
	filter  wireFilter
	rows    []wireRow
	matches map[int64]bool // records that were looked through, under this filter
}

// maxMatches bounds the records of which it is kept whether they match.
const maxMatches = 1 << 14

// wireKinds is a choice of kinds.
type wireKinds int

const (
	wireAll wireKinds = iota
	wireMessages
	wireSteps
	wireFaults
	wireKindChoices
)

func (k wireKinds) String() string {
	return [...]string{"everything", "messages", "connection", "faults"}[k]
}

func (k wireKinds) has(r *protocol.WireRecord, run *protocol.WireRun) bool {
	switch k {
	case wireMessages:
		switch r.Kind {
		case protocol.WireEvent, protocol.WireError, protocol.WireMessage, protocol.WireClose, protocol.WireEnd:
			return true
		}
		return false
	case wireSteps:
		switch r.Kind {
		case protocol.WireChunk, protocol.WireEvent, protocol.WireError, protocol.WireMessage:
			return false
		}
		return true
	case wireFaults:
		return r.Fault || wireSuspect(r, run)
	}
	return true
}

// wireSuspect says that something is not as it should be, though it is no fault.
func wireSuspect(r *protocol.WireRecord, run *protocol.WireRun) bool {
	switch r.Kind {
	case protocol.WireChunk:
	case protocol.WirePong:
		return r.Took > latePong
	case protocol.WireEvent:
		return r.Lag > lateEvent
	default:
		return false
	}
	if run != nil {
		return run.Gap > protocol.WireStall || run.MaxTook > protocol.WireStall || run.Dropped > 0 || run.Unacked > backlog
	}
	return r.Gap > protocol.WireStall || r.Took > protocol.WireStall || r.Dropped > 0 || r.Socket != nil && r.Socket.Unacked > backlog
}

// wireRow is a row of the list.
type wireRow struct {
	record *protocol.WireRecord
	run    *protocol.WireRun // nil = one record
}

func (r wireRow) id() int64 {
	if r.run != nil {
		return r.run.First
	}
	return r.record.Number
}

func (m *model) openWire() {
	m.wire = &wireView{}
	m.wire.look(m.o.Wire, m.now())
}

func (m *model) closeWire() { m.wire = nil }

// wireBack leaves what lies over the list, one thing after the other, then the
// view.
func (m *model) wireBack() {
	w := m.wire
	switch {
	case m.help > 0:
		m.help = 0
	case w.raw:
		w.raw = false
	case m.notice != "":
		m.notice = ""
	case w.selected != 0:
		w.selected = 0
	case w.filter != "" || w.kind != wireAll || w.way != "":
		w.wireFilter = wireFilter{unfold: w.unfold}
	default:
		m.closeWire()
	}
}

// look takes a new snapshot when it is time, and tells whether something about
// it looks different.
func (w *wireView) look(wire func() protocol.WireSnapshot, now time.Time) bool {
	if d := now.Sub(w.asked); d < wireEvery && d >= 0 && !w.asked.IsZero() {
		return false
	}
	w.asked = now
	s := wire()
	if w.paused {
		missed := s.Version - w.snap.Version
		changed := missed != w.missed
		w.missed = missed
		return changed
	}
	changed := s.Version != w.snap.Version || now.Unix() != w.at.Unix()
	w.snap, w.at = s, now
	if c := w.calm; now.Unix() != w.calmAt || c.Over != s.Status.Over || c.Faults != s.Status.Faults || c.Streams != s.Status.Streams {
		w.calm, w.calmAt = s.Status, now.Unix()
	}
	return changed
}

func (m *model) toggleWirePause() {
	w := m.wire
	if w.paused = !w.paused; !w.paused {
		w.missed, w.asked = 0, time.Time{}
		w.look(m.o.Wire, m.now())
	}
}

func (m *model) toggleWireRaw() {
	m.wire.raw, m.wire.rawTop = !m.wire.raw, 0
}

func (m *model) toggleWireFold() { m.wire.unfold = !m.wire.unfold }

func (m *model) turnWireKind() { m.wire.kind = (m.wire.kind + 1) % wireKindChoices }

func (m *model) turnWireWay() {
	w := m.wire
	w.way = map[protocol.Direction]protocol.Direction{"": protocol.Outgoing, protocol.Outgoing: protocol.Incoming}[w.way]
}

// askWireFilter asks for words that a row must have.
func (m *model) askWireFilter() {
	m.ask(entry{
		prompt: "only rows with:", role: roleBrand, limit: maxWireFilter, before: m.wire.filter,
		done: func(m *model, text string) tea.Cmd {
			if m.wire != nil {
				m.wire.filter = text
			}
			return nil
		},
	})
}

// shown says what the list shows.
func (w *wireView) shown() string {
	text := w.kind.String()
	switch w.way {
	case protocol.Outgoing:
		text += ", sent"
	case protocol.Incoming:
		text += ", received"
	}
	if w.filter != "" {
		text += fmt.Sprintf(", %q", w.filter)
	}
	return text
}

// wireRows are the rows that the filters leave, oldest first.
func (m *model) wireRows() []wireRow {
	w := m.wire
	known := &w.listed
	if known.filter != w.wireFilter || len(known.matches) > maxMatches || known.matches == nil {
		known.matches, known.version = map[int64]bool{}, -1
	}
	if known.version == w.snap.Version {
		return known.rows
	}
	words := strings.Fields(strings.ToLower(w.filter))
	out := make([]wireRow, 0, w.snap.Entries.Len())
	add := func(r wireRow) {
		if w.way != "" && r.record.Dir != w.way || !w.kind.has(r.record, r.run) || len(words) > 0 && !known.match(r, words) {
			return
		}
		out = append(out, r)
	}
	chunks, next := w.snap.Chunks, 0
	for i := range w.snap.Entries.Len() {
		e := w.snap.Entries.At(i)
		if e.Run.Chunks == 0 {
			add(wireRow{record: &e.WireRecord})
			continue
		}
		for w.unfold && next < chunks.Len() && chunks.At(next).Number < e.Run.First {
			next++
		}
		if !w.unfold || next == chunks.Len() || chunks.At(next).Number != e.Run.First { // folded, or forgotten one by one
			add(wireRow{&e.WireRecord, &e.Run})
			continue
		}
		for ; next < chunks.Len() && chunks.At(next).Number <= e.Number; next++ {
			add(wireRow{record: chunks.At(next)})
		}
	}
	known.version, known.filter, known.rows = w.snap.Version, w.wireFilter, out
	return out
}

// match says whether a row has all words.
func (l *wireListed) match(r wireRow, words []string) bool {
	if r.run == nil { // a run still grows
		if ok, known := l.matches[r.record.Number]; known {
			return ok
		}
	}
	text, ok := strings.ToLower(wireSearch(r)), true
	for _, word := range words {
		ok = ok && strings.Contains(text, word)
	}
	if r.run == nil {
		l.matches[r.record.Number] = ok
	}
	return ok
}

// index is where the selected row is; it moves to the next one where that is
// gone. -1 = there are no rows.
func (w *wireView) index(rows []wireRow) int {
	if w.selected == 0 {
		return len(rows) - 1
	}
	i := sort.Search(len(rows), func(i int) bool { return rows[i].id() >= w.selected })
	return min(i, len(rows)-1)
}

// toEnd goes to the oldest row (-1) or the newest (1).
func (w *wireView) toEnd(rows []wireRow, way int) {
	w.selected, w.row, w.rawTop = 0, 0, 0
	if way < 0 && len(rows) > 0 {
		w.selected = rows[0].id()
	}
}

// wireBy selects the row above (-1) or below (1), or goes a page. While the
// raw message is open, a page is one of that.
func wireBy(by int, page bool) func(*model) tea.Cmd {
	return act(func(m *model) {
		w := m.wire
		if page && w.raw {
			w.rawTop = max(w.rawTop+by*max(newWireLayout(m.w, m.h, true).rawH-2, 1), 0) // drawing bounds it at the other end
			return
		}
		m.moveWire(by, page)
	})
}

func (m *model) moveWire(by int, page bool) {
	w := m.wire
	height := newWireLayout(m.w, m.h, w.raw).listH
	if page {
		by *= max(height-1, 1)
	}
	rows := m.wireRows()
	i := w.index(rows)
	if i < 0 {
		return
	}
	if w.selected == 0 {
		w.row = height - 1
	}
	to := min(max(i+by, 0), len(rows)-1)
	w.row, w.rawTop = min(max(w.row+to-i, 0), max(height-1, 0)), 0
	w.selected = rows[to].id()
	if to == len(rows)-1 && by > 0 && !w.raw { // at the end again: follow it
		w.selected = 0
	}
}

// clickWire is the mouse in the wire view: the wheel moves, a click selects.
func (m *model) clickWire(msg tea.MouseMsg) tea.Cmd {
	m.dirty = true
	switch msg.Button {
	case tea.MouseButtonWheelUp:
		m.moveWire(-3, false)
	case tea.MouseButtonWheelDown:
		m.moveWire(3, false)
	case tea.MouseButtonLeft:
		l := newWireLayout(m.w, m.h, m.wire.raw)
		rows := m.wireRows()
		i := m.wire.top(rows, l.listH) + msg.Y - l.listY
		if msg.Y >= l.listY && msg.Y < l.listY+l.listH && i < len(rows) {
			m.wire.row, m.wire.rawTop = msg.Y-l.listY, 0
			m.wire.selected = rows[i].id()
		}
	}
	return nil
}

// top is the first row that the list shows.
func (w *wireView) top(rows []wireRow, height int) int {
	i := w.index(rows)
	if i < 0 {
		return 0
	}
	row := min(w.row, height-1)
	if w.selected == 0 {
		row = height - 1
	}
	return min(max(i-row, 0), max(len(rows)-height, 0))
}
