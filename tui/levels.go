package tui

import "math"

// mostSamples bounds how many levels of a cell are looked at: a cell can be
// many minutes long.
const mostSamples = 64

// loudness is the RMS over a stretch of the levels, which come ten a second,
// and the largest peak in it. false = there are none.
func loudness(levels []Level, from, to float64) (Level, bool) {
	lo, hi := max(int(math.Floor(from*10+0.5)), 0), min(int(math.Floor(to*10+0.5)), len(levels))
	if lo >= hi {
		if lo >= len(levels) || hi < 0 || to <= 0 {
			return Level{}, false
		}
		hi = min(lo+1, len(levels)) // a cell shorter than a chunk
	}
	power, n, peak := 0.0, 0, float32(0)
	// Steps lie still on the clock, so that the picture does not shimmer.
	step := max((hi-lo)/mostSamples, 1)
	for i := (lo + step - 1) / step * step; i < hi; i += step {
		power += float64(levels[i].RMS) * float64(levels[i].RMS)
		peak = max(peak, levels[i].Peak)
		n++
	}
	return Level{RMS: float32(math.Sqrt(power / float64(max(n, 1)))), Peak: peak}, true
}

// The lane spans less than the meter, in dB of full scale: speech is to use
// its whole height.
const laneFloor, laneTop = -52, -12

// lanePart maps a linear level to 0..1 of the lane's height.
func lanePart(level float32) float64 {
	if !(level > 0) { // NaN as well
		return 0
	}
	return min(max((20*math.Log10(float64(level))-laneFloor)/(laneTop-laneFloor), 0), 1)
}

// drawLevels draws the input's loudness as a lane of its own, on the axis of
// the others. A cell that is not full yet stays empty: the meter in the header
// shows the moment, and a line that changes ten times a second is ten lines
// to a slow network.
func (m *model) drawLevels(c *canvas, l layout, w window, b *board) {
	if l.levelH == 0 {
		return
	}
	bottom := l.levelY + l.levelH - 1
	c.text(3, bottom, l.gutter-4, "input level", style{role: roleDim})
	m.drawGrid(c, l, w, l.levelY, l.levelH)
	full := min(w.column(min(b.Heard, seconds(int64(len(b.Levels))))), w.cells)
	if b.Finished {
		full = min(full+1, w.cells)
	}
	for i := range full {
		level, ok := loudness(b.Levels, w.at(i), w.at(i+1))
		if !ok {
			continue
		}
		st := style{role: roleDim}
		if level.Peak >= clipping {
			st.role = roleBad
		}
		eighths := int(math.Round(lanePart(level.RMS) * float64(8*l.levelH)))
		for j := range l.levelH {
			if n := min(max(eighths-8*j, 0), 8); n > 0 {
				c.set(l.timelineX()+i, bottom-j, m.glyphs.rise[n], st)
			}
		}
	}
}
