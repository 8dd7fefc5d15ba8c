package tui

import (
	"fmt"

	"hubbub/tui/canvas"
	"hubbub/tui/display"
	"hubbub/tui/wire"
)

// The wire view on the screen: its keys, and what it needs to know of the screen.

func (m *model) openWire() {
	m.wire = &wire.View{}
	m.wire.Refresh(m.o.Wire, m.now())
}

func (m *model) wireFrame() wire.Screen {
	return wire.Screen{
		W: m.w, H: m.h, Glyphs: m.glyphs, Position: m.state.Position, Server: m.state.Server, Latency: m.state.Latency,
		Key: m.keyOf,
	}
}

func onWire(do func(*wire.View)) func(*model) { return func(m *model) { do(m.wire) } }

func (m *model) toggleWirePause() { m.wire.TogglePause(m.o.Wire, m.now()) }

// wireBy selects the row above (-1) or below (1), wirePages goes a page.
func (m *model) wireBy(by int) { m.wire.Move(by, m.h) }

func (m *model) wirePages(by int) { m.wire.Page(by, m.h) }

func (m *model) copyWire() {
	text, n := m.wire.SelectedNDJSON()
	m.copyText(string(text), display.Count(n, "record"), m.keyOf("file")+" writes a file")
}

func (m *model) saveWire() {
	text, n := m.wire.NDJSON()
	if n == 0 {
		m.notify("there is nothing to write", canvas.Dim)
		return
	}
	m.runAsync("file", "writing", func() (string, error) {
		name, err := m.o.SaveWire(text)
		return fmt.Sprintf("wrote %s to %s", display.Count(n, "record"), name), err
	}, nil)
}
