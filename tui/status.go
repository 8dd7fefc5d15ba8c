package tui

import (
	"fmt"
	"strconv"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

// linkSegment is how the connection stands, in one glyph and a word.
func (m *model) linkSegment() segment {
	s, g := m.state, m.glyphs
	text := s.Link.String()
	if s.LinkReason != "" {
		text += ": " + Clean(s.LinkReason)
	}
	switch {
	case s.Link == Failed:
		return segment{g.failed + " " + text, style{role: roleBad, attr: bold}, 0}
	case s.Finished:
		return segment{g.done + " finished " + g.dot + " q to leave", style{role: roleBrand, attr: bold}, 0}
	case s.Link == Open:
		if s.Watching {
			text = "watching"
		}
		return segment{g.live + " " + text, style{role: roleGood}, 0}
	case s.Link == Reconnecting:
		return segment{g.idle + " " + text, style{role: roleBad, attr: bold}, 0}
	case s.Link == Connecting:
		return segment{g.idle + " " + text, style{role: roleWarn}, 0}
	}
	return segment{g.idle + " " + text, style{role: roleDim}, 0}
}

// onTime is how close to the wall clock the sending may be to be called real
// time.
const onTime = 300 * time.Millisecond

func aheadSegment(d time.Duration) segment {
	switch {
	case d < -onTime:
		return segment{short(-d) + " behind", style{role: roleWarn}, 2}
	case d > onTime:
		return segment{short(d) + " ahead", style{role: roleDim}, 2}
	}
	return segment{"real time", style{role: roleDim}, 2}
}

// short is a duration for people: tenths of a second below a minute.
func short(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return clock(d.Seconds())
}

// drawStatus draws the line of state: where the sound goes, and whether it
// arrives.
func (m *model) drawStatus(c *canvas, l layout) {
	s, dim := m.state, style{role: roleDim}
	segs := []segment{m.linkSegment()}
	// Losing audio is the one thing here that must not be overlooked.
	if s.Dropped > 0 {
		segs = append(segs, segment{fmt.Sprintf(" %d dropped ", s.Dropped), style{role: roleBad, attr: bold | reverse}, 0})
	}
	if s.Overflows > 0 {
		segs = append(segs, segment{count(s.Overflows, "overflow"), style{role: roleWarn, attr: bold}, 1})
	}
	way := segment{Clean(s.Server), dim, 5}
	if s.Source != "" && l.w >= 110 && !s.Watching {
		way.text = Clean(s.Source) + " " + m.glyphs.arrow + " " + way.text
	}
	if s.Server != "" {
		segs = append(segs, way)
	}
	if !s.Started.IsZero() {
		segs = append(segs, segment{clock(m.elapsed.Seconds()) + " elapsed", dim, 7})
	}
	if s.Watching {
		segs = append(segs, segment{"no sound, nothing sent from here", dim, 3})
		m.drawSegments(c, 1, l.stateY, l.w-2, segs, 3)
		return
	}
	segs = append(segs, segment{count(m.calm.ChunksSent, "chunk") + " sent", dim, 3})
	if s.Link == Open && s.ChunksSent > 0 {
		segs = append(segs, aheadSegment(m.calm.Ahead))
	}
	if s.Dropped == 0 {
		segs = append(segs, segment{"0 dropped", dim, 6})
	}
	if s.Stream != "" {
		segs = append(segs, segment{"stream " + Clean(s.Stream), dim, 8})
	}
	m.drawSegments(c, 1, l.stateY, l.w-2, segs, 3)
}

// drawBottom draws the last line: a question, for a while the newest message,
// or what the keys do.
func (m *model) drawBottom(c *canvas, l layout) {
	b := m.board()
	switch {
	case m.entry != nil:
		m.drawEntry(c, l.keysY)
		return
	case m.pick != nil:
		m.drawPick(c, b, l.keysY)
		return
	}
	faint := style{role: roleDim}
	w := m.view.window(l.cells(), b.Heard)
	across := spanText(w.span) + " across"
	switch {
	case m.wire != nil:
		across = m.wire.shown()
	case m.stage:
		across = "f timeline"
	case m.view.chosen && m.view.zoom >= wholeSession:
		across = "whole session"
	}
	if m.notice != "" {
		room := l.w - 2
		if textWidth(m.notice)+textWidth(across)+2 <= room {
			c.right(l.w-1, l.keysY, across, faint)
		}
		c.text(1, l.keysY, room, fit(m.notice, room, 0, m.glyphs.ellipsis), style{role: m.noticeRole})
		return
	}
	x := l.w - 1 - c.right(l.w-1, l.keysY, across, faint) - 2
	if m.stage && m.wire == nil {
		return
	}
	at := 1
	for _, b := range m.bindings {
		if b.hint == "" || b.on != m.here() && b.on != anywhere {
			continue
		}
		key := b.label(m.glyphs.ascii)
		if at+textWidth(key)+1+len(b.hint) > x {
			break
		}
		at += c.text(at, l.keysY, l.w, key, style{attr: bold}) + 1
		at += c.text(at, l.keysY, l.w, b.hint, faint) + 2
	}
}

// spanText is a span as people say it.
func spanText(seconds float64) string {
	switch s := int(seconds); {
	case s < 120 || s%60 != 0 && s < 600:
		return fmt.Sprintf("%d s", s)
	case s < 7200:
		return fmt.Sprintf("%d min", s/60)
	default:
		return fmt.Sprintf("%d h", s/3600)
	}
}

// drawTiny is the whole display of a terminal that is too small for more.
func (m *model) drawTiny(c *canvas, b *board) {
	if m.entry != nil {
		m.drawEntry(c, 0)
		return
	}
	if m.pick != nil {
		m.drawPick(c, b, 0)
		return
	}
	g := m.glyphs
	segs := []segment{{text: clock(m.state.Heard), style: style{attr: bold}}}
	switch {
	case m.state.Link == Failed:
		segs = append([]segment{m.linkSegment()}, segs...)
	case m.state.Finished:
		segs = append(segs, segment{"finished", style{role: roleBrand}, 2})
	case m.state.Link != Open:
		segs = append(segs, segment{m.state.Link.String(), style{role: roleWarn}, 2})
	}
	if m.frozen != nil {
		segs = append(segs, segment{"FROZEN", style{role: roleWarn, attr: bold | reverse}, 1})
	}
	if m.state.Dropped > 0 {
		segs = append(segs, segment{fmt.Sprintf("%d dropped", m.state.Dropped), style{role: roleBad, attr: bold}, 3})
	}
	for i, lane := range b.Timeline.Lanes {
		if p := b.people[i]; lane.Open && !p.muted {
			segs = append(segs, segment{g.speaking + " " + p.name, style{role: p.role}, 4})
		}
	}
	if m.notice != "" {
		segs = append(segs, segment{m.notice, style{role: m.noticeRole}, 5})
	}
	m.drawSegments(c, 0, 0, m.w, segs, 2)
}
