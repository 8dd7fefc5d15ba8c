package tui

import (
	"fmt"
	"strings"

	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// The last two lines:
//
//	● connected   4 dropped   built-in server   lag 1.0 s   421 chunks sent   state
//	q quit  ? help  space freeze  t turns  r name  ← → scroll         60 s across   keys
//
// The line of keys begins with the newest notice for a while, until the next key; a long one
// covers lines above. While the user types or chooses a lane, it is the prompt (prompt.go).

func (m *model) connSegment() canvas.Segment {
	s, g := m.state, m.glyphs
	glyph, text, style := g.Idle, s.Conn.String(), canvas.Dim
	switch {
	case s.Conn == display.Failed:
		glyph, style = g.Failed, canvas.Bad.Bold()
	case s.Finished():
		glyph, text, style = g.Done, "finished", canvas.Brand.Bold()
	case s.Playback != nil && s.Playback.Paused: // there is no connection
		text, style = "paused", canvas.Warn
	case s.Playback != nil:
		glyph, text, style = g.Live, "playing", canvas.Good
	case s.Conn == display.Open:
		glyph, style = g.Live, canvas.Good
		if s.Watching {
			text = "watching"
		}
		if m.counters.Health.Problem != "" {
			style = canvas.Warn
		}
	case s.Conn == display.Reconnecting:
		style = canvas.Bad.Bold()
	case s.Conn == display.Connecting:
		style = canvas.Warn
	}
	return canvas.NewSegment(glyph+" "+text, style, 0)
}

// problem says in words what is wrong with the microphone, the connection, the service or
// the recording; its text is "" if nothing is.
func (m *model) problem() canvas.Segment {
	h, stopped := m.counters.Health, ""
	if r := m.state.Recording; r != nil {
		stopped = display.TerminalSafe(r.Stopped)
	}
	switch {
	case m.state.InputLost && !m.state.Finished():
		return canvas.NewSegment(m.inputProblem("; "), canvas.Bad.Bold(), 0)
	case m.state.ConnReason != "":
		text := display.TerminalSafe(m.state.ConnReason)
		if stopped != "" && m.state.Conn != display.Failed { // a lost connection may return
			text = stopped + "; " + text
		}
		return canvas.NewSegment(text, m.connSegment().Style, 0)
	case h.Problem != "" && m.state.Connected():
		return canvas.NewSegment(h.Problem+": "+h.Cause, canvas.Warn.Bold(), 0)
	case stopped != "":
		return canvas.NewSegment(stopped, canvas.Bad.Bold(), 0)
	case m.state.InputProblem != "" && !m.state.Finished():
		return canvas.NewSegment(m.inputProblem(" "), canvas.Warn.Bold(), 0)
	}
	return canvas.Segment{}
}

// inputProblem is what is wrong with the microphone, and the key for another one.
func (m *model) inputProblem(separator string) string {
	text := display.TerminalSafe(m.state.InputProblem)
	if m.o.Microphones != nil {
		text += separator + m.keyOf("microphone") + " chooses another"
	}
	return text
}

// drawState draws where the audio goes, and whether it arrives.
func (m *model) drawState(c *canvas.Canvas, l layout) {
	s := m.state
	segments := canvas.Line{m.connSegment()}
	// Losing audio must not be overlooked.
	if s.Dropped > 0 {
		segments.Add(fmt.Sprintf(" %d dropped ", s.Dropped), canvas.Bad.Bold().Reverse(), 0)
	}
	if s.Overflows > 0 {
		segments.Add("device lost audio "+display.Times(s.Overflows), canvas.Warn.Bold(), 1)
	}
	if l.problemY == 0 && (m.list == nil || l.side > 0) { // else the title of the list says it
		segments = append(segments, m.problem())
	}
	if s.Connected() {
		segments = append(segments, display.HealthSegments(m.counters.Health, 2, false)...)
	}
	segments.Add(display.TerminalSafe(s.Server), canvas.Dim, 5)
	if !s.Started.IsZero() {
		segments.Add(display.Clock(m.elapsed.Seconds())+" elapsed", canvas.Dim, 7)
	}
	switch {
	case s.Playback != nil:
		if m.w < 60 { // else it is in the header
			segments.Add("recording of "+display.Clock(s.Length), canvas.Dim, 3)
		}
		segments.Add(display.TerminalSafe(s.SourceNotice), canvas.Dim, 4) // when it was recorded
	case s.Watching:
		segments.Add("no sound, nothing sent from here", canvas.Dim, 3)
	default:
		segments.Add(display.Count(m.counters.ChunksSent, "chunk")+" sent", canvas.Dim, 3)
		if s.Conn == display.Open && s.ChunksSent > 0 {
			segments = append(segments, display.AheadSegment(m.counters.Ahead))
		}
		if s.Dropped == 0 {
			segments.Add("0 dropped", canvas.Dim, 6)
		}
		if s.Stream != "" {
			segments.Add("stream "+display.TerminalSafe(s.Stream), canvas.Dim, 8)
		}
	}
	c.Line(1, l.stateY, l.w-2, segments, 3)
}

// drawLastLine draws the prompt, or for a while the newest notice, then as many
// keys as there is room for.
func (m *model) drawLastLine(c *canvas.Canvas, l layout, s *display.Session) {
	if m.drawPrompt(c, s, l.keysY) {
		return
	}
	scope := m.scopeText(l, m.windowOf(l, s.State))
	x := 1
	if m.notice != "" && !m.stated(l) {
		x += m.drawRows(c, l.keysY, canvas.WrapRows(m.notice, m.w-2, maxTextRows), m.noticeStyle) + 3
		if x+canvas.Width(scope)+1 > l.w {
			return
		}
	}
	end := l.w - 1 - c.TextRight(l.w-1, l.keysY, scope, canvas.Dim) - 2
	if m.presenter && m.wire == nil {
		return
	}
	for _, b := range m.bindings {
		if b.hint == "" || len(b.keys) == 0 || b.on != m.screen() && b.on != anyScreen {
			continue
		}
		key := b.keyText(m.glyphs.ASCII)
		if x+canvas.Width(key)+1+len(b.hint) > end {
			break
		}
		x += c.Text(x, l.keysY, l.w, key, canvas.Plain.Bold()) + 1
		x += c.Text(x, l.keysY, l.w, b.hint, canvas.Dim) + 2
	}
}

// maxTextRows is how many rows a notice or a question has at most.
const maxTextRows = 3

// drawRows draws rows of text up to row y, and returns the number of cells used in the last one.
// Of a row that is too long the end is left, too: it says what to do, or asks.
func (m *model) drawRows(c *canvas.Canvas, y int, rows []string, style canvas.Style) (used int) {
	for i, row := range rows {
		at := y + 1 - len(rows) + i
		c.Fill(0, at, m.w, 1, "", canvas.Plain)
		used = c.Fitted(1, at, m.w-2, row, m.w/3, style)
	}
	return used
}

// stated reports whether the line of the problem has all of what the notice ends with.
func (m *model) stated(l layout) bool {
	p := m.problem().Text
	return l.problemY > 0 && m.wire == nil && !m.presenter && p != "" && strings.HasSuffix(m.notice, p) && canvas.Width(p) <= l.right()-2
}

// scopeText says how much the screen shows.
func (m *model) scopeText(l layout, w window) string {
	switch {
	case m.wire != nil:
		return m.wire.FilterText()
	case m.presenter:
		return m.keyOf("presenter") + " timeline"
	case m.list != nil && l.side == 0: // it covers the timeline
		return ""
	case m.view.showsAll():
		return "whole session"
	}
	return display.Span(w.span) + " across"
}

// drawSmall draws all there is on a terminal that is too small for the screen.
func (m *model) drawSmall(c *canvas.Canvas, s *display.Session) {
	if m.drawPrompt(c, s, m.h-1) {
		return
	}
	segments := canvas.Line{canvas.NewSegment(display.Clock(m.state.Position), canvas.Plain.Bold(), 0)}
	switch {
	case m.state.Conn == display.Failed:
		segments = append(canvas.Line{m.connSegment()}, segments...)
	case m.state.Finished():
		segments.Add("finished", canvas.Brand, 0)
	case m.state.Conn != display.Open:
		segments.Add(m.state.Conn.String(), canvas.Warn, 0)
	}
	if m.frozen != nil || m.still() && !m.state.Finished() {
		segments.Add(map[bool]string{true: "FROZEN", false: "PAUSED"}[m.frozen != nil], canvas.Warn.Bold().Reverse(), 0)
	}
	if m.state.Dropped > 0 {
		segments.Add(fmt.Sprintf("%d dropped", m.state.Dropped), canvas.Bad.Bold(), 0)
	}
	segments.Add(m.notice, m.noticeStyle, 0) // the response to a key
	segments = append(segments, m.problem())
	for _, p := range s.Speakers {
		if s.Speaking(p) && !p.Muted {
			segments.Add(m.glyphs.Speaking+" "+p.Name, p.Style, 4)
		}
	}
	segments.Add(fmt.Sprintf("needs %dx%d", minWidth, minHeight), canvas.Dim, 5)
	c.Line(0, 0, m.w, segments, 2)
}
