//go:build unix

package device

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"hubbub/capture/audiofile"
	"hubbub/capture/capturetest"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// TestRecorderOrder: the first recorder that delivers audio is used. One that ends,
// or that delivers nothing, is not. Of a device that none has, the one with a sound server says so.
func TestRecorderOrder(t *testing.T) {
	capturetest.Programs(t, map[string]string{
		"pw-record": "echo first >&2; echo 'Host is down' >&2; exit 1",
		"pw-dump":   "echo '[]'",
		"pactl":     capturetest.Pactl,
		"parec":     capturetest.Endless,
		"arecord":   "exit 1",
	})
	s := testkit.Must(OpenRecorder(t.Context(), "", false))(t)
	defer s.Close()
	rate, channels := s.Format()
	if name := s.Device().Name; name != "Desk [31mMicrophone: A = B #1" || rate != audiofile.SampleRate || channels != 1 {
		t.Errorf("%q, %d Hz, %d channels", name, rate, channels)
	}
	if x, _, err := s.Read(); err != nil || len(x) != BlockLength(rate) || x[0] != 0.5 {
		t.Errorf("%d samples, %v", len(x), err)
	}
	capturetest.Programs(t, map[string]string{"pw-record": "", "pw-dump": "echo 'Host is down' >&2; exit 1", "pactl": capturetest.Pactl, "parec": ""})
	if _, err := OpenRecorder(t.Context(), "absent", false); !errors.Is(err, ErrNoMatch) { // as parec's server says
		t.Error(err)
	}
}

// TestRecorderFailures: the message has the last words of the program, and the hint
// what to do.
func TestRecorderFailures(t *testing.T) {
	capturetest.Programs(t, map[string]string{"pactl": capturetest.Pactl, "parec": "echo 'Stream error: No such entity' >&2; exit 1", "arecord": "echo busy >&2; exit 1"})
	for _, c := range []struct{ input, want string }{
		{"parec", "parec ended: Stream error: No such entity"},
		{"parec:Desk", "parec ended: Stream error"},
		{"parec:out.monitor", `"Monitor of Desk": parec ended: Stream error`}, // named exactly
		{"parec:Monitor", `no capture device matches "Monitor"`},
		{"arecord:hw:9", `"hw:9": arecord ended: busy`},
		{"pw-record", "pw-record is not installed"},
		{"sox", "sox is not installed"},
	} {
		name, device, _ := strings.Cut(c.input, ":")
		r := FindRecorder(name)
		_, err := r.Open(t.Context(), device, false)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || hint.Of(err) == "" {
			t.Errorf("%s: %v, want %q; hint %q", c.input, err, c.want, hint.Of(err))
		}
	}
	_, err := OpenRecorder(t.Context(), "", false)
	if err == nil || !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "No such entity") || !strings.Contains(err.Error(), "busy") {
		t.Errorf("%v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err = OpenRecorder(t.Context(), "", false); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "parec") || hint.Of(err) == "" {
		t.Errorf("%v", err)
	}
}

// TestRecorderOfNothing: a recorder that is started and delivers nothing is killed,
// with its children.
func TestRecorderOfNothing(t *testing.T) {
	dir := capturetest.Programs(t, map[string]string{"pactl": capturetest.Pactl, "parec": "echo $$ > \"${0%/*}/pid\"; sleep 1000"})
	r := FindRecorder("parec")
	_, err := r.openWithin(t.Context(), "", false, false, 200*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "delivered nothing within") {
		t.Error(err)
	}
	capturetest.NoGroup(t, filepath.Join(dir, "pid"))
}

