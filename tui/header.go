package tui

import (
	"fmt"
	"math"
	"strings"

	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// The header, one line:
//
//	hubbub  meeting.wav  notice  REC 0:40 1.3 MB  FROZEN -0:12   ▕█████▍  ▏  0:42 / 1:15
//	        source               recording        badge          meter       position, length

// drawHeader draws position, meter and badge from the right; product and
// source in the space on the left, and the notice about it that has no line of its own.
func (m *model) drawHeader(c *canvas.Canvas, l layout, w window) {
	x := m.w - 1
	position := display.Clock(m.state.Position)
	if m.state.Length > 0 && m.w >= 60 {
		length := display.Clock(m.state.Length)
		x -= c.TextRight(x, 0, " / "+length, canvas.Dim)
		x -= c.TextRight(x, 0, strings.Repeat(" ", max(len(length)-len(position), 0))+position, canvas.Plain.Bold())
	} else {
		x -= c.TextRight(x, 0, position, canvas.Plain.Bold())
	}
	x -= 2

	if len(m.state.Levels) > 0 { // else there is no audio to measure
		cells := 6
		if m.w >= 72 {
			cells = 14
		}
		x -= cells + 2
		level := display.Level{RMS: m.state.Level.RMS, Peak: m.peak}
		if m.state.Finished() { // there is no input any more
			level = display.Level{}
		}
		m.drawLevel(c, x, 0, cells, level)
		x -= 2
	}

	if badge, style := m.badge(w); badge != "" {
		x -= c.TextRight(x, 0, " "+badge+" ", style) + 2
	}
	if r := m.state.Recording; r != nil && m.w >= 60 {
		text, style := m.recordingText(r)
		x -= c.TextRight(x, 0, text, style) + 2
	}
	used := 1 + c.Text(1, 0, x-1, "hubbub", canvas.Brand.Bold()) + 2
	source := display.TerminalSafe(m.state.Source)
	if m.state.Watching {
		source = "watching " + source
	}
	if strings.ContainsAny(source, `/\`) { // the end of a path says more than its beginning
		source = canvas.Fit(source, x-used, x-used-canvas.Width(m.glyphs.Ellipsis), m.glyphs.Ellipsis)
	}
	segments := canvas.Line{canvas.NewSegment(source, canvas.Plain, 0)}
	if n := display.TerminalSafe(m.state.SourceNotice); n != "" && m.state.Playback == nil && !m.noticeBelow(l) {
		segments.Add(n, canvas.Warn, 0)
	}
	if m.state.Conn == display.Reconnecting {
		segments = canvas.Line{canvas.NewSegment(retryText(m.state), canvas.Bad.Bold(), 0)}
	}
	c.Line(used, 0, x-used, segments, 2)
}

// noticeBelow reports whether the notice about the source is below the header, where there is
// room for what to do, unless a problem is. That of a session that is replayed or watched is short.
func (m *model) noticeBelow(l layout) bool {
	return l.problemY > 0 && (m.list == nil || l.side > 0) && m.state.Playback == nil && !m.state.Watching && m.problem().Text == ""
}

// retryText says that there is no connection, and when the next attempt is.
func retryText(s display.State) string {
	switch r := s.Retry; {
	case r == nil || r.Try == 0:
		return "no connection"
	case r.In == 0:
		return fmt.Sprintf("no connection, try %d", r.Try)
	default:
		return fmt.Sprintf("no connection, try %d in %d s", r.Try, r.In)
	}
}

// recordingText is REC with the length and the size, and the free space if there is room; after
// the end, what was recorded.
func (m *model) recordingText(r *display.Recording) (string, canvas.Style) {
	style, size := canvas.Bad.Bold(), fmt.Sprintf("%s %s", display.Clock(r.Length), display.Bytes(r.Bytes))
	switch {
	case r.Stopped != "":
		return " REC stopped at " + display.Clock(r.Length) + " ", style.Reverse()
	case m.state.Finished():
		return "recorded " + size, canvas.Dim
	case m.w >= 100 && r.Free > 0:
		size += ", " + display.Bytes(r.Free) + " free"
	}
	return "REC " + size, style
}

// badge says that the timeline does not show the present, or is not played at
// its own speed.
func (m *model) badge(w window) (string, canvas.Style) {
	behind := m.state.Position - w.right
	ago := ""
	if behind >= 1 && m.w >= 60 {
		ago = " -" + display.Clock(behind)
	}
	if m.still() && m.cursor >= 0 {
		ago = " " + display.Clock(m.cursor)
		if m.w >= 60 {
			ago = " " + display.ClockTenths(m.cursor)
		}
	}
	switch p := m.state.Playback; {
	case p != nil && p.Paused && m.frozen == nil && (w.follow && !m.state.Finished() || m.cursor >= 0):
		return "PAUSED" + ago, canvas.Warn.Bold().Reverse()
	case m.frozen != nil:
		return "FROZEN" + ago, canvas.Warn.Bold().Reverse()
	case !w.follow:
		return "BACK" + ago, canvas.Brand.Bold().Reverse()
	case p != nil && p.Speed != 1 && p.Speed > 0:
		return fmt.Sprintf("%gx", p.Speed), canvas.Brand.Bold()
	}
	return "", canvas.Plain
}

// drawLevel draws a level in a frame, cells+2 wide: a bar for the RMS, and a mark at
// the highest peak of the last moment. A peak close to full scale is a warning.
func (m *model) drawLevel(c *canvas.Canvas, x, y, cells int, l display.Level) {
	style := canvas.Good
	switch {
	case l.Peak >= display.Clipping:
		style = canvas.Bad
	case l.Peak >= 0.7:
		style = canvas.Warn
	}
	g := m.glyphs
	c.Set(x, y, g.MeterLeft, canvas.Faint)
	c.Set(x+cells+1, y, g.MeterRight, canvas.Faint)
	x++
	eighths := int(math.Round(display.ScaleDecibels(l.RMS, display.MeterFloor, 0) * float64(cells*canvas.Subcells)))
	for i := range cells {
		n := min(max(eighths-i*canvas.Subcells, 0), canvas.Subcells)
		if n > 0 {
			c.Set(x+i, y, g.Block[n], style)
		}
	}
	if p := min(int(display.ScaleDecibels(l.Peak, display.MeterFloor, 0)*float64(cells)), cells-1); p > 0 && eighths <= p*canvas.Subcells {
		c.Set(x+p, y, g.Vertical, style)
	}
}
