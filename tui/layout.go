package tui

// The screen, from the top:
//
//	hubbub  meeting.wav · notice              ▕█████▍  ▏  0:42 / 1:15   header
//	                                                                    (gap)
//	 ● SPEAKER_00  0:21   ▐█████▋      ▕███▎                    ▐██▒▒   lanes
//	               38%     ┊               ┊               ┊            (second row)
//	                                                                    (gap)
//	   SPEAKER_01  0:09           ▐████▌                            ░░
//	 ...
//	   input level       ▁▂▄▅▃▂▁▄▅▆▅▃▁▂▄▅▄▃▂▁▁▂▄▅▆▅▄▃▂▁▂▄▅▃▂▁▂▃▄▂       (level)
//	                    ───┬────━━━────────┬────◆──────────┬─────────   axis: rule, overlap, bookmarks
//	                      0:10            0:20            0:30   0:42   axis: labels
//	                                                                    (gap)
//	   session          ▂▅▇▆▃▁▂▅▇▆▃▁▂▅▇┣▆▃▁▂▅▇▆▃▁┫                      (minimap)
//	                                                                    (gap)
//	 latest    0:38.2   1.9 s  SPEAKER_00                               log
//	                                                                    (gap)
//	● connected  mic → built-in server  421 chunks sent  real time      state
//	q leave  ? help  space freeze  ←→ scroll  +- zoom       60 s across keys
//
// What is in brackets comes and goes with the height. Lanes are 1 to 3 rows
// high, more on a screen of more than 40, with at most one row between them; as many stay free as four lanes
// need, so that the picture does not jump while people begin to speak. Minimap
// and level come where that takes no lane its second row. The timeline is everything right of the gutter. Below minWidth or minHeight
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
	levelY  int
	levelH  int // 0 = none
	axisY   int
	axisH   int // 1 or 2
	mapY    int
	mapH    int // 0 = none
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
	keep := min(rows/n, 2) // rows for each lane that nothing else may take
	if h >= 16 && (rows-1)/n >= keep {
		l.mapH = 1
		rows--
	}
	for len(s.Levels) > 0 && h >= 16 && (rows-1)/n >= keep && l.levelH < max(h/17, 1) {
		l.levelH++
		rows--
	}
	l.pitch = min(max(rows/n, 1), max(4, h/9))
	l.bar = max(l.pitch-1, 1)
	l.visible = max(min(rows/l.pitch, n), 1)
	l.levelY = l.lanesY + l.visible*l.pitch
	l.axisY = l.levelY + l.levelH
	l.mapY = l.axisY + l.axisH
	free := bottom - (l.mapY + l.mapH)
	if l.mapH > 0 && free > 0 {
		l.mapY++
		free--
	}
	// The log takes what is left when that is worth a heading.
	if free >= 4 {
		l.logY = l.mapY + l.mapH + 1
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
		l.name = max(l.name, min(textWidth(Clean(lane.Speaker)), most))
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
