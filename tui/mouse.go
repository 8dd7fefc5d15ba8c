package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"hubbub/tui/canvas"
)

// toggleMouse leaves the mouse to the terminal, so that text can be selected, or
// takes it back.
func (m *model) toggleMouse() {
	m.mouse = !m.mouse
	if m.mouse {
		m.notify("mouse on: click a turn, the wheel scrolls", canvas.Dim)
		m.start(tea.EnableMouseCellMotion)
		return
	}
	m.notify("mouse free for copying", canvas.Dim)
	m.start(tea.DisableMouse)
}

// click handles the mouse: the wheel scrolls, with ctrl it zooms; a click selects a row
// of a list, selects a lane and describes a turn, or goes to a position of the minimap.
// Dragging does nothing.
func (m *model) click(msg tea.MouseMsg) {
	if msg.Action != tea.MouseActionPress || m.help > 0 || m.input != nil || m.microphones != nil {
		return
	}
	by := wheel[msg.Button]
	if by == 0 && msg.Button != tea.MouseButtonLeft {
		return
	}
	x, w, h := m.layout().list()
	inList := m.list != nil && msg.X >= x && msg.X <= x+w
	sideways := msg.Button == tea.MouseButtonWheelLeft || msg.Button == tea.MouseButtonWheelRight
	switch {
	case sideways && (m.wire != nil || inList): // a touchpad adds some to what goes up or down
	case m.wire != nil && by != 0:
		m.wire.Move(3*by, m.h)
	case m.wire != nil:
		m.wire.Click(msg.Y, m.h)
	case m.presenter:
	case inList && by != 0:
		m.moveListRow(3 * by)
	case inList:
		m.list.Click(m.listRows(m.session()), h, msg.Y-listY)
	case by != 0 && msg.Ctrl:
		m.zoomBy(by)
	case by != 0:
		m.scrollBy(0.1 * float64(by))
	default:
		m.clickAt(msg.X, msg.Y)
	}
}

// wheel is where the buttons of the wheel lead.
var wheel = map[tea.MouseButton]int{tea.MouseButtonWheelUp: -1, tea.MouseButtonWheelLeft: -1, tea.MouseButtonWheelDown: 1, tea.MouseButtonWheelRight: 1}

func (m *model) clickAt(x, y int) {
	s := m.session()
	l := m.layoutOf(s)
	if l.small {
		return
	}
	w := m.windowOf(l, s.State)
	column := x - l.gutter
	onTimeline := column >= 0 && column < w.cells
	if l.mapH > 0 && y == l.mapY {
		if onTimeline {
			m.goTo(mapPosition(column, s.State, w.cells))
		}
		return
	}
	i := m.view.top + (y-l.lanesY)/l.pitch
	if y < l.lanesY || y >= l.lanesY+l.visible*l.pitch || i >= len(s.Speakers) {
		return
	}
	if m.choice != nil {
		if label := s.Speakers[i].Label; label != m.choice.except {
			m.selected = label
		}
		return
	}
	m.selectLane(s, i)
	if onTimeline {
		m.describeTurn(s, i, w.at(column), w.at(column+1))
	}
}
