package session

import (
	"testing"

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
