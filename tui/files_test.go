package tui

import (
	"errors"
	"testing"
	"time"

	"hubbub/protocol/hint"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

// TestRecordKey starts and stops a recording, one change at a time, and shows what
// came of it. A screen without recordings has no such key.
func TestRecordKey(t *testing.T) {
	s := tuitest.State(tuitest.FourSpeakers, 60, 1)
	m := testModel(s, 120, 34)
	screenHasNot(t, m, "record", "R")

	var text string
	var fails error
	m.o.Record = func() (string, error) { return text, fails }
	m.bindKeys()
	text = "recording into /tmp/monday"
	cmd := press(m, "R")
	if again := press(m, "R"); again != nil {
		t.Error("two changes at once")
	}
	m.Update(runCommand(cmd))
	screenHas(t, m, text)
	s.Recording = &display.Recording{Length: 3, Bytes: 96000}
	m.later(s)
	text = "recorded 0:03 into /tmp/monday: 1 turn of 2 speakers, 96.0 kB"
	cmd = press(m, ":", "rec", "enter")
	for range 2 * confirmTime / time.Second {
		screenHas(t, m, "stopping the recording")
		m.tickLater()
	}
	m.Update(runCommand(cmd))
	screenHas(t, m, text)
	fails = hint.Add(errors.New("cannot record"), "Choose another folder.")
	m.Update(runCommand(press(m, "R")))
	screenHas(t, m, "cannot record")
	screenHas(t, m, "Choose another folder.")
}
