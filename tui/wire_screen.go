package tui

import (
	"fmt"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/trace"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// The wire view, from the top. Rows in brackets depend on the height.
//
//	hubbub  wire view  to built-in server  sent 412, 2.6 MB  received 31, 2.4 kB  0:42   header
//	● open 0:41   service on time   lag 1.0 s, most 1.2 s   last reply 1 s ago                verdict
//	pace 1.00   real time   queue 0   0 retransmitted   ping 0.4 ms                      (figures)
//	0 B unacknowledged   RTT 0.1 ms   largest gap 101 ms   longest write 0.2 ms          (socket)
//	gaps, last 60 s  ▁▁▁▁▁▁▁▁▁▁▁▁█▁▁▁▁▁▁▁╳▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁   (gap chart)
//	──────────────────────────────────────────────────────────────────────────────────   (rule)
//	▌11:12:31.123 → chunk     640 kB  100 in 10.0 s, real time, ...                      list
//	 11:12:31.140 ← event       82 B  start SPEAKER_00 at 1.240 s
//	── raw 31 ────────────────────────────────────────────────────────────────────────   (raw)
//	 {"type":"diarization_speaker_start", ...
//	q quit  ? help  w timeline  space pause                                 everything   keys
type wireLayout struct {
	verdictY, figuresY, socketY, chartY, ruleY int // 0 = none
	listY, listH                               int
	rawY, rawH                                 int // rawH 0 = none; its first row is a rule
}

func newWireLayout(w, h int, raw bool) wireLayout {
	l := wireLayout{verdictY: 1}
	y := 2
	row := func(at *int, least int) {
		if h >= least {
			*at = y
			y++
		}
	}
	row(&l.figuresY, 10)
	row(&l.socketY, 13)
	row(&l.chartY, 17)
	row(&l.ruleY, 12)
	l.listY, l.listH = y, h-1-y
	if raw {
		l.rawH = l.listH * 3 / 5
		if l.listH < 10 {
			l.rawH = l.listH - 1
		}
		l.listH -= l.rawH
		l.rawY = l.listY + l.listH
	}
	return l
}

func (m *model) drawWire(c *canvas.Canvas) {
	w := m.wire
	l := newWireLayout(m.w, m.h, w.raw)
	m.drawWireHeader(c)
	verdict, figures := m.wireVerdict(), m.wireFigures()
	if l.figuresY > 0 {
		c.Segments(1, l.figuresY, m.w-2, figures, 3, m.glyphs)
	} else {
		verdict = append(verdict, figures...)
	}
	c.Segments(1, l.verdictY, m.w-2, verdict, 3, m.glyphs)
	if l.socketY > 0 {
		c.Segments(1, l.socketY, m.w-2, m.wireSocket(), 3, m.glyphs)
	}
	if l.chartY > 0 {
		m.drawGapChart(c, l.chartY)
	}
	if l.ruleY > 0 {
		m.drawTitledRule(c, l.ruleY, "")
	}
	rows := w.visibleRows()
	m.drawWireList(c, l, rows)
	if l.rawH > 0 {
		m.drawRaw(c, l, rows)
	}
}

func (m *model) drawTitledRule(c *canvas.Canvas, y int, title string) {
	for x := range m.w {
		c.Set(x, y, m.glyphs.Rule, canvas.Faint)
	}
	if title != "" {
		c.Text(2, y, m.w-4, " "+title+" ", canvas.Dim)
	}
}

func (m *model) drawWireHeader(c *canvas.Canvas) {
	s := m.wire.status
	x := m.w - 1
	x -= c.TextRight(x, 0, display.Clock(m.state.Position), canvas.Plain.Bold()) + 2
	if m.wire.paused {
		text := "PAUSED"
		if m.wire.missed > 0 && m.w >= 60 {
			text += fmt.Sprintf(" +%d", m.wire.missed)
		}
		x -= c.TextRight(x, 0, " "+text+" ", canvas.Warn.Bold().Reverse()) + 2
	}
	used := 1 + c.Text(1, 0, x-1, "hubbub", canvas.Brand.Bold()) + 2
	segments := []canvas.Segment{
		canvas.NewSegment("wire view", canvas.Plain, 0),
		canvas.NewSegment("to "+display.Clean(m.state.Server), canvas.Dim, 4),
		canvas.NewSegment(fmt.Sprintf("sent %d, %s", s.Messages[0], display.Bytes(s.Bytes[0])), canvas.Dim, 2),
		canvas.NewSegment(fmt.Sprintf("received %d, %s", s.Messages[1], display.Bytes(s.Bytes[1])), canvas.Dim, 3),
	}
	c.Segments(used, 0, x-used, segments, 2, m.glyphs)
}

// warnIf is the style of a figure that is a warning, or not.
func warnIf(warning bool) canvas.Style {
	if warning {
		return canvas.Warn.Bold()
	}
	return canvas.Dim
}

// wireVerdict says whether the stream is healthy.
func (m *model) wireVerdict() []canvas.Segment {
	s := m.wire.status
	stream := m.wireStream()
	h, open := s.Health(m.wire.at, m.state.Latency)
	if !open {
		return []canvas.Segment{stream}
	}
	if h.Problem != "" {
		stream.Rank = 3
		return append([]canvas.Segment{stream, canvas.NewSegment(h.Problem+": "+h.Cause, canvas.Warn.Bold(), 0)}, display.HealthSegments(h, 4, true)...)
	}
	return append([]canvas.Segment{stream, canvas.NewSegment("service on time", canvas.Good, 1)}, display.HealthSegments(h, 1, true)...)
}

// wireFigures are the figures of the audio and of the pings.
func (m *model) wireFigures() []canvas.Segment {
	s := m.wire.status
	var segments []canvas.Segment
	add := func(text string, style canvas.Style, rank int) {
		segments = append(segments, canvas.NewSegment(text, style, rank))
	}
	if s.Pace > 0 && !s.Over {
		add(fmt.Sprintf("pace %.2f", s.Pace), warnIf(s.Pace < 0.97), 3)
	}
	if s.Chunks > 0 && !s.Over {
		segments = append(segments, display.AheadSegment(s.Ahead))
	}
	if s.Waiting >= 0 && !s.Over {
		add(fmt.Sprintf("queue %d", s.Waiting), warnIf(s.Waiting > 2), 4)
	}
	if s.Socket != nil {
		add(fmt.Sprintf("%d retransmitted", s.Socket.Retransmits), warnIf(s.Socket.Retransmits > 0), 5)
	}
	if waiting := m.wire.at.Sub(s.Unanswered); !s.Unanswered.IsZero() && waiting > trace.MaxPong && !s.Over {
		add("no pong for "+display.Duration(waiting), canvas.Warn.Bold(), 2)
	} else if s.Ping > 0 {
		add("ping "+display.Millis(s.Ping), warnIf(s.Ping > trace.MaxPong), 6)
	}
	if s.Faults > 0 {
		add(display.Count(s.Faults, "fault"), canvas.Bad.Bold(), 1)
	}
	return segments
}

// wireStream is the state of the newest stream.
func (m *model) wireStream() canvas.Segment {
	s, g := m.wire.status, m.glyphs
	switch {
	case s.Over && s.End.Fault:
		text := s.End.Type
		if s.End.Code != 0 {
			text = fmt.Sprintf("%s, %d %s", text, s.End.Code, protocol.CodeMeaning(s.End.Code))
		}
		return canvas.NewSegment(g.Failed+" "+text, canvas.Bad.Bold(), 0)
	case s.Over:
		return canvas.NewSegment(fmt.Sprintf("%s closed, %d %s", g.Done, s.End.Code, protocol.CodeMeaning(s.End.Code)), canvas.Brand.Bold(), 0)
	case s.Opened.IsZero():
		return canvas.NewSegment(g.Idle+" no stream yet", canvas.Warn, 0)
	}
	open := display.Clock(m.wire.at.Sub(s.Opened).Seconds())
	if s.Streams > 1 { // the clock of the session continues, that of a stream begins anew
		return canvas.NewSegment(fmt.Sprintf("%s stream %d open %s, session %s", g.Live, s.Streams, open, display.Clock(m.state.Position)), canvas.Good, 0)
	}
	return canvas.NewSegment(g.Live+" open "+open, canvas.Good, 0)
}

// wireSocket is the state of the socket, and the gaps between chunks.
func (m *model) wireSocket() []canvas.Segment {
	s := m.wire.status
	var segments []canvas.Segment
	add := func(text string, style canvas.Style, rank int) {
		segments = append(segments, canvas.NewSegment(text, style, rank))
	}
	if t := s.Socket; t != nil {
		unsent := ""
		if t.Unsent > 0 {
			unsent = fmt.Sprintf(" (%s not sent)", display.Bytes(int64(t.Unsent)))
		}
		add(fmt.Sprintf("%s unacknowledged%s", display.Bytes(int64(t.Unacked)), unsent), warnIf(t.Unsent > 0), 1)
		add("RTT "+display.Millis(t.RTT), canvas.Dim, 4)
		if t.Lost > 0 {
			add(fmt.Sprintf("%d lost", t.Lost), warnIf(true), 2)
		}
		if t.Unread > 0 {
			add(display.Bytes(int64(t.Unread))+" unread", canvas.Dim, 5)
		}
	}
	if s.MaxGap > 0 {
		add("largest gap "+display.Millis(s.MaxGap), warnIf(s.MaxGap > trace.StallGap), 2)
		add("longest write "+display.Millis(s.MaxTook), warnIf(s.MaxTook > trace.StallGap), 6)
	}
	if len(segments) == 0 {
		add("nothing was sent yet", canvas.Dim, 0)
	}
	return segments
}

// chartSpan is how much of the past the gap chart shows.
const chartSpan = 60 * time.Second

// drawGapChart draws the longest time without a chunk for each moment of the
// last minute: 100 ms is a low bar, a second and more is full. Where chunks were
// dropped or a stream was lost, there is a mark instead. The cells have fixed
// positions on the clock.
func (m *model) drawGapChart(c *canvas.Canvas, y int) {
	const title = "gaps, last 60 s"
	c.Text(1, y, m.w-2, title, canvas.Dim)
	x := len(title) + 3
	cells := m.w - 1 - x
	if cells < 10 {
		return
	}
	cell := chartSpan / time.Duration(cells)
	newest := m.wire.at.UnixNano() / int64(cell)
	column := func(t time.Time) int { return cells - 1 - int(newest-t.UnixNano()/int64(cell)) }
	longest, lost := make([]time.Duration, cells), make([]bool, cells)
	chunks := m.wire.snapshot.Chunks
	for i := chunks.Len() - 1; i >= 0; i-- {
		r := chunks.At(i)
		gap := max(r.Gap, r.Took)
		to := column(r.At)
		if to < 0 {
			break
		}
		from := to
		if gap > trace.StallGap { // all of the time without a chunk
			from = column(r.At.Add(-gap))
		}
		for k := max(from, 0); k <= min(to, cells-1); k++ {
			longest[k] = max(longest[k], gap, 1)
		}
		if r.Dropped > 0 && to < cells {
			lost[to] = true
		}
	}
	entries := m.wire.snapshot.Entries
	for i := entries.Len() - 1; i >= 0; i-- {
		e := entries.At(i)
		k := column(e.At)
		if k < 0 {
			break
		}
		if e.Kind == trace.KindEnd && e.Fault && k < cells {
			lost[k] = true
		}
	}
	for i, gap := range longest {
		style := canvas.Good
		if gap > trace.StallGap {
			style = canvas.Warn.Bold()
		}
		switch n := min(max(int(gap*canvas.Subcells/time.Second), 1), canvas.Subcells); {
		case lost[i]:
			c.Set(x+i, y, m.glyphs.Gap, canvas.Bad.Bold())
		case gap > 0:
			c.Set(x+i, y, m.glyphs.Rise[n], style)
		}
	}
}

func (m *model) drawWireList(c *canvas.Canvas, l wireLayout, rows []wireRow) {
	w := m.wire
	if len(rows) == 0 {
		text := "nothing yet"
		if w.snapshot.Entries.Len() > 0 {
			text = "nothing matches " + w.filterText() + " " + m.glyphs.Dot + " " + m.keyOf("back") + " shows everything"
		}
		c.Text(2, l.listY+l.listH/2, m.w-4, text, canvas.Dim)
		return
	}
	top, selected := w.top(rows, l.listH), w.index(rows)
	for i := range min(l.listH, len(rows)-top) {
		m.drawWireRow(c, l.listY+i, rows[top+i], top+i == selected && (w.Selected != 0 || w.raw))
	}
	if top == 0 && w.snapshot.Removed > 0 {
		c.TextRight(m.w-1, l.listY, fmt.Sprintf(" %d older ones were removed", w.snapshot.Removed), canvas.Dim)
	}
}

// drawWireRow draws time, direction, kind, size and text of a row.
func (m *model) drawWireRow(c *canvas.Canvas, y int, r wireRow, selected bool) {
	text, style := rowText(r)
	if selected {
		c.Set(0, y, m.glyphs.Selected, canvas.Brand.Bold())
		style = style.Bold()
	}
	at := r.record.At.Local()
	x := 1
	if m.w >= 60 {
		x += c.Text(x, y, 12, at.Format("15:04:05.000"), canvas.Dim) + 1
	} else {
		x += c.Text(x, y, 7, at.Format("04:05.0"), canvas.Dim) + 1
	}
	switch r.record.Dir {
	case trace.Outgoing:
		c.Text(x, y, 1, m.glyphs.Right, canvas.Dim)
	case trace.Incoming:
		c.Text(x, y, 1, m.glyphs.Left, canvas.Brand)
	}
	x += 2
	c.Text(x, y, 9, string(r.record.Kind), style)
	x += 10
	if m.w >= 70 {
		if r.record.Dir != "" {
			size := int64(r.record.Size)
			if r.run != nil {
				size *= int64(r.run.Chunks)
			}
			c.TextRight(x+7, y, display.Bytes(size), canvas.Dim)
		}
		x += 9
	}
	c.Text(x, y, m.w-1-x, canvas.Fit(text, m.w-1-x, 0, m.glyphs.Ellipsis), style)
}

// drawRaw draws the selected record in full.
func (m *model) drawRaw(c *canvas.Canvas, l wireLayout, rows []wireRow) {
	w := m.wire
	i := w.index(rows)
	if i < 0 {
		m.drawTitledRule(c, l.rawY, "raw")
		return
	}
	lines := rawLines(rows[i], m.w-2)
	height := l.rawH - 1
	w.rawTop = min(max(w.rawTop, 0), max(len(lines)-height, 0))
	title := fmt.Sprintf("raw %d", rows[i].record.Number)
	if len(lines) > height {
		title += fmt.Sprintf(", lines %d to %d of %d", w.rawTop+1, min(w.rawTop+height, len(lines)), len(lines))
		if m.w >= 60 {
			title += ", pgup pgdn"
		}
	}
	m.drawTitledRule(c, l.rawY, title)
	for k := range min(height, len(lines)-w.rawTop) {
		line := lines[w.rawTop+k]
		c.Text(1, l.rawY+1+k, m.w-2, line.text, line.style)
	}
}
