package tui

import "github.com/charmbracelet/x/ansi"

// The screen, from the top:
//
//	hubbub  meeting.wav · notice              ▕█████▍  ▏  0:42 / 1:15   header
//	                                                                    (gap)
//	 ● SPEAKER_00  0:21   ▐█████▋      ▕███▎                    ▐██▒▒   lanes
//	               38%     ┊               ┊               ┊            (second row)
//	                                                                    (gap)
//	   SPEAKER_01  0:09           ▐████▌                            ░░
//	 ...
//	                    ───┬───────────────┬───────────────┬─────────   axis: rule
//	                      0:10            0:20            0:30   0:42   axis: labels
//	                                                                    (gap)
//	 latest    0:38.2   1.9 s  SPEAKER_00                               log
//	                                                                    (gap)
//	● connected  mic → built-in server  421 chunks sent  real time      state
//	q leave  ? help  space freeze  ←→ scroll  +- zoom       60 s across keys
//
// What is in brackets comes and goes with the height. Lanes are 1 to 3 rows
// high with at most one row between them; as many stay free as four lanes
// need, so that the picture does not jump while people begin to speak. The
// timeline is everything right of the gutter. Below minWidth or minHeight
// there is one line of status and nothing else.
const (
	minWidth  = 40
	minHeight = 8
)

// layout says where each region of the screen is.
type layout struct {
	w, h    int
	small   bool // one status line only
	gutter  int  // columns of names and talk times
	name    int  // of them, for the name
	talk    int  // of them, for the talk time
	lanesY  int
	pitch   int // rows from lane to lane
	bar     int // of them, filled by turns
	visible int // lanes that have room
	axisY   int
	axisH   int // 1 or 2
	logY    int
	logH    int // 0 = none
	stateY  int
	keysY   int
}

// timelineX is where time begins.
func (l layout) timelineX() int { return l.gutter }

// cells is how wide the timeline is. One column stays free at the right.
func (l layout) cells() int { return max(l.w-l.gutter-1, 1) }

// newLayout places the regions for a screen of w x h and a session's labels.
func newLayout(w, h int, s State) layout {
	l := layout{w: w, h: h}
	if w < minWidth || h < minHeight {
		l.small = true
		return l
	}
	l.gutterFor(s)
	l.stateY, l.keysY = h-2, h-1

	top, bottom := 1, h-2
	if h >= 11 {
		top++
	}
	if h >= 13 {
		bottom--
	}
	l.axisH = 1
	if h >= 12 {
		l.axisH = 2
	}
	l.lanesY = top
	rows := bottom - top - l.axisH
	n := max(len(s.Timeline.Lanes), 4)
	l.pitch = min(max(rows/n, 1), 4)
	l.bar = max(l.pitch-1, 1)
	l.visible = max(min(rows/l.pitch, n), 1)
	l.axisY = l.lanesY + l.visible*l.pitch
	if l.pitch == 1 && l.axisY < bottom-l.axisH {
		l.axisY = min(l.axisY, bottom-l.axisH)
	}
	// The log takes what is left when that is worth a heading.
	if free := bottom - (l.axisY + l.axisH); free >= 4 {
		l.logY = l.axisY + l.axisH + 1
		l.logH = free - 1
	}
	return l
}

// gutterFor makes room for the longest name, within reason, and the talk
// times. Both are rounded up so that the timeline does not move with every
// new digit.
func (l *layout) gutterFor(s State) {
	l.name = 10
	l.talk = 5
	most := 10 + max(l.w-minWidth, 0)/6
	for _, lane := range s.Timeline.Lanes {
		l.name = max(l.name, min(ansi.StringWidth(Clean(lane.Speaker)), most))
		if lane.Talk >= 3600 {
			l.talk = 7
		}
	}
	// margin, speaking mark, name, talk, margin
	l.gutter = 1 + 2 + l.name + 1 + l.talk + 1
	if l.w >= 60 {
		l.gutter += 2
	}
}
