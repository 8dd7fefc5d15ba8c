package tui

import (
	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// The timeline screen, from the top. Rows in brackets depend on the height.
//
//	hubbub  meeting.wav                       ▕█████▍  ▏  0:42 / 1:15   header.go
//	events arrive 14 s late: the service is overloaded or ...           (problem or notice, or a gap)
//	 ● SPEAKER_00  0:21   ▐█████▋      ▕███▎                    ▐██▒▒   timeline.go: lanes
//	               38%     ┊               ┊               ┊            (second row of a lane)
//	                                                                    (gap)
//	   SPEAKER_01  0:09           ▐████▌                            ░░
//	 ...
//	   input level       ▁▂▄▅▃▂▁▄▅▆▅▃▁▂▄▅▄▃▂▁▁▂▄▅▆▅▄▃▂▁▂▄▅▃▂▁▂▃▄▂       (timeline.go: input level)
//	                    ───┬────━━━────────┬────◆──────────┬─────────   timeline.go: axis
//	                      0:10            0:20            0:30   0:42
//	                                                                    (gap)
//	   session          ▂▅▇▆▃▁▂▅▇▆▃▁▂▅▇┣▆▃▁▂▅▇▆▃▁┫                      (minimap.go)
//	                                                                    (gap)
//	 latest turns                                                       (latest.go)
//	                                                                    (gap)
//	● connected  built-in server  421 chunks sent  real time            status.go: state
//	q quit  ? help  space freeze  t turns  r name           60 s across status.go: keys, or prompt.go
//
// The list of turns (list.go) is beside it, or in its place. The help (help.go)
// covers it; the presenter view (presenter.go) and the wire
// view (package wire) replace all but the last line.
//
// A lane is 1 to 3 rows high, more on a screen of more than 40 rows or beside the list,
// with at most one row between lanes. Space for four lanes is always reserved, so that
// the picture does not move while the first people begin to speak. Minimap and
// input level appear where they take no lane its second row. The timeline is
// everything to the right of the gutter, which has names and talk times. Below
// minWidth or minHeight the screen is one line of status.
const (
	minWidth  = 40
	minHeight = 8
)

// layout is the position of each region of the timeline screen.
type layout struct {
	w        int
	side     int  // columns of the list beside the timeline; 0 = not there
	small    bool // one line of status only
	gutter   int  // columns of names and talk times; the timeline is right of it
	name     int  // columns of the name
	talk     int  // columns of the talk time
	problemY int  // what is wrong with microphone or service, or a notice about the source; 0 = in status line and header
	lanesY   int
	pitch    int // rows from lane to lane
	bar      int // of them, filled by turns
	visible  int // lanes that have room
	levelY   int
	levelH   int // 0 = none
	axisY    int
	axisH    int // 1 or 2
	mapY     int
	mapH     int // 0 = none
	latestY  int
	latestH  int // 0 = none
	stateY   int
	keysY    int
}

// cells is the width of the timeline. One column stays free at the right.
func (l layout) cells() int { return max(l.right()-l.gutter-1, 1) }

// right is where the timeline ends.
func (l layout) right() int { return l.w - l.side }

// newLayout places the regions on a screen of w by h, with the list beside the timeline if that
// is open and there is room.
func newLayout(w, h int, s *display.Session, list bool) layout {
	l := layout{w: w}
	if w < minWidth || h < minHeight {
		l.small = true
		return l
	}
	if list && w >= sideWidth {
		l.side = w * 2 / 5
	}
	l.setGutter(s)
	l.stateY, l.keysY = h-2, h-1

	top, bottom := 1, h-2
	n := max(len(s.Speakers), 4)
	if h >= 11 || h-5 >= n {
		l.problemY = top
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
	reserved := min(rows/n, 2) // rows of each lane that nothing else may take
	if h >= 16 && (rows-1)/n >= reserved {
		l.mapH = 1
		rows--
	}
	for len(s.Levels) > 0 && h >= 16 && (rows-1)/n >= reserved && l.levelH < max(h/17, 1) {
		l.levelH++
		rows--
	}
	l.pitch = max(rows/n, 1)
	if l.side == 0 { // else there are no latest turns
		l.pitch = min(l.pitch, max(4, h/9))
	}
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
	// The latest turns take what is left, if there is enough for a heading.
	if free >= 4 && l.side == 0 {
		l.latestY = l.mapY + l.mapH + 1
		l.latestH = free - 1
	}
	return l
}

// setGutter makes room for the longest name, within limits, and the longest talk time, at
// least 59:59: the timeline does not move with every new digit.
func (l *layout) setGutter(s *display.Session) {
	l.name = 10
	l.talk = 5
	most := 10 + max(l.w-minWidth, 0)/6
	for _, p := range s.Speakers {
		l.name = max(l.name, min(canvas.Width(p.Name), most))
		l.talk = max(l.talk, len(display.TalkText(p.TalkTime)))
	}
	// margin, speaking mark, name, talk time, margin
	l.gutter = 1 + 2 + l.name + 1 + l.talk + 1
	if l.w >= 60 {
		l.gutter += 2
	}
}

// View draws the screen.
func (m *model) View() string {
	c := canvas.New(m.w, m.h, m.glyphs)
	s := m.session()
	l := m.layoutOf(s)
	switch {
	case l.small:
		m.drawSmall(c, s)
		return c.Render(m.theme)
	case m.wire != nil:
		m.wire.Draw(c, m.wireFrame())
	case m.presenter:
		m.drawPresenter(c)
	default:
		m.drawTimelineScreen(c, l, s)
	}
	m.drawLastLine(c, l, s)
	if m.microphones != nil {
		m.drawMicrophones(c)
	}
	if m.help > 0 {
		m.drawHelp(c)
	}
	return c.Render(m.theme)
}

func (m *model) drawTimelineScreen(c *canvas.Canvas, l layout, s *display.Session) {
	m.view.top = min(max(m.view.top, 0), max(len(s.Speakers)-l.visible, 0))
	if i := s.Index(m.selected); i >= 0 { // the selected lane is always visible
		m.view.top = min(max(m.view.top, i-l.visible+1), i)
	}
	w := m.windowOf(l, s.State)
	m.drawHeader(c, l, w)
	if m.list != nil {
		m.drawList(c, l, s)
		if l.side == 0 {
			m.drawState(c, l)
			return
		}
	}
	if l.problemY > 0 {
		p, width := m.problem(), l.right()-2
		if m.noticeBelow(l) {
			p = canvas.NewSegment(display.TerminalSafe(s.SourceNotice), canvas.Warn, 0)
		}
		c.Fitted(1, l.problemY, width, p.Text, max(width/3, 20), p.Style) // the end says what to do
	}
	m.drawLanes(c, l, w, s)
	m.drawInputLevel(c, l, w, s)
	m.drawAxis(c, l, w, s)
	m.drawCursor(c, l, w)
	m.drawMinimap(c, l, w, s)
	m.drawLatest(c, l, s)
	m.drawState(c, l)
}

func (m *model) layout() layout { return m.layoutOf(m.session()) }

func (m *model) layoutOf(s *display.Session) layout { return newLayout(m.w, m.h, s, m.list != nil) }

func (m *model) window() window {
	s := m.session()
	return m.windowOf(m.layoutOf(s), s.State)
}

// windowOf is the window of a session. A view that follows a service that is late ends
// before the newest audio: half of it shows decided audio.
func (m *model) windowOf(l layout, s display.State) window {
	w := m.view.window(l.cells(), s.Position)
	if newest := s.DecidedUntil() + w.span/2; newest < s.Position && !m.view.showsAll() {
		return m.view.window(l.cells(), newest)
	}
	return w
}
