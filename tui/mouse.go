package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"hubbub/tui/canvas"
)

// toggleMouse leaves the mouse to the terminal, so that text can be selected, or
// takes it back.
func (m *model) toggleMouse() tea.Cmd {
	m.mouse = !m.mouse
	if m.mouse {
		m.notify("mouse on: click a turn, the wheel scrolls", canvas.Dim)
		return tea.EnableMouseCellMotion
	}
	m.notify("mouse free for copying", canvas.Dim)
	return tea.DisableMouse
}

// click handles the mouse: the wheel scrolls, with ctrl it zooms; a click
// selects a lane and describes a turn, or goes to a position of the minimap.
// Dragging does nothing.
func (m *model) click(msg tea.MouseMsg) {
	if msg.Action != tea.MouseActionPress || m.help > 0 || m.input != nil || m.microphones != nil {
		return
	}
	if m.wire != nil {
		m.clickWire(msg)
		return
	}
	if m.presenter || m.list != nil && m.clickList(msg) {
		return
	}
	switch msg.Button {
	case tea.MouseButtonLeft:
		m.clickAt(msg.X, msg.Y)
	case tea.MouseButtonWheelUp, tea.MouseButtonWheelLeft:
		m.wheel(-1, msg.Ctrl)
	case tea.MouseButtonWheelDown, tea.MouseButtonWheelRight:
		m.wheel(1, msg.Ctrl)
	}
}

func (m *model) wheel(by int, zoom bool) {
	if zoom {
		zoomBy(by)(m)
	} else {
		scrollBy(0.1 * float64(by))(m)
	}
}

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
