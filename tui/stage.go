package tui

import (
	"fmt"
	"strings"
)

// The presenter's view: who is speaking, readable from the last row of a hall,
// and how the talk time is shared. Nothing else moves.
//
//	           ▄▀▀▄ █▄ █ █▄ █ ▄▀▀▄
//	           █▀▀█ █ ▀█ █ ▀█ █▀▀█            one block for each who speaks
//
//	████████████████▓▓▓▓▓▓▓▓▓▓▓▓▒▒▒▒▒▒        shares
//	Anna 46%   SPEAKER_01 33%   Ben 21%

// stageMost is how many names stand large beside each other in time.
const stageMost = 3

func (m *model) drawStage(c *canvas) {
	b := m.annotate(m.state) // always the present
	footer := 2              // state and keys
	shares := 0
	if m.h >= 8 && len(b.people) > 0 {
		shares = 3
	}
	top, height := 1, m.h-1-footer-shares
	var speaking []person
	for i, l := range b.Timeline.Lanes {
		if l.Open && !b.people[i].muted && !b.Finished {
			speaking = append(speaking, b.people[i])
		}
	}
	m.drawStageState(c, b)
	if len(speaking) == 0 {
		text := "nobody is speaking"
		switch {
		case b.Finished:
			text = "the session is over"
		case len(b.people) == 0:
			text = "listening for the first voice"
		}
		c.text((m.w-textWidth(text))/2, top+height/2, m.w, text, style{role: roleDim})
	}
	more := max(len(speaking)-stageMost, 0)
	speaking = speaking[:len(speaking)-more]
	for i, p := range speaking {
		from := top + height*i/len(speaking)
		m.drawStageName(c, p, from, top+height*(i+1)/len(speaking)-from)
	}
	if more > 0 {
		c.right(m.w-1, top+height-1, fmt.Sprintf("and %d more", more), style{role: roleDim})
	}
	if shares > 0 {
		m.drawStageShares(c, b, m.h-footer-shares)
	}
}

// drawStageState says on the line above the keys what a speaker on a stage has
// to know at once, and nothing otherwise.
func (m *model) drawStageState(c *canvas, b *board) {
	var segs []segment
	if b.Link != Open && b.Link != Draining || b.Finished {
		segs = append(segs, m.linkSegment())
	}
	if b.Dropped > 0 {
		segs = append(segs, segment{fmt.Sprintf(" %d dropped ", b.Dropped), style{role: roleBad, attr: bold | reverse}, 0})
	}
	c.right(m.w-1, m.h-2, clock(b.Heard), style{role: roleDim})
	m.drawSegments(c, 1, m.h-2, m.w-10, segs, 3)
}

// drawStageName draws a name as large as it goes: on one line or on two, in
// block letters where the font has them; else as it is, between two bars.
func (m *model) drawStageName(c *canvas, p person, y, height int) {
	st := style{role: p.role, attr: bold}
	step := 1
	if m.glyphs.ascii { // no half cells
		step = 2
	}
	lines, scale := bigLines(p.name, m.w-4, height-2, step)
	if scale == 0 {
		mid := y + height/2
		name := fit(p.name, m.w-4, 3, m.glyphs.ellipsis)
		c.text((m.w-textWidth(name))/2, mid, m.w-2, name, st)
		for j := range height {
			if d := j - height/2; height >= 5 && (d == -2 || d == 2) {
				for i := 2; i < m.w-2; i++ {
					c.set(i, y+j, m.glyphs.part[8], style{role: p.role})
				}
			}
		}
		return
	}
	rows := bigRows(scale)
	at := y + max((height-rows*len(lines))/2, 0)
	for i, word := range lines {
		m.drawBig(c, (m.w-points(word)*scale)/2, at+i*rows, scale, word, style{role: p.role})
	}
}

// bigLines finds the lines and the scale, a multiple of step, with which a
// name is largest; scale 0 = it cannot be drawn in big letters.
func bigLines(name string, w, h, step int) (best [][]bigLetter, scale int) {
	try := func(parts ...string) {
		var lines [][]bigLetter
		wide := 1
		for _, p := range parts {
			word, ok := bigWord(p)
			if !ok {
				return
			}
			lines = append(lines, word)
			wide = max(wide, points(word))
		}
		s := w / wide / step * step
		for s > 0 && bigRows(s)*len(lines) > h {
			s -= step
		}
		if s > scale {
			best, scale = lines, s
		}
	}
	try(name)
	for i, r := range name {
		if strings.ContainsRune(" _-", r) && i > 0 && i+1 < len(name) {
			try(name[:i], name[i+1:])
		}
	}
	return best, scale
}

// drawStageShares draws the shares of talk time: a bar, and the names.
func (m *model) drawStageShares(c *canvas, b *board, y int) {
	width := m.w - 4
	sum, x := 0.0, 0
	var segs []segment
	for _, p := range b.people {
		if p.muted {
			continue
		}
		sum += p.share
		end := int(sum*float64(width) + 0.5)
		for ; x < end; x++ {
			// A seam between two people who are told apart by colour only
			// elsewhere.
			glyph := m.glyphs.part[8]
			if x == end-1 && end < width {
				glyph = m.glyphs.part[7]
			}
			c.set(2+x, y, glyph, style{role: p.role})
		}
		segs = append(segs, segment{fmt.Sprintf("%s %.0f%%", p.name, 100*p.share), style{role: p.role}, 0})
	}
	// Two rows of names; who has no room there is seen on the timeline.
	for row := range 2 {
		used, n := 0, 0
		for n < len(segs) && used+textWidth(segs[n].text) <= width {
			used += textWidth(segs[n].text) + 3
			n++
		}
		if n == 0 && len(segs) > 0 { // too long for a row of its own
			n = 1
		}
		m.drawSegments(c, 2, y+1+row, width, segs[:n], 3)
		segs = segs[n:]
	}
}
