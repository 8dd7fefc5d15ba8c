package device

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

func TestMain(m *testing.M) {
	testkit.Parallel(8)
	os.Exit(m.Run())
}

func TestPickDevice(t *testing.T) {
	all := []Device{
		{Number: 0, Name: "Built-in Microphone", HostAPI: "A"},
		{Number: 2, Name: "USB Audio", HostAPI: "A", Default: true},
		{Number: 5, Name: "USB Audio Pro 7", HostAPI: "A"},
		{Number: 8, Name: "Built-in Microphone", HostAPI: "B"},
		{Number: 9, Name: "Line", HostAPI: "B"},
	}
	for want, number := range map[string]int{"": 2, "0": 0, " 5 ": 5, "usb audio": 2, "pro": 5, "BUILT": 0, "line": 9, "7": 5} {
		d, err := pickDevice(all, want)
		if err != nil || d.Number != number {
			t.Errorf("%q: device %d, %v; want %d", want, d.Number, err, number)
		}
	}
	for want, text := range map[string][2]string{
		"usb a":    {"2 devices match", "2 USB Audio; 5 USB Audio Pro 7"},
		"bluetooh": {"no capture device matches", "9 Line"},
		"12":       {"no capture device matches", "0 Built-in"},
	} {
		_, err := pickDevice(all, want)
		if err == nil || !strings.Contains(err.Error(), text[0]) || !strings.Contains(hint.Of(err), text[1]) {
			t.Errorf("%q: %v, hint %q", want, err, hint.Of(err))
		}
	}
	if _, err := pickDevice(all[:1], ""); err == nil || !strings.Contains(hint.Of(err), "mic:NAME") {
		t.Error(err)
	}
	if _, err := pickDevice(nil, "x"); !errors.Is(err, ErrNone) || hint.Of(err) == "" {
		t.Error(err)
	}
}

func TestDeviceJSON(t *testing.T) {
	got := testkit.Must(json.Marshal(Device{Number: 1, Name: "n", HostAPI: "h", Channels: 2, Rate: 48000, Default: true, Input: "mic:1"}))(t)
	testkit.Equal(t, string(got), `{"number":1,"name":"n","host_api":"h","channels":2,"rate":48000,"default":true,"input":"mic:1"}`, got)
}
