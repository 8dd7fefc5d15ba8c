package session

import (
	"strings"
	"testing"

	"hubbub/capture/device"
	"hubbub/tui/display"
)

// TestUsedMicrophone: the microphone in use is the one of that name, whatever its number is now.
func TestUsedMicrophone(t *testing.T) {
	list := []display.Microphone{{Input: "mic:1", Name: "default"}, {Input: "parec:0", Name: "Desk"}, {Input: "parec:1", Name: "Headset"}, {Input: "parec:2", Name: "Headset"}}
	for _, c := range []struct {
		name, chosen string
		want         int
	}{
		{"default", "", 0}, {"Desk", "parec:1", 1}, {"Headset", "", 2}, {"Headset", "parec:2", 3}, {"Desk", "parec:2", 1}, {"gone", "parec:0", -1},
	} {
		if got := usedMicrophone(list, c.name, c.chosen); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestLastingInput: a microphone is chosen by its name, and by its number only if another one has the same name.
func TestLastingInput(t *testing.T) {
	devices := []device.Device{{Name: "Desk", Input: "mic:0"}, {Name: "USB", Input: "mic:1"}, {Name: "usb", Input: "mic:2"}, {Name: "Desk", Input: "parec:0"}}
	for i, want := range []string{"mic:Desk", "mic:1", "mic:2", "parec:Desk"} {
		if got := lastingInput(devices, devices[i]); got != want {
			t.Errorf("%+v: %q, want %q", devices[i], got, want)
		}
	}
}

// TestMicrophonesAfterTheEnd: after the end of the session its screen says why there is no list.
func TestMicrophonesAfterTheEnd(t *testing.T) {
	m := newMicrophones(nil)
	m.close()
	if _, err := m.List(); err == nil || !strings.Contains(err.Error(), "the session is over") {
		t.Error(err)
	}
}
