package tui

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hubbub/protocol"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// The list of all turns and bookmarks, oldest first: beside the timeline where
// there is room, else in its place.
//
//	turns of Anna                                  12
//	 0:42  Anna Löwe      2.1 s  ━━━━╸
//	▌0:47  李雷            0.8 s  ━╸                    selected
//	       so we ship it                              what was said
//	 0:49  ◆ decision: ship it on Friday

// sideWidth is the width of a screen from which on the list is beside the timeline.
const sideWidth = 120

// listView is the state of the list.
type listView struct {
	display.Cursor[listRow]
	filter listFilter
	cache  listCache
}

// listFilter is what the list shows. The zero value is everything.
type listFilter struct {
	who  string // label of the only speaker; "" = everybody, and bookmarks
	text string // words that a row must have
}

// listRow is a finished turn, a line of its text, or a bookmark.
type listRow struct {
	at    float64 // seconds
	label string  // of the speaker; "" = a bookmark
	name  string
	lane  int // Index of the speaker
	turn  protocol.Turn
	note  string
	line  int    // of the turn's text, from 1; 0 = the turn itself
	said  string // the line
}

// maxTextLines bounds the lines of a turn, for ids.
const maxTextLines = 1<<12 - 1

// ID grows along the list and stays with the row: a label has one turn at a time.
func (r listRow) ID() int64 {
	order := int64(1)
	if r.label != "" {
		order = int64(r.lane) + 2
	}
	return int64(r.at*1000+0.5)<<20 | order<<12 | int64(r.line)
}

// text is the row for the clipboard.
func (r listRow) text() string {
	if r.label == "" {
		return strings.TrimRight(fmt.Sprintf("%s  bookmark: %s", display.Clock(r.at), r.note), ": ") + "\n"
	}
	said := display.TerminalSafe(r.turn.Text)
	if said != "" {
		said = ": " + said
	}
	return fmt.Sprintf("%s to %s  %s%s\n", display.ClockTenths(r.turn.Start), display.ClockTenths(r.turn.End), r.name, said)
}

// listInterval is how often new turns are added to the rows: those of a fast replay that
// change more often cannot be read.
const listInterval = 200 * time.Millisecond

// listCache keeps the rows: sorting hours of turns on every redraw would cost too
// much.
type listCache struct {
	at       time.Time
	filter   listFilter
	revision int64 // of the annotations
	width    int   // of the lines of text
	timeline protocol.Snapshot
	rows     []listRow
}

// listRows are the rows that the filter leaves, oldest first. Words are searched in all of a recording.
func (m *model) listRows(s *display.Session) []listRow {
	v, state := m.list, s.State
	if v.filter.text != "" {
		state = state.Searched()
	}
	_, revision := m.annotations.Load()
	_, width, _ := m.layout().list()
	width = max(width-textIndent(s), 10)
	if c := &v.cache; c.filter == v.filter && c.revision == revision && c.width == width {
		if age := m.now().Sub(c.at); age >= 0 && age < listInterval || display.EqualTurns(c.timeline, state.Timeline) {
			return c.rows
		}
	}
	who := ""
	if v.filter.who != "" {
		who = s.Annotations.Root(v.filter.who)
	}
	rows := make([]listRow, 0, len(v.cache.rows)+64)
	add := func(r listRow) {
		if who != "" && r.label != who || !display.HasWords(r.name+" "+r.note+" "+r.turn.Text, v.filter.text) {
			return
		}
		rows = append(rows, r)
		if r.turn.Text == "" {
			return
		}
		for i, line := range canvas.WrapWords(display.TerminalSafe(r.turn.Text), width) {
			r.line, r.said = min(i+1, maxTextLines), line
			rows = append(rows, r)
		}
	}
	speakers := s.Speakers
	if v.filter.text != "" && s.Playback != nil {
		speakers = display.NewSession(state, m.annotations).Speakers
	}
	for _, p := range speakers {
		for _, t := range p.Turns {
			add(listRow{at: t.Start, label: p.Label, name: p.Name, lane: p.Index, turn: t})
		}
	}
	for _, k := range s.Bookmarks {
		add(listRow{at: k.At, note: display.TerminalSafe(k.Note)})
	}
	slices.SortFunc(rows, func(a, b listRow) int { return cmp.Compare(a.ID(), b.ID()) })
	v.follow(rows)
	v.cache = listCache{m.now(), v.filter, revision, width, state.Timeline, rows}
	return rows
}

// follow keeps a turn selected that belongs to another speaker in the new rows, or is part of
// a longer one.
func (v *listView) follow(rows []listRow) {
	i := v.Index(v.cache.rows)
	if i < 0 || v.Selected == 0 {
		return
	}
	was, is := v.cache.rows[i], v.Selected
	for _, r := range rows {
		switch {
		case r.ID() == was.ID():
			return
		case r.label != "" && r.line == 0 && r.at <= was.at && r.turn.End >= was.turn.End:
			is = r.ID()
		}
	}
	v.Selected = is
}