// TestRecorderLists: what programs list, as they write it.
func TestRecorderLists(t *testing.T) {
	capturetest.Programs(t, map[string]string{
		"pactl": capturetest.Pactl,
		"parec": "", "pw-record": "", "arecord": `cat <<X
**** List of CAPTURE Hardware Devices ****
card 1: PCH [HDA Intel PCH], device 0: ALC257 Analog [ALC257 Analog]
  Subdevices: 1/1
X`,
		"pw-dump": `cat <<X
[{"id":1,"type":"PipeWire:Interface:Node","info":{"props":{"media.class":"Audio/Sink","node.name":"spk","node.description":"Speaker"}}},
{"id":2,"type":"PipeWire:Interface:Node","info":{"props":{"media.class":"Audio/Source","node.name":"mic","node.description":"Headset","audio.position":"FL,FR"}}},
{"id":3,"type":"PipeWire:Interface:Node","info":{"props":{"media.class":"Audio/Source/Virtual","node.name":"rack","audio.position":"[ FL FR FC ]"}}},
{"id":4,"type":"PipeWire:Interface:Node","info":{"props":{"media.class":"Audio/Source","node.name":"one","audio.position":["MONO"]}}},
{"id":7,"type":"PipeWire:Interface:Node","info":{"props":{"media.class":"Audio/Source","node.name":"gone"}}},
{"id":5,"type":"PipeWire:Interface:Metadata","metadata":[{"key":"clock.rate","value":48000},{"key":"default.audio.source","value":{"name":"mic"}}]}]
[{"id":2,"type":"PipeWire:Interface:Node","info":{"props":{"media.class":"Audio/Source","node.name":"mic","node.description":"New Headset","audio.position":"FL,FR"}}},
{"id":6,"type":"PipeWire:Interface:Node","info":{"props":{"media.class":"Stream/Input/Audio","node.name":7,"node.description":true}}}]
[{"id":7,"info":null}]
X`,
	})
	got := fmt.Sprintf("%+v", recorderDevices(t.Context()))
	for _, want := range []string{
		"{Number:0 Name:New Headset HostAPI:pw-record Channels:2 Rate:48000 Default:true Input:pw-record:0 id:mic monitor:false follows:false}",
		"{Number:1 Name:rack HostAPI:pw-record Channels:3 ",
		"{Number:2 Name:one HostAPI:pw-record Channels:1 ",
		"{Number:0 Name:Desk [31mMicrophone: A = B #1 HostAPI:parec Channels:1 Rate:48000 Default:true Input:parec:0 id:usb monitor:false follows:false}",
		"{Number:0 Name:HDA Intel PCH, ALC257 Analog HostAPI:arecord Channels:2 Rate:48000 Default:false Input:arecord:0 id:plughw:CARD=PCH,DEV=0 monitor:false follows:false}",
	} {
		if !strings.Contains(got, want) && (strings.Contains(want, "parec") || runtime.GOOS == "linux") {
			t.Errorf("%s\nis not among\n%s", want, got)
		}
	}
	if n := strings.Count(got, "Name:"); n != 5 && runtime.GOOS == "linux" {
		t.Errorf("%d devices: %s", n, got)
	}
	mac := parseFFmpeg("avfoundation", `[AVFoundation indev @ 0x7f8] AVFoundation video devices:
[AVFoundation indev @ 0x7f8] [0] FaceTime HD Camera
[AVFoundation indev @ 0x7f8] AVFoundation audio devices:
[AVFoundation indev @ 0x7f8] [0] MacBook Pro Microphone
[AVFoundation indev @ 0x7f8] [1] AirPods
: Input/output error
`)
	windows := parseFFmpeg("dshow", "[dshow @ 0000] \"Integrated Camera\" (video)\r\n[dshow @ 0000] \"Microphone (Realtek)\" (audio)\r\n[dshow @ 0000]   Alternative name \"@device_cm\"\r\n")
	if len(mac) != 2 || mac[1].Name != "AirPods" || mac[1].id != "1" || len(windows) != 1 || windows[0].id != "Microphone (Realtek)" || !windows[0].Default {
		t.Errorf("%+v\n%+v", mac, windows)
	}
}
