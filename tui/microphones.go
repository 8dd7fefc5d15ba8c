package tui

import (
	"fmt"
	"math"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// The choice of the microphone, over the upper part of the screen. The selected device is
// measured, the one in use as well:
//
//	microphones
//	  default              ALSA        ▕██▎       ▏    in use
//	▌ USB Audio Device     parec       ▕█████▍  ▏ ▏  -23 dB
//	  Built-in Audio       parec                      default
//	cannot open the device "USB Audio Device": ...
//	─────────────────────────────────────────────────────────

// microphoneView is the state of the choice.
type microphoneView struct {
	source   string // in use when they were listed
	lost     bool   // and delivered nothing
	list     []display.Microphone
	listed   bool
	selected int
	using    bool // a device is being exchanged
}

func (m *model) openMicrophones() {
	m.microphones = &microphoneView{source: m.state.Source, lost: m.state.InputLost}
	m.start(m.listMicrophones)
}

func (m *model) listMicrophones() tea.Msg {
	list, err := m.o.Microphones.List()
	return resultMsg(func() { m.microphonesListed(list, err) })
}

// listAgain lists them again when another one has taken the place of the one in use, or that was lost or has returned.
func (m *model) listAgain() {
	v := m.microphones
	if v == nil || v.source == m.state.Source && v.lost == m.state.InputLost {
		return
	}
	v.source, v.lost = m.state.Source, m.state.InputLost
	m.start(m.listMicrophones)
}

func (m *model) closeMicrophones() {
	m.microphones = nil
	m.o.Microphones.Measure("")
}

func (m *model) microphonesListed(list []display.Microphone, err error) {
	v := m.microphones
	if v == nil || v.using {
		return
	}
	if err != nil {
		m.notify(display.ErrorText(err, m.glyphs), canvas.Bad)
		m.closeMicrophones()
		return
	}
	v.list, v.listed = list, true
	v.selected = max(min(v.selected, len(v.list)-1), 0)
	for i, d := range v.list {
		if d.Used {
			v.selected = i
		}
	}
	m.measure()
}

// measure measures the selected device, unless the session itself does.
func (m *model) measure() {
	v := m.microphones
	if v.selected >= len(v.list) || v.list[v.selected].Used {
		m.o.Microphones.Measure("")
		return
	}
	m.o.Microphones.Measure(v.list[v.selected].Input)
}

func (m *model) microphoneBy(by int) {
	v := m.microphones
	if to := v.selected + by; to >= 0 && to < len(v.list) && !v.using {
		v.selected = to
		m.measure()
	}
}

func (m *model) useMicrophone() {
	v := m.microphones
	if v.using || v.selected >= len(v.list) {
		return
	}
	d := v.list[v.selected]
	if d.Used {
		m.closeMicrophones()
		return
	}
	v.using = m.runAsync("microphone", "", func() (string, error) { return m.o.Microphones.Use(d.Input) }, func(err error) {
		switch {
		case m.microphones != v: // closed meanwhile
		case err != nil:
			v.using = false
			m.measure()
		default:
			m.closeMicrophones()
		}
	})
	if !v.using {
		m.notify("another microphone is being opened: choose again when it is in use", canvas.Warn)
	}
}

const (
	microphonesWidth = 80 // at most
	systemWidth      = 12
	levelWidth       = 7 // "-60 dB "
)

func (m *model) drawMicrophones(c *canvas.Canvas) {
	v := m.microphones
	w := min(m.w-2, microphonesWidth)
	rows := max(min(len(v.list), m.h-4), 1)
	c.Fill(0, 0, m.w, rows+2, "", canvas.Plain)
	c.Fill(0, rows+2, m.w, 1, m.glyphs.Rule, canvas.Faint)
	c.Text(1, 0, w, "microphones", canvas.Dim)
	switch {
	case !v.listed:
		c.Text(1, 1, w, "looking for microphones"+m.glyphs.Ellipsis, canvas.Dim)
		return
	case len(v.list) == 0:
		c.Text(1, 1, w, "there is no microphone", canvas.Dim)
		return
	}
	var r reading // once, so that a picture is of one moment
	r.level, r.known, r.err = m.o.Microphones.Reading()
	top := max(v.selected-rows+1, 0)
	for i := range min(rows, len(v.list)-top) {
		m.drawMicrophone(c, 1, 1+i, w, top+i, r)
	}
	text, style := display.TerminalSafe(v.list[v.selected].Name), canvas.Dim
	switch {
	case v.using:
		text = "opening " + text
	case r.err != nil:
		text, style = display.ErrorText(r.err, m.glyphs), canvas.Bad
	case v.list[v.selected].Used && onlyPortAudio(v.list):
		text = "Devices connected later need a restart, or a recorder (parec, ffmpeg)."
	}
	c.Fitted(1, rows+1, w, text, 0, style)
}

// onlyPortAudio reports whether no recorder is listed: PortAudio knows only the
// devices that were connected at the start.
func onlyPortAudio(list []display.Microphone) bool {
	return !slices.ContainsFunc(list, func(d display.Microphone) bool { return !strings.HasPrefix(d.Input, "mic:") })
}

// reading is what is measured of the selected device.
type reading struct {
	level display.Level
	known bool
	err   error
}

func (m *model) drawMicrophone(c *canvas.Canvas, x, y, w, i int, r reading) {
	v := m.microphones
	d, selected := v.list[i], i == v.selected
	style := canvas.Plain
	if selected {
		c.Set(x, y, m.glyphs.Selected, canvas.Brand.Bold())
		style = style.Bold()
	}
	cells, end := 6, x+w
	name := w - 2 - cells - 3 - levelWidth
	if w >= 60 {
		cells = 14
		name = w - 2 - cells - 3 - levelWidth - systemWidth
		c.Fitted(x+2+name, y, systemWidth-1, display.TerminalSafe(d.System), 0, canvas.Dim)
	}
	c.Fitted(x+2, y, name-1, display.TerminalSafe(d.Name), (name-1)/2, style)
	level, known := r.level, selected && r.known
	switch {
	case d.Used:
		level, known = m.state.Level, true
		c.TextRight(end, y, "in use", canvas.Good)
	case known:
		c.TextRight(end, y, decibelText(level.Peak), canvas.Dim)
	case selected && r.err != nil:
		c.TextRight(end, y, "fails", canvas.Bad)
	case d.Default:
		c.TextRight(end, y, "default", canvas.Dim)
	}
	if known {
		m.drawLevel(c, end-levelWidth-cells-3, y, cells, level)
	}
}

func decibelText(x float32) string {
	if x <= 0 {
		return "silent"
	}
	return fmt.Sprintf("%.0f dB", max(20*math.Log10(float64(x)), -99))
}