// listY is the first row of the list, below its title.
const listY = 2

// list is the position of the list: its left column, width and number of rows.
func (l layout) list() (x, w, h int) {
	w = cmp.Or(l.side, l.w) - 1
	return l.w - 1 - w, w, l.stateY - listY
}

func (m *model) drawList(c *canvas.Canvas, l layout, s *display.Session) {
	v, rows := m.list, m.listRows(s)
	x, w, h := l.list()
	title := "turns and bookmarks"
	if who := v.filter.who; who != "" {
		title = "turns of " + s.Name(who)
	}
	if v.filter.text != "" {
		title += fmt.Sprintf(", %q", v.filter.text)
	}
	turns := 0
	for _, r := range rows {
		if r.line == 0 {
			turns++
		}
	}
	n, style := fmt.Sprint(turns), canvas.Dim
	if p := m.problem(); p.Text != "" && l.side == 0 { // its line is the list's
		title, style = p.Text, p.Style
	}
	c.TextRight(x+w, listY-1, n, canvas.Dim)
	c.Fitted(x+1, listY-1, w-len(n)-2, title, 0, style)
	if len(rows) == 0 {
		text := "no turn has ended yet"
		if v.filter != (listFilter{}) {
			text = "no turn matches " + m.glyphs.Dot + " " + m.keyOf("back") + " shows all"
		}
		c.Text(x+1, listY+h/2, w-1, text, canvas.Dim)
		return
	}
	top, selected := v.Top(rows, h), v.Index(rows)
	for i := range min(h, len(rows)-top) {
		m.drawListRow(c, x, listY+i, w, s, rows[top+i], v.Selected != 0 && top+i == selected)
	}
}

func (m *model) drawListRow(c *canvas.Canvas, x, y, w int, s *display.Session, r listRow, selected bool) {
	end := x + w
	if selected {
		c.Set(x, y, m.glyphs.Selected, canvas.Brand.Bold())
	}
	style, textStyle, shown := canvas.Speaker(r.lane), canvas.Plain, r.name
	if i := s.Index(r.label); i >= 0 {
		shown = s.Speakers[i].Marked(m.glyphs)
		if s.Speakers[i].Muted {
			style, textStyle = canvas.Dim, canvas.Dim
		}
	}
	x += textIndent(s)
	if r.line > 0 {
		c.Text(x, y, end-x, r.said, textStyle)
		return
	}
	timeStyle := canvas.Dim
	if selected {
		timeStyle = canvas.Plain.Bold()
	}
	c.TextRight(x-2, y, display.Clock(r.at), timeStyle)
	if r.label == "" {
		text := strings.TrimSpace(m.glyphs.Bookmark + " " + r.note)
		c.Fitted(x, y, end-x, text, 0, canvas.Brand)
		return
	}
	nameStyle := style
	if selected {
		nameStyle = style.Bold()
	}
	name := min(max((end-x)/2, 10), 24)
	c.Fitted(x, y, name, shown, 3, nameStyle)
	x += name + 1
	length := r.turn.End - r.turn.Start
	c.TextRight(x+7, y, fmt.Sprintf("%.1f s", length), canvas.Dim)
	if x+9 < end {
		c.Text(x+9, y, end-x-9, display.ThinBar(length*latestScale, m.glyphs), style)
	}
}

// textIndent is the column of names and text.
func textIndent(s *display.Session) int {
	if maxTime(s) >= 3600 {
		return 10
	}
	return 8
}

// maxTime bounds the times of turns and bookmarks: a replay has bookmarks that it has not come to,
// and a service that errs may be ahead of the audio.
func maxTime(s *display.Session) float64 { return max(s.Position, s.Length, s.Timeline.Decided) }

func (m *model) openList() { m.list, m.presenter = &listView{}, false }

// listBy selects the turn or bookmark above (-1) or below (1), with as much of its text on the
// screen as there is room for. listPages goes a page: through the text of a turn that is longer.
func (m *model) listBy(by int) {
	rows, to := m.listRows(m.session()), by
	for i := m.list.Index(rows); i+to > 0 && i+to < len(rows)-1 && rows[i+to].line > 0; {
		to += by
	}
	m.moveListRow(to)
	_, _, h := m.layout().list()
	end := m.list.Index(rows) + 1
	first := end
	for end < len(rows) && rows[end].line > 0 {
		end++
	}
	m.list.Line = max(min(m.list.Line, h-1-(end-first)), 0)
}

