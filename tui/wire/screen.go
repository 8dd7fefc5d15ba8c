package wire

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
//	● open 0:41   service on time   lag 1.0 s, max 1.2 s   last reply 1 s ago                 verdict
//	pace 1.00   real time   queue 0   0 retransmitted   ping 0.4 ms                      (figures)
//	0 B unacknowledged   RTT 0.1 ms   largest gap 101 ms   longest write 0.2 ms          (socket)
//	gaps, last 60 s  ▁▁▁▁▁▁▁▁▁▁▁▁█▁▁▁▁▁▁▁╳▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁   (gap chart)
//	──────────────────────────────────────────────────────────────────────────────────   (rule)
//	▌11:12:31.123 → chunk     640 kB  100 in 10.0 s, real time, ...                      list
//	 11:12:31.140 ← event       82 B  start SPEAKER_00 at 1.240 s
//	── raw 31 ────────────────────────────────────────────────────────────────────────   (raw)
//	 {"type":"diarization_speaker_start", ...
//	q quit  ? help  w timeline  space pause                                 everything   keys
type layout struct {
	verdictY, figuresY, socketY, chartY, ruleY int // 0 = none
	listY, listH                               int
	rawY, rawH                                 int // rawH 0 = none; its first row is a rule
}

func newLayout(h int, raw bool) layout {
	l := layout{verdictY: 1}
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

// Screen is what the view needs to know of the screen around it.
type Screen struct {
	W, H     int // cells
	Glyphs   *canvas.Glyphs
	Position float64 // seconds
	Server   string
	Latency  time.Duration               // of the service
	Key      func(command string) string // the key of a command, as it is shown
}

// painter draws the view on a screen.
type painter struct {
	*View
	Screen
}

// Draw draws the view on the whole screen, but for its last line.
func (v *View) Draw(c *canvas.Canvas, s Screen) {
	p, l := painter{v, s}, newLayout(s.H, v.raw)
	p.drawHeader(c)
	verdict, figures := p.verdict(), p.figures()
	if l.figuresY > 0 {
		c.Line(1, l.figuresY, p.W-2, figures, 3)
	} else {
		verdict = append(verdict, figures...)
	}
	c.Line(1, l.verdictY, p.W-2, verdict, 3)
	if l.socketY > 0 {
		c.Line(1, l.socketY, p.W-2, p.socket(), 3)
	}
	if l.chartY > 0 {
		p.drawGapChart(c, l.chartY)
	}
	if l.ruleY > 0 {
		c.Fill(0, l.ruleY, p.W, 1, p.Glyphs.Rule, canvas.Faint)
	}
	rows := p.visibleRows()
	p.drawList(c, l, rows)
	if l.rawH > 0 {
		p.drawRaw(c, l, rows)
	}
}

func (p painter) drawTitledRule(c *canvas.Canvas, y int, title string) {
	c.Fill(0, y, p.W, 1, p.Glyphs.Rule, canvas.Faint)
	c.Text(2, y, p.W-4, " "+title+" ", canvas.Dim)
}

func (p painter) drawHeader(c *canvas.Canvas) {
	x := p.W - 1
	x -= c.TextRight(x, 0, display.Clock(p.Position), canvas.Plain.Bold()) + 2
	if p.paused {
		text := "PAUSED"
		if p.missed > 0 && p.W >= 60 {
			text += fmt.Sprintf(" +%d", p.missed)
		}
		x -= c.TextRight(x, 0, " "+text+" ", canvas.Warn.Bold().Reverse()) + 2
	}
	used := 1 + c.Text(1, 0, x-1, "hubbub", canvas.Brand.Bold()) + 2
	segments := canvas.Line{
		canvas.NewSegment("wire view", canvas.Plain, 0),
		canvas.NewSegment("to "+display.TerminalSafe(p.Server), canvas.Dim, 4),
	}
	c.Line(used, 0, x-used, append(segments, p.traffic()...), 2)
}

// traffic is what was sent and received.
func (p painter) traffic() canvas.Line {
	s := p.status
	return canvas.Line{
		canvas.NewSegment(fmt.Sprintf("sent %d, %s", s.Messages[0], display.Bytes(s.Bytes[0])), canvas.Dim, 2),
		canvas.NewSegment(fmt.Sprintf("received %d, %s", s.Messages[1], display.Bytes(s.Bytes[1])), canvas.Dim, 3),
	}
}

func warnIf(warning bool) canvas.Style {
	if warning {
		return canvas.Warn.Bold()
	}
	return canvas.Dim
}

// verdict says whether the stream is healthy.
func (p painter) verdict() canvas.Line {
	s := p.status
	stream := p.stream()
	h := s.Health(p.at, p.Latency)
	if h == (trace.Health{}) {
		return canvas.Line{stream}
	}
	if h.Problem != "" {
		stream.Rank = 3
		return append(canvas.Line{stream, canvas.NewSegment(h.Problem+": "+h.Cause, canvas.Warn.Bold(), 0)}, display.HealthSegments(h, 4, true)...)
	}
	return append(canvas.Line{stream, canvas.NewSegment("service on time", canvas.Good, 1)}, display.HealthSegments(h, 1, true)...)
}

// figures are the figures of the audio and of the pings.
func (p painter) figures() canvas.Line {
	s := p.status
	var segments canvas.Line
	if s.Pace > 0 && !s.Over {
		segments.Add(fmt.Sprintf("pace %.2f", s.Pace), warnIf(s.Pace < 0.97), 3)
	}
	if s.Chunks > 0 && !s.Over {
		segments = append(segments, display.AheadSegment(s.Ahead))
	}
	if s.Waiting >= 0 && !s.Over {
		segments.Add(fmt.Sprintf("queue %d", s.Waiting), warnIf(s.Waiting > 2), 4)
	}
	if s.Socket != nil {
		segments.Add(fmt.Sprintf("%d retransmitted", s.Socket.Retransmits), warnIf(s.Socket.Retransmits > 0), 5)
	}
	if waiting := p.at.Sub(s.Unanswered); !s.Unanswered.IsZero() && waiting > trace.MaxPong && !s.Over {
		segments.Add("no pong for "+display.Duration(waiting), canvas.Warn.Bold(), 2)
	} else if s.Ping > 0 {
		segments.Add("ping "+display.Millis(s.Ping), warnIf(s.Ping > trace.MaxPong), 6)
	}
	if s.Faults > 0 {
		segments.Add(display.Count(s.Faults, "fault"), canvas.Bad.Bold(), 1)
	}
	return segments
}

func (p painter) stream() canvas.Segment {
	s, g := p.status, p.Glyphs
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
	open := display.Clock(p.at.Sub(s.Opened).Seconds())
	if s.Streams > 1 { // the clock of the session continues, that of a stream begins anew
		return canvas.NewSegment(fmt.Sprintf("%s stream %d open %s, session %s", g.Live, s.Streams, open, display.Clock(p.Position)), canvas.Good, 0)
	}
	return canvas.NewSegment(g.Live+" open "+open, canvas.Good, 0)
}

// socket is the state of the socket, and the gaps between chunks.
func (p painter) socket() canvas.Line {
	s := p.status
	var segments canvas.Line
	if t := s.Socket; t != nil {
		unsent := ""
		if t.Unsent > 0 {
			unsent = fmt.Sprintf(" (%s not sent)", display.Bytes(int64(t.Unsent)))
		}
		segments.Add(fmt.Sprintf("%s unacknowledged%s", display.Bytes(int64(t.Unacked)), unsent), warnIf(t.Unsent > 0), 1)
		segments.Add("RTT "+display.Millis(t.RTT), canvas.Dim, 4)
		if t.Lost > 0 {
			segments.Add(fmt.Sprintf("%d lost", t.Lost), warnIf(true), 2)
		}
		if t.Unread > 0 {
			segments.Add(display.Bytes(int64(t.Unread))+" unread", canvas.Dim, 5)
		}
	}
	if s.MaxGap > 0 {
		segments.Add("largest gap "+display.Millis(s.MaxGap), warnIf(s.MaxGap > trace.StallGap), 2)
		segments.Add("longest write "+display.Millis(s.MaxTook), warnIf(s.MaxTook > trace.StallGap), 6)
	}
	if len(segments) == 0 {
		segments.Add("nothing was sent yet", canvas.Dim, 0)
	}
	return segments
}

// chartSpan is how much of the past the gap chart shows.
const chartSpan = 60 * time.Second

// drawGapChart draws the longest time without a chunk for each moment of the
// last minute: 100 ms is a low bar, a second and more is full. Where chunks were
// dropped or a stream was lost, there is a mark instead. The cells have fixed
// positions on the clock.
func (p painter) drawGapChart(c *canvas.Canvas, y int) {
	const title = "gaps, last 60 s"
	c.Text(1, y, p.W-2, title, canvas.Dim)
	x := len(title) + 3
	longest, lost := p.gaps(p.W - 1 - x)
	for i, gap := range longest {
		style := canvas.Good
		if gap > trace.StallGap {
			style = canvas.Warn.Bold()
		}
		switch n := min(max(int(gap*canvas.Subcells/time.Second), 1), canvas.Subcells); {
		case lost[i]:
			c.Set(x+i, y, p.Glyphs.Gap, canvas.Bad.Bold())
		case gap > 0:
			c.Set(x+i, y, p.Glyphs.Rise[n], style)
		}
	}
}

// gaps are the longest time without a chunk in each cell of the chart, and whether chunks
// or a stream were lost in it.
func (p painter) gaps(cells int) (longest []time.Duration, lost []bool) {
	cell := chartSpan / time.Duration(cells)
	newest := p.at.UnixNano() / int64(cell)
	column := func(t time.Time) int { return cells - 1 - int(newest-t.UnixNano()/int64(cell)) }
	longest, lost = make([]time.Duration, cells), make([]bool, cells)
	chunks := p.snapshot.Chunks
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
	entries := p.snapshot.Entries
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
	return longest, lost
}

func (p painter) drawList(c *canvas.Canvas, l layout, rows []row) {
	if len(rows) == 0 {
		text := "nothing yet"
		if p.snapshot.Entries.Len() > 0 {
			text = "nothing matches " + p.FilterText() + " " + p.Glyphs.Dot + " " + p.Key("back") + " shows everything"
		}
		c.Text(2, l.listY+l.listH/2, p.W-4, text, canvas.Dim)
		return
	}
	top, selected := p.Top(rows, l.listH), p.Index(rows)
	for i := range min(l.listH, len(rows)-top) {
		p.drawRow(c, l.listY+i, rows[top+i], top+i == selected && (p.Selected != 0 || p.raw))
	}
	if top == 0 && p.snapshot.Removed > 0 {
		c.TextRight(p.W-1, l.listY, fmt.Sprintf(" %d older ones were removed", p.snapshot.Removed), canvas.Dim)
	}
}

func (p painter) drawRow(c *canvas.Canvas, y int, r row, selected bool) {
	style := rowStyle(r)
	if selected {
		c.Set(0, y, p.Glyphs.Selected, canvas.Brand.Bold())
		style = style.Bold()
	}
	at := r.record.At.Local()
	x := 1
	if p.W >= 60 {
		x += c.Text(x, y, 12, at.Format("15:04:05.000"), canvas.Dim) + 1
	} else {
		x += c.Text(x, y, 7, at.Format("04:05.0"), canvas.Dim) + 1
	}
	switch r.record.Dir {
	case trace.Outgoing:
		c.Text(x, y, 1, p.Glyphs.Right, canvas.Dim)
	case trace.Incoming:
		c.Text(x, y, 1, p.Glyphs.Left, canvas.Brand)
	}
	x += 2
	c.Text(x, y, 9, string(r.record.Kind), style)
	x += 10
	if p.W >= 70 {
		if r.record.Dir != "" {
			c.TextRight(x+7, y, display.Bytes(int64(r.record.Size*max(r.asRun().Chunks, 1))), canvas.Dim)
		}
		x += 9
	}
	width, tail := p.W-1-x, 0
	if r.record.Kind != trace.KindChunk && width > 40 { // the end has the lag, or says what to do
		tail = width / 3
	}
	c.Fitted(x, y, width, rowText(r), tail, style)
}

func (p painter) drawRaw(c *canvas.Canvas, l layout, rows []row) {
	i := p.Index(rows)
	if i < 0 {
		p.drawTitledRule(c, l.rawY, "raw")
		return
	}
	lines := rawLines(rows[i], p.W-2, p.Key("unfold"))
	height := l.rawH - 1
	p.rawTop = min(max(p.rawTop, 0), max(len(lines)-height, 0))
	title := fmt.Sprintf("raw %d", rows[i].record.Number)
	if len(lines) > height {
		title += fmt.Sprintf(", lines %d to %d of %d", p.rawTop+1, min(p.rawTop+height, len(lines)), len(lines))
		if p.W >= 60 {
			title += ", pgup pgdn"
		}
	}
	p.drawTitledRule(c, l.rawY, title)
	for k := range min(height, len(lines)-p.rawTop) {
		line := lines[p.rawTop+k]
		c.Text(1, l.rawY+1+k, p.W-2, line.text, line.style)
	}
}
