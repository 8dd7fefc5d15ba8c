package tui

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"
)

// toggleMouse gives the mouse to the terminal, for selecting and copying, or
// takes it back.
func (m *model) toggleMouse() tea.Cmd {
	m.mouse = !m.mouse
	if m.mouse {
		m.say("mouse on: click a turn, the wheel scrolls", roleDim)
		return tea.EnableMouseCellMotion
	}
	m.say("mouse free for copying", roleDim)
	return tea.DisableMouse
}

// click does what the mouse means: the wheel scrolls, with ctrl it zooms; a
// click selects a lane, tells of a turn, or goes to a place of the minimap.
// Dragging does nothing.
func (m *model) click(msg tea.MouseMsg) tea.Cmd {
	if msg.Action != tea.MouseActionPress || m.help > 0 || m.entry != nil {
		return nil
	}
	if m.wire != nil {
		return m.clickWire(msg)
	}
	if m.stage {
		return nil
	}
	by := 0.0
	switch msg.Button {
	case tea.MouseButtonWheelUp, tea.MouseButtonWheelLeft:
		by = -1
	case tea.MouseButtonWheelDown, tea.MouseButtonWheelRight:
		by = 1
	case tea.MouseButtonLeft:
		m.clickAt(msg.X, msg.Y)
		m.dirty = true
		return nil
	default:
		return nil
	}
	m.dirty = true
	if msg.Ctrl {
		return zoomBy(int(by))(m)
	}
	return scrollBy(0.1 * by)(m)
}

func (m *model) clickAt(x, y int) {
	l := m.layout()
	if l.small {
		return
	}
	b := m.board()
	w := m.view.window(l.cells(), b.Heard)
	column := x - l.timelineX()
	if l.mapH > 0 && y == l.mapY {
		if column >= 0 && column < w.cells {
			at := m.mapAt(column, b, w.cells)
			m.lookAt(at)
			if m.o.Player != nil {
				m.o.Player.Seek(at)
			}
		}
		return
	}
	i := m.view.top + (y-l.lanesY)/l.pitch
	if y < l.lanesY || y >= l.lanesY+l.visible*l.pitch || i >= len(b.people) {
		return
	}
	if m.pick != nil {
		m.selected = b.people[i].root
		return
	}
	m.selectLane(b, i)
	if column >= 0 && column < w.cells {
		m.tell(b, i, w.at(column), w.at(column+1))
	}
}

// tellNewest tells of the selected lane's newest turn that the window shows.
func (m *model) tellNewest() {
	b := m.board()
	i := b.index(m.selected)
	if i < 0 {
		m.say("select a lane first, with up and down", roleDim)
		return
	}
	w := m.window()
	m.tell(b, i, w.at(0), w.at(w.cells))
}

// tell says who spoke when and for how long: of the turn that covers most of
// the end of a stretch.
func (m *model) tell(b *board, i int, from, to float64) {
	lane, p := b.Timeline.Lanes[i], b.people[i]
	if lane.Open && lane.OpenSince < to && b.decided() > from {
		m.say(fmt.Sprintf("%s  since %s, still speaking", p.name, tenths(lane.OpenSince)), p.role)
		return
	}
	for k := len(lane.Turns) - 1; k >= 0; k-- {
		if t := lane.Turns[k]; t.Start < to {
			if t.End > from {
				m.say(fmt.Sprintf("%s  %s to %s, %.1f s", p.name, tenths(t.Start), tenths(t.End), t.End-t.Start), p.role)
			}
			return
		}
	}
}

// tenths is a position in seconds, to the tenth: m:ss.t.
func tenths(seconds float64) string {
	t := int64(max(seconds, 0)*10 + 0.5)
	return fmt.Sprintf("%s.%d", clock(float64(t/10)), t%10)
}