func (m *model) listPages(by int) {
	_, _, h := m.layout().list()
	m.moveListRow(by * max(h-1, 1))
}

func (m *model) moveListRow(by int) {
	_, _, h := m.layout().list()
	m.list.Move(m.listRows(m.session()), h, by)
}

func (m *model) toNewestTurn() { m.list.Cursor = display.Cursor[listRow]{} }

func (m *model) toOldestTurn() { m.list.ToOldest(m.listRows(m.session())) }

// selectedRow is the selected row, or the newest without a selection.
func (m *model) selectedRow() (listRow, bool) {
	rows := m.listRows(m.session())
	i := m.list.Index(rows)
	if i < 0 {
		m.notify("there is no turn in the list", canvas.Dim)
		return listRow{}, false
	}
	return rows[i], true
}

// chosenRow is the row that is selected, if the list is on the screen.
func (m *model) chosenRow() (r listRow, chosen bool) {
	if m.screen() != listScreen || m.list.Selected == 0 {
		return r, false
	}
	return m.selectedRow()
}

// onlyTurnsOf shows the turns of one lane only, or of everybody again.
func (m *model) onlyTurnsOf(lane int) {
	s := m.session()
	if lane >= len(s.Speakers) {
		return
	}
	f, label := m.list.filter, s.Speakers[lane].Label
	if f.who != "" && s.Annotations.Root(f.who) == label {
		label = ""
	}
	m.filterList(listFilter{label, f.text})
}

func (m *model) askListFilter() {
	m.askFilter(m.list.filter.text, func(words string) { m.filterList(listFilter{m.list.filter.who, words}) })
}

// filterList shows other rows: from the selected one on, or else, in a search in a recording, from
// the position on.
func (m *model) filterList(f listFilter) {
	from := math.Inf(1)
	if r, chosen := m.chosenRow(); chosen {
		from = r.at
	} else if m.state.Playback != nil && f.text != "" {
		from = m.session().Position
	}
	m.list.filter = f
	m.toNewestTurn()
	rows := m.listRows(m.session())
	if i := slices.IndexFunc(rows, func(r listRow) bool { return r.at >= from }); i >= 0 {
		_, _, h := m.layout().list()
		m.list.Selected, m.list.Line = rows[i].ID(), max(h/2, 0) // of a screen that became too small
	}
}

func (m *model) jumpToRow() {
	r, ok := m.selectedRow()
	if !ok {
		return
	}
	if m.layout().side == 0 {
		m.list = nil
	}
	if r.label == "" {
		m.goToBookmark(r.at)
		return
	}
	m.goTo(r.at)
	m.notify(fmt.Sprintf("%s  %s to %s", r.name, display.ClockTenths(r.turn.Start), display.ClockTenths(r.turn.End)), canvas.Speaker(r.lane))
}

// copyRows sends the selected row to the terminal's clipboard; without a
// selection, all rows.
func (m *model) copyRows() {
	rows, instead := m.listRows(m.session()), "export with "+m.keyOf("export")
	if r, ok := m.chosenRow(); ok {
		r.line = 0
		rows = []listRow{r}
	} else {
		instead = "select one, or " + instead
	}
	rows = slices.DeleteFunc(slices.Clone(rows), func(r listRow) bool { return r.line > 0 })
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(r.text())
	}
	m.copyText(b.String(), display.Count(len(rows), "row"), instead)
}

func (m *model) moveTurn() {
	r, ok := m.selectedRow()
	s := m.session()
	switch {
	case !ok:
		return
	case r.label == "":
		m.notify("a bookmark has no speaker", canvas.Dim)
		return
	case s.Playback != nil && r.at > s.Position: // found by a search; who speaks until then is no answer yet
		m.notify("the replay has not come to this turn: "+m.keyOf("jump")+" goes there", canvas.Dim)
		return
	case len(s.Speakers) < 2:
		m.notify("there is no other speaker", canvas.Dim)
		return
	}
	other := s.Speakers[0]
	if other.Label == r.label {
		other = s.Speakers[1]
	}
	m.askLane(laneChoice{
		except: r.label,
		prompt: func(name string) string {
			return "move the turn of " + r.name + " at " + display.Clock(r.at) + " to " + name + "?"
		},
		do: func(to string) {
			if to == r.label {
				m.notify("it is "+r.name+"'s turn already", canvas.Dim)
				return
			}
			if m.update(func(a protocol.Annotations) (protocol.Annotations, error) {
				return a.MoveTurn(r.label, r.turn.Start, r.turn.End, to)
			}) {
				m.notify("the turn at "+display.Clock(r.at)+" is "+m.session().Name(to)+"'s now, "+m.keyOf("undo")+" undoes it", canvas.Plain)
			}
		},
	}, other.Label)
}
