package tui

import (
	"fmt"
	"time"

	"hubbub/protocol"
)

// The wire view, from the top; what is in brackets comes with the height:
//
//	hubbub  the wire            412 out 2.6 MB  31 in 2.4 kB   0:42   header
//	● connected 0:41   pace 1.00   real time   queue 0   ping 0.4 ms  state
//	 TCP round trip 0.1 ms  0 sent again  0 B on the way  gaps to ..  (socket)
//	 last 60 s  ▁▁▁▁▁▁▁▁▁▁▁▁█▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁  (strip)
//	 ───────────────────────────────────────────────────────────────  (rule)
//	▌11:12:31.123 → chunk     640 kB  100 chunks in 10.0 s, ...       list
//	 11:12:31.140 ← event       82 B  start SPEAKER_00 at 1.240 s
//	 ──── raw ───────────────────────────────────────────────────────  (raw)
//	 {"type":"diarization_speaker_start", ...
//	q leave  ? help  w timeline  space pause            everything    keys
type wireLayout struct {
	stateY, socketY, stripY, ruleY int // 0 = none
	listY, listH                   int
	rawY, rawH                     int // rawH 0 = none; its first row is a rule
}

func newWireLayout(w, h int, raw bool) wireLayout {
	l := wireLayout{stateY: 1}
	y := 2
	if h >= 12 {
		l.socketY = y
		y++
	}
	if h >= 16 {
		l.stripY = y
		y++
	}
	if h >= 11 {
		l.ruleY = y
		y++
	}
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

func (m *model) drawWire(c *canvas) {
	w := m.wire
	l := newWireLayout(m.w, m.h, w.raw)
	m.drawWireHeader(c)
	m.drawSegments(c, 1, l.stateY, m.w-2, m.wireState(), 3)
	if l.socketY > 0 {
		m.drawSegments(c, 1, l.socketY, m.w-2, m.wireSocket(), 3)
	}
	if l.stripY > 0 {
		m.drawWireStrip(c, l.stripY)
	}
	if l.ruleY > 0 {
		m.drawRule(c, l.ruleY, "")
	}
	rows := m.wireRows()
	m.drawWireList(c, l, rows)
	if l.rawH > 0 {
		m.drawWireRaw(c, l, rows)
	}
}

func (m *model) drawRule(c *canvas, y int, title string) {
	for x := range m.w {
		c.set(x, y, m.glyphs.rule, style{role: roleFaint})
	}
	if title != "" {
		c.text(2, y, m.w-4, " "+title+" ", style{role: roleDim})
	}
}

func (m *model) drawWireHeader(c *canvas) {
	s := m.wire.calm
	x := m.w - 1
	x -= c.right(x, 0, clock(m.state.Heard), style{attr: bold}) + 2
	if m.wire.paused {
		text := "PAUSED"
		if m.wire.missed > 0 && m.w >= 60 {
			text += fmt.Sprintf(" +%d", m.wire.missed)
		}
		x -= c.right(x, 0, " "+text+" ", style{role: roleWarn, attr: bold | reverse}) + 2
	}
	used := 1 + c.text(1, 0, x-1, "hubbub", style{role: roleBrand, attr: bold}) + 2
	segs := []segment{
		{"the wire", style{}, 0},
		{"to " + Clean(m.state.Server), style{role: roleDim}, 4},
		{fmt.Sprintf("sent %d, %s", s.Messages[0], bytesText(s.Bytes[0])), style{role: roleDim}, 2},
		{fmt.Sprintf("received %d, %s", s.Messages[1], bytesText(s.Bytes[1])), style{role: roleDim}, 3},
	}
	if s.Streams > 1 {
		segs = append(segs, segment{fmt.Sprintf("stream %d", s.Streams), style{role: roleWarn}, 1})
	}
	m.drawSegments(c, used, 0, x-used, segs, 2)
}

// What is worth a look: a pong after longer than latePong, an event that comes
// later than lateEvent after its audio, a second of audio that is not on its
// way yet.
const (
	latePong  = 2 * time.Second
	lateEvent = 5 * time.Second
	backlog   = 10 * protocol.ChunkBytes
)

// wireState says at a glance whether the stream does well.
func (m *model) wireState() []segment {
	s, dim := m.wire.calm, style{role: roleDim}
	segs := []segment{m.wireLink()}
	if s.Pace > 0 && !s.Over {
		st := dim
		if s.Pace < 0.97 {
			st = style{role: roleWarn, attr: bold}
		}
		segs = append(segs, segment{fmt.Sprintf("pace %.2f", s.Pace), st, 3})
	}
	if s.Chunks > 0 && !s.Over {
		segs = append(segs, aheadSegment(s.Ahead))
	}
	if s.Queue >= 0 && !s.Over {
		st := dim
		if s.Queue > 2 {
			st = style{role: roleWarn, attr: bold}
		}
		segs = append(segs, segment{fmt.Sprintf("queue %d", s.Queue), st, 4})
	}
	if s.Socket != nil {
		st := dim
		if s.Socket.Retransmits > 0 {
			st = style{role: roleWarn, attr: bold}
		}
		segs = append(segs, segment{fmt.Sprintf("%d sent again", s.Socket.Retransmits), st, 5})
	}
	if late := m.wire.at.Sub(s.Unanswered); !s.Unanswered.IsZero() && late > latePong && !s.Over {
		segs = append(segs, segment{"no pong for " + short(late), style{role: roleWarn, attr: bold}, 2})
	} else if s.Ping > 0 {
		st := dim
		if s.Ping > latePong {
			st = style{role: roleWarn, attr: bold}
		}
		segs = append(segs, segment{"ping " + millisText(s.Ping), st, 6})
	}
	if s.Faults > 0 {
		segs = append(segs, segment{count(s.Faults, "fault"), style{role: roleBad, attr: bold}, 1})
	}
	return segs
}

// wireLink is how the newest stream stands.
func (m *model) wireLink() segment {
	s, g := m.wire.calm, m.glyphs
	switch {
	case s.Over && s.End.Fault:
		text := s.End.Type
		if s.End.Code != 0 {
			text = fmt.Sprintf("%s, %d %s", text, s.End.Code, protocol.CodeMeaning(s.End.Code))
		}
		return segment{g.failed + " " + text, style{role: roleBad, attr: bold}, 0}
	case s.Over:
		return segment{g.done + " " + fmt.Sprintf("closed, %d %s", s.End.Code, protocol.CodeMeaning(s.End.Code)), style{role: roleBrand, attr: bold}, 0}
	case s.Opened.IsZero():
		return segment{g.idle + " no stream yet", style{role: roleWarn}, 0}
	}
	return segment{g.live + " open " + clock(m.wire.at.Sub(s.Opened).Seconds()), style{role: roleGood}, 0}
}

// wireSocket is what lies below the pace: the socket, the gaps, the lag.
func (m *model) wireSocket() []segment {
	s, dim := m.wire.calm, style{role: roleDim}
	var segs []segment
	warn := func(bad bool) style {
		if bad {
			return style{role: roleWarn, attr: bold}
		}
		return dim
	}
	if t := s.Socket; t != nil {
		unsent := ""
		if t.Unsent > 0 {
			unsent = fmt.Sprintf(" (%s not sent)", bytesText(int64(t.Unsent)))
		}
		segs = append(segs,
			segment{fmt.Sprintf("%s on the way%s", bytesText(int64(t.Unacked)), unsent), warn(t.Unsent > 0), 1},
			segment{"TCP trip " + millisText(t.RTT), dim, 4})
		if t.Lost > 0 {
			segs = append(segs, segment{fmt.Sprintf("%d lost", t.Lost), warn(true), 2})
		}
		if t.Unread > 0 {
			segs = append(segs, segment{bytesText(int64(t.Unread)) + " unread", dim, 5})
		}
	}
	if s.MaxGap > 0 {
		segs = append(segs,
			segment{"gaps to " + millisText(s.MaxGap), warn(s.MaxGap > protocol.WireStall), 2},
			segment{"taken in " + millisText(s.MaxTook), warn(s.MaxTook > protocol.WireStall), 6})
	}
	if s.Lag >= 0 {
		segs = append(segs, segment{fmt.Sprintf("lag %s, most %s", millisText(s.Lag), millisText(s.MaxLag)), warn(s.Lag > lateEvent), 3})
	}
	if len(segs) == 0 {
		segs = append(segs, segment{"nothing was sent yet", dim, 0})
	}
	return segs
}

// stripSpan is how much of the past the strip shows.
const stripSpan = 60 * time.Second

// drawWireStrip draws for each moment of the last minute the longest time
// without a chunk; 100 ms is a low line, a second and more is full. The cells
// lie still on the clock.
func (m *model) drawWireStrip(c *canvas, y int) {
	const title = "gaps, last 60 s"
	c.text(1, y, m.w-2, title, style{role: roleDim})
	x := len(title) + 3
	cells := m.w - 1 - x
	if cells < 10 {
		return
	}
	cell := stripSpan / time.Duration(cells)
	newest := m.wire.at.UnixNano() / int64(cell)
	worst := make([]time.Duration, cells)
	column := func(t time.Time) int { return cells - 1 - int(newest-t.UnixNano()/int64(cell)) }
	chunks := m.wire.snap.Chunks
	for i := chunks.Len() - 1; i >= 0; i-- {
		r := chunks.At(i)
		gap := max(r.Gap, r.Took)
		to := column(r.At)
		if to < 0 {
			break
		}
		from := to
		if gap > protocol.WireStall { // all of the time without a chunk
			from = column(r.At.Add(-gap))
		}
		for k := max(from, 0); k <= min(to, cells-1); k++ {
			worst[k] = max(worst[k], gap, 1)
		}
	}
	for i, gap := range worst {
		if gap == 0 {
			continue
		}
		st := style{role: roleGood}
		if gap > protocol.WireStall {
			st = style{role: roleWarn, attr: bold}
		}
		n := min(max(int(gap*8/time.Second), 1), 8)
		c.set(x+i, y, m.glyphs.rise[n], st)
	}
}

func (m *model) drawWireList(c *canvas, l wireLayout, rows []wireRow) {
	w := m.wire
	if len(rows) == 0 {
		text := "nothing yet"
		if w.snap.Entries.Len() > 0 {
			text = "nothing matches " + w.shown() + " " + m.glyphs.dot + " esc shows everything"
		}
		c.text(2, l.listY+l.listH/2, m.w-4, text, style{role: roleDim})
		return
	}
	top, chosen := w.top(rows, l.listH), w.index(rows)
	for i := range min(l.listH, len(rows)-top) {
		m.drawWireRow(c, l.listY+i, rows[top+i], top+i == chosen && (w.selected != 0 || w.raw))
	}
	if top == 0 && w.snap.Forgotten > 0 {
		c.right(m.w-1, l.listY, fmt.Sprintf(" %d older ones are forgotten", w.snap.Forgotten), style{role: roleDim})
	}
}

func (m *model) drawWireRow(c *canvas, y int, r wireRow, selected bool) {
	text, look := wireText(r)
	st := style{role: look}
	if selected {
		c.set(0, y, m.glyphs.selected, style{role: roleBrand, attr: bold})
		st.attr |= bold
	}
	at := r.record.At.Local()
	x := 1
	if m.w >= 60 {
		x += c.text(x, y, 12, at.Format("15:04:05.000"), style{role: roleDim}) + 1
	} else {
		x += c.text(x, y, 7, at.Format("04:05.0"), style{role: roleDim}) + 1
	}
	arrow := map[protocol.Direction]string{protocol.Outgoing: m.glyphs.right, protocol.Incoming: m.glyphs.left}[r.record.Dir]
	way := style{role: roleDim}
	if r.record.Dir == protocol.Incoming {
		way = style{role: roleBrand}
	}
	if arrow != "" {
		c.text(x, y, 1, arrow, way)
	}
	x += 2
	c.text(x, y, 9, string(r.record.Kind), st)
	x += 10
	if m.w >= 70 {
		if r.record.Dir != "" {
			size := int64(r.record.Size)
			if r.run != nil {
				size *= int64(r.run.Chunks)
			}
			c.right(x+7, y, bytesText(size), style{role: roleDim})
		}
		x += 9
	}
	c.text(x, y, m.w-1-x, fit(text, m.w-1-x, 0, m.glyphs.ellipsis), st)
}

// drawWireRaw draws the selected message as it is.
func (m *model) drawWireRaw(c *canvas, l wireLayout, rows []wireRow) {
	w := m.wire
	i := w.index(rows)
	if i < 0 {
		m.drawRule(c, l.rawY, "raw")
		return
	}
	lines := m.rawLines(rows[i], m.w-2)
	height := l.rawH - 1
	w.rawTop = min(max(w.rawTop, 0), max(len(lines)-height, 0))
	title := fmt.Sprintf("raw %d", rows[i].record.Number)
	if len(lines) > height {
		title += fmt.Sprintf(", lines %d to %d of %d", w.rawTop+1, min(w.rawTop+height, len(lines)), len(lines))
		if m.w >= 60 {
			title += ", pgup pgdn"
		}
	}
	m.drawRule(c, l.rawY, title)
	for k := range min(height, len(lines)-w.rawTop) {
		line := lines[w.rawTop+k]
		c.text(1, l.rawY+1+k, m.w-2, line.text, style{role: line.role})
	}
}
