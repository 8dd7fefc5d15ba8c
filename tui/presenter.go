package tui

import (
	"fmt"
	"strings"

	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// The presenter view: who is speaking, in letters that can be read from the back
// of a room, and the shares of talk time. It always shows the present.
//
//	           ▄▀▀▄ █▄ █ █▄ █ ▄▀▀▄
//	           █▀▀█ █ ▀█ █ ▀█ █▀▀█            one name for each who is speaking
//
//	████████████████▓▓▓▓▓▓▓▓▓▓▓▓▒▒▒▒▒▒        shares
//	Anna 46%   SPEAKER_01 33%   Ben 21%
//	○ reconnecting                  0:42      problems, position
//	                          f timeline      keys

// maxLargeNames is how many names are drawn at the same time.
const maxLargeNames = 3

func (m *model) drawPresenter(c *canvas.Canvas) {
	s := m.annotate(m.state)
	const footer = 2
	shares := 0 // rows
	if len(s.Speakers) > 0 {
		shares = 3
	}
	top, height := 1, m.h-1-footer-shares
	var speaking []display.Speaker
	for _, p := range s.Speakers {
		if s.Speaking(p) && !p.Muted {
			speaking = append(speaking, p)
		}
	}
	m.drawPresenterState(c, s)
	if len(speaking) == 0 {
		text := "nobody is speaking"
		switch {
		case s.Finished():
			text = "the session is over"
		case !s.Connected():
			text = s.Conn.String()
		case len(s.Speakers) == 0:
			text = "listening for the first voice"
		}
		c.Text((m.w-canvas.Width(text))/2, top+height/2, m.w, text, canvas.Dim)
	}
	more := max(len(speaking)-min(maxLargeNames, height), 0) // each name needs a row
	speaking = speaking[:len(speaking)-more]
	rows := height
	if more > 0 && height > maxLargeNames { // their number has the last one
		rows--
	}
	for i, p := range speaking {
		y := top + rows*i/len(speaking)
		m.drawLargeName(c, p, y, top+rows*(i+1)/len(speaking)-y)
	}
	if more > 0 {
		c.TextRight(m.w-1, top+height-1, fmt.Sprintf("and %d more", more), canvas.Dim)
	}
	if shares > 0 {
		m.drawShares(c, s, m.h-footer-shares)
	}
}

// drawPresenterState draws the position and, only if there are any, the problems
// of the connection.
func (m *model) drawPresenterState(c *canvas.Canvas, s *display.Session) {
	var segments canvas.Line
	if p := s.Playback; !s.Connected() || p != nil && p.Paused {
		segments = append(segments, m.connSegment())
	}
	if s.Dropped > 0 {
		segments.Add(fmt.Sprintf(" %d dropped ", s.Dropped), canvas.Bad.Bold().Reverse(), 0)
	}
	segments = append(segments, m.problem())
	c.TextRight(m.w-1, m.h-2, display.Clock(s.Position), canvas.Dim)
	c.Line(1, m.h-2, m.w-10, segments, 3)
}

// drawLargeName draws a name as large as possible, on one line or two. A name
// that the font does not have is drawn as text between two bars.
func (m *model) drawLargeName(c *canvas.Canvas, p display.Speaker, y, height int) {
	scaleStep := 1
	if m.glyphs.ASCII { // no half cells
		scaleStep = 2
	}
	lines, scale := largestText(p.Name, m.w-4, height-2, scaleStep)
	if scale == 0 {
		middle := y + height/2
		name := canvas.Fit(p.Name, m.w-4, 3, m.glyphs.Ellipsis)
		c.Text((m.w-canvas.Width(name))/2, middle, m.w-2, name, p.Style.Bold())
		if height >= 5 {
			c.Fill(2, middle-2, m.w-4, 1, m.glyphs.Block[canvas.Subcells], p.Style)
			c.Fill(2, middle+2, m.w-4, 1, m.glyphs.Block[canvas.Subcells], p.Style)
		}
		return
	}
	rows := canvas.BigTextRows(scale)
	top := y + max((height-rows*len(lines))/2, 0)
	for i, line := range lines {
		c.BigText((m.w-line.Width()*scale)/2, top+i*rows, scale, line, p.Style)
	}
}

// largestText finds the lines and the scale, a multiple of step, with which a
// name is largest; scale 0 = the font does not have it, or there is no room.
func largestText(name string, w, h, step int) (best []canvas.BigText, scale int) {
	try := func(parts ...string) {
		var lines []canvas.BigText
		width := 1
		for _, part := range parts {
			line, ok := canvas.NewBigText(part)
			if !ok {
				return
			}
			lines = append(lines, line)
			width = max(width, line.Width())
		}
		s := w / width / step * step
		for s > 0 && canvas.BigTextRows(s)*len(lines) > h {
			s -= step
		}
		if s > scale {
			best, scale = lines, s
		}
	}
	try(name)
	for i, r := range name {
		if strings.ContainsRune(" _-", r) {
			try(name[:i], name[i+1:])
		}
	}
	return best, scale
}

// drawShares draws the shares of talk time: a bar, and two rows of names. Names
// without room are on the timeline.
func (m *model) drawShares(c *canvas.Canvas, s *display.Session, y int) {
	width := m.w - 4
	sum, x := 0.0, 0
	var segments canvas.Line
	for _, p := range s.Speakers {
		if p.Muted {
			continue
		}
		sum += p.Share
		end := int(sum*float64(width) + 0.5)
		for ; x < end; x++ {
			// The border between two speakers is visible without colours.
			n := canvas.Subcells
			switch {
			case x != end-1 || end == width:
			case m.glyphs.ASCII: // its seven eighths are a full cell
				n /= 2
			default:
				n--
			}
			c.Set(2+x, y, m.glyphs.Block[n], p.Style)
		}
		segments.Add(fmt.Sprintf("%s %.0f%%", p.Marked(m.glyphs), 100*p.Share), p.Style, 0)
	}
	const gap = 3
	for row := range 2 {
		used, n := 0, 0
		for n < len(segments) && used+canvas.Width(segments[n].Text) <= width {
			used += canvas.Width(segments[n].Text) + gap
			n++
		}
		if n == 0 && len(segments) > 0 { // too long for a row of its own
			n = 1
		}
		c.Line(2, y+1+row, width, segments[:n], gap)
		segments = segments[n:]
	}
}
