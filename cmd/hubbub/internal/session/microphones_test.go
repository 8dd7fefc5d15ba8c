package session

import (
	"fmt"
	"testing"

	"hubbub/capture/device"
	"hubbub/protocol/testkit"
)

// TestOpenDevice: the microphone in use is the one with that name in its sound system, whatever its number is now.
func TestOpenDevice(t *testing.T) {
	list := []device.Device{{Number: 1, Name: "default", HostAPI: "ALSA"}, {Name: "Desk", HostAPI: "parec"},
		{Number: 1, Name: "Headset", HostAPI: "parec"}, {Number: 2, Name: "Headset", HostAPI: "parec"}, {Name: "Headset", HostAPI: "ALSA"}}
	for _, c := range []struct {
		name, system string
		number, want int
	}{
		{"default", "ALSA", 1, 0}, {"Desk", "parec", 1, 1}, {"Headset", "parec", 7, 2}, {"Headset", "parec", 2, 3}, {"Headset", "ALSA", 0, 4}, {"gone", "parec", 0, -1},
	} {
		testkit.Equal(t, openDevice(list, device.Device{Name: c.name, HostAPI: c.system, Number: c.number}), c.want, c)
	}
}

// TestLastingInput: a microphone is chosen by its name, and by its number only if another one has the same name.
func TestLastingInput(t *testing.T) {
	devices := []device.Device{{Name: "Desk", Input: "mic:0"}, {Name: "USB", Input: "mic:1"}, {Name: "usb", Input: "mic:2"}, {Name: "Desk", Input: "parec:0"}}
	for i, want := range []string{"mic:Desk", "mic:1", "mic:2", "parec:Desk"} {
		testkit.Equal(t, lastingInput(devices, devices[i]), want, devices[i])
	}
}

// TestMicrophonesAfterTheEnd: after the end of the session its screen says why there is no list.
func TestMicrophonesAfterTheEnd(t *testing.T) {
	m := newMicrophones(nil)
	m.close()
	_, err := m.List()
	testkit.Contains(t, fmt.Sprint(err), "the session is over")
}
