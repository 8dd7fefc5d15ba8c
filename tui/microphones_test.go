package tui

import (
	"errors"
	"strings"
	"testing"

	"hubbub/tui/display"

	"hubbub/tui/tuitest"

	tea "github.com/charmbracelet/bubbletea"
)

// fakeMicrophones are devices of which "parec:2" does not open.
type fakeMicrophones struct {
	list     []display.Microphone
	measured []string
	level    display.Level
	used     string
}

func (f *fakeMicrophones) List() ([]display.Microphone, error) { return f.list, nil }
func (f *fakeMicrophones) Measure(input string)                { f.measured = append(f.measured, input) }
func (f *fakeMicrophones) Reading() (display.Level, bool, error) {
	if now := f.measured[len(f.measured)-1]; now == "parec:2" {
		return display.Level{}, false, errors.New("cannot open it")
	}
	return f.level, true, nil
}

func (f *fakeMicrophones) Use(input string) (string, error) {
	if input == "parec:2" {
		return "", errors.New("it is still used")
	}
	f.used = input
	return "another one is used now", nil
}

// answerTo runs a command and passes its message to the model.
func answerTo(m *model, cmd tea.Cmd) { m.Update(cmd()) }

// listMicrophones opens the list of the microphones.
func listMicrophones(m *model, devices *fakeMicrophones) {
	m.o.Microphones = devices
	m.bindKeys()
	answerTo(m, press(m, "i"))
}

// TestChooseMicrophone: the list shows the level of the selected device and of the one
// in use, and enter continues with another one.
func TestChooseMicrophone(t *testing.T) {
	for _, size := range [][2]int{{120, 34}, {80, 24}, {40, 8}} {
		w, h := size[0], size[1]
		m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), w, h)
		devices := &fakeMicrophones{level: display.Level{RMS: 0.05, Peak: 0.1}, list: []display.Microphone{
			{Input: "mic:1", Name: "default", System: "ALSA", Default: true, Used: true},
			{Input: "parec:1", Name: "USB \x1b[2JAudio", System: "parec"},
			{Input: "parec:2", Name: "Headset", System: "parec"},
		}}
		m.o.Microphones = devices
		m.bindKeys()
		onlySelected := func(says string) {
			t.Helper()
			for _, row := range screenRows(m)[1:4] {
				if strings.Contains(row, "▌") != strings.Contains(row, says) {
					t.Errorf("%dx%d: %q, want %q in the selected row only", w, h, row, says)
				}
			}
		}
		cmd := press(m, "i")
		screenHas(t, m, "looking for microphones")
		answerTo(m, cmd)
		screenHas(t, m, "in use")
		screenHasNot(t, m, "Devices connected later")
		if len(devices.measured) != 1 || devices.measured[0] != "" {
			t.Errorf("measured %q, want nothing: the session hears the device in use", devices.measured)
		}
		press(m, "down")
		m.Update(tickMsg{})
		screenHas(t, m, "USB Audio")
		onlySelected("-20 dB")
		press(m, "down")
		m.Update(tickMsg{})
		screenHas(t, m, "cannot open it")
		onlySelected("fails")
		answerTo(m, press(m, "enter"))
		screenHas(t, m, "it is still used")
		if m.microphones == nil || devices.measured[len(devices.measured)-1] != "parec:2" {
			t.Errorf("after a failure the choice is closed, or measures %q", devices.measured)
		}
		press(m, "down", "up") // down is the end of the list
		answerTo(m, press(m, "enter"))
		screenHas(t, m, "another one is used now")
		if devices.used != "parec:1" || m.microphones != nil || devices.measured[len(devices.measured)-1] != "" {
			t.Errorf("%q is used, measured %q", devices.used, devices.measured)
		}
		cmd = press(m, "i")
		press(m, "esc")
		answerTo(m, cmd) // the list comes late
		screenHasNot(t, m, "in use")
	}
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 120, 34)
	press(m, "i") // a file is no microphone
	screenHasNot(t, m, "microphones")
}

// TestSecondChoiceOfAMicrophone: while a device is opened, the choice may be closed and opened again. It stays open
// then, and says that a second device has to wait.
func TestSecondChoiceOfAMicrophone(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 80, 24)
	listMicrophones(m, &fakeMicrophones{list: []display.Microphone{{Input: "parec:0", Name: "Desk", Used: true}, {Input: "parec:1", Name: "Headset"}}})
	first := press(m, "down", "enter")
	screenHas(t, m, "opening Headset")
	press(m, "esc")
	answerTo(m, press(m, "i"))
	screenHas(t, m, "another microphone is being opened: choose again", "down", "enter")
	answerTo(m, first)
	screenHas(t, m, " microphones\n")
	if cmd := press(m, "enter"); cmd == nil {
		t.Error("nothing is opened after the first one")
	}
}

// TestMicrophonesOfPortAudio: a list without recorders says what it lacks.
func TestMicrophonesOfPortAudio(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 80, 24)
	listMicrophones(m, &fakeMicrophones{list: []display.Microphone{
		{Input: "mic:0", Name: "default", System: "ALSA", Default: true, Used: true},
		{Input: "mic:1", Name: "USB", System: "ALSA"},
	}})
	screenHas(t, m, "Devices connected later need a restart, or a recorder (parec, ffmpeg).")
	screenHasNot(t, m, "connected later", "down")
}

// TestMicrophonesAreListedAgain: the list follows a device that is removed and returns, and one that takes the place of
// another one. Of fewer devices, none of which is in use, one is selected.
func TestMicrophonesAreListedAgain(t *testing.T) {
	s := tuitest.State(tuitest.FourSpeakers, 100, 1)
	m := testModel(s, 80, 24)
	m.o.Snapshot = func() display.State { return s }
	desk, headset := display.Microphone{Input: "parec:0", Name: "Desk"}, display.Microphone{Input: "parec:1", Name: "Headset"}
	used := func(d display.Microphone) display.Microphone { d.Used = true; return d }
	devices := &fakeMicrophones{list: []display.Microphone{desk, used(headset)}}
	listMicrophones(m, devices)
	for _, c := range []struct {
		source string
		lost   bool
		list   []display.Microphone
		says   string
	}{
		{s.Source, true, []display.Microphone{desk}, "▌ Desk"},
		{s.Source, false, []display.Microphone{desk, used(headset)}, "▌ Headset"},
		{"Desk", false, []display.Microphone{used(desk), headset}, "▌ Desk"},
		{"", true, nil, "there is no microphone"},
	} {
		s.Source, s.InputLost, devices.list = c.source, c.lost, c.list
		m.refresh()
		m.listAgain()
		answerTo(m, m.started())
		screenHas(t, m, c.says)
		if m.listAgain(); m.started() != nil {
			t.Error("it is listed all the time")
		}
	}
}

// TestMouseBelowTheMicrophones: a click on the choice does nothing below it.
func TestMouseBelowTheMicrophones(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 80, 24)
	listMicrophones(m, &fakeMicrophones{list: []display.Microphone{{Input: "mic:0", Name: "default", Used: true}}})
	for _, button := range []tea.MouseButton{tea.MouseButtonLeft, tea.MouseButtonWheelUp} {
		m.Update(tea.MouseMsg{X: 40, Y: m.layout().lanesY + 1, Action: tea.MouseActionPress, Button: button})
	}
	if m.selected != "" || m.view.scrolled {
		t.Errorf("%q is selected, scrolled %v", m.selected, m.view.scrolled)
	}
}
