package tui

import (
	"fmt"
	"math"
	"strings"
)

// drawHeader draws product, source and notice from the left; badge, meter and
// clock from the right.
func (m *model) drawHeader(c *canvas, w window) {
	x := m.w - 1
	at := clock(m.state.Heard)
	if m.state.Length > 0 && m.w >= 60 {
		total := clock(m.state.Length)
		x -= c.right(x, 0, " / "+total, style{role: roleDim})
		x -= c.right(x, 0, strings.Repeat(" ", max(len(total)-len(at), 0))+at, style{attr: bold})
	} else {
		x -= c.right(x, 0, at, style{attr: bold})
	}
	x -= 2

	if !m.state.Watching { // else there is no sound to measure
		cells := 6
		if m.w >= 72 {
			cells = 14
		}
		x -= cells + 2
		m.drawMeter(c, x, 0, cells)
		x -= 2
	}

	if badge, st := m.badge(w); badge != "" {
		x -= c.right(x, 0, " "+badge+" ", st) + 2
	}
	used := c.text(1, 0, x-1, "hubbub", style{role: roleBrand, attr: bold})
	source := Clean(m.state.Source)
	if m.state.Watching {
		source = "watching " + source
	}
	segs := []segment{{text: source, style: style{}, keep: 0}}
	if n := Clean(m.state.SourceNotice); n != "" && n != Clean(m.state.Source) {
		segs = append(segs, segment{text: n, style: style{role: roleWarn}, keep: 1})
	}
	if m.state.Link == Reconnecting {
		segs = []segment{{text: retryText(m.state), style: style{role: roleBad, attr: bold}, keep: 0}}
	}
	m.drawSegments(c, 1+used+2, 0, x-used-3, segs, 2)
}

// retryText says that there is no connection, and when the next try is.
func retryText(s State) string {
	switch r := s.Retry; {
	case r == nil || r.Try == 0:
		return "no connection"
	case r.In == 0:
		return fmt.Sprintf("no connection, try %d", r.Try)
	default:
		return fmt.Sprintf("no connection, try %d in %d s", r.Try, r.In)
	}
}

// badge says when the timeline is not the present.
func (m *model) badge(w window) (string, style) {
	behind := m.state.Heard - w.heard
	if m.view.back && !w.follow {
		behind = m.state.Heard - m.view.anchor
	}
	ago := ""
	if behind >= 1 && m.w >= 60 {
		ago = " -" + clock(behind)
	}
	switch {
	case m.state.Playback != nil && m.state.Playback.Paused && m.frozen == nil && w.follow:
		return "PAUSED", style{role: roleWarn, attr: bold | reverse}
	case m.frozen != nil:
		return "FROZEN" + ago, style{role: roleWarn, attr: bold | reverse}
	case !w.follow:
		return "BACK" + ago, style{role: roleBrand, attr: bold | reverse}
	}
	if p := m.state.Playback; p != nil && p.Speed != 1 && p.Speed > 0 {
		return fmt.Sprintf("%gx", p.Speed), style{role: roleBrand, attr: bold}
	}
	return "", style{}
}

// clipping is the peak at which the input is too loud to be recorded well.
const clipping = 0.98

// meterFloor is the loudness, in dB of full scale, at which the meter begins.
const meterFloor = -60

// meterPart maps a linear level to 0..1 of the meter.
func meterPart(level float32) float64 {
	if !(level > 0) { // NaN as well
		return 0
	}
	return min(max(1-20*math.Log10(float64(level))/meterFloor, 0), 1)
}

// drawMeter draws the input's loudness: a bar for its power, a mark where the
// peak was of the last moment. A peak close to full scale is a warning.
func (m *model) drawMeter(c *canvas, x, y, cells int) {
	rms, peak := m.state.Level.RMS, m.peak
	if m.state.Finished { // nothing comes in any more
		rms, peak = 0, 0
	}
	st := style{role: roleGood}
	switch {
	case peak >= clipping:
		st.role = roleBad
	case peak >= 0.7:
		st.role = roleWarn
	}
	g := m.glyphs
	c.set(x, y, g.meterLeft, style{role: roleFaint})
	c.set(x+cells+1, y, g.meterRight, style{role: roleFaint})
	x++
	eighths := int(math.Round(meterPart(rms) * float64(cells*subcells)))
	for i := range cells {
		n := min(max(eighths-i*subcells, 0), subcells)
		if n > 0 {
			c.set(x+i, y, g.part[n], st)
		}
	}
	if p := min(int(meterPart(peak)*float64(cells)), cells-1); p > 0 && eighths <= p*subcells {
		c.set(x+p, y, g.boxV, st)
	}
}
