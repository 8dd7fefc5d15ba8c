//go:build unix

package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubbub/protocol/hint"
)

// programs puts shell scripts in the place of all programs that PATH has.
func programs(t *testing.T, scripts map[string]string) (dir string) {
	t.Helper()
	path := os.Getenv("PATH")
	dir = t.TempDir()
	for name, script := range scripts {
		text := "#!/bin/sh\nPATH=" + path + "\n" + script + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	return dir
}

// pactl lists a microphone, and a monitor that is none.
const pactl = `case "$*" in
*list*) echo '[{"name":"out.monitor","description":"Monitor of Desk","sample_specification":"s16le 2ch 44100Hz","monitor_source":"out","properties":{"device.class":"monitor"}},
 {"name":"usb","description":"Desk \u001b[31mMicrophone","sample_specification":"s16le 1ch 48000Hz","monitor_source":""}]' ;;
*) echo usb ;;
esac`

const endless = `while :; do printf '\000\100%.0s' $(seq 1600); sleep 0.01; done` // samples of 0.5

// TestRecorderOrder: the first recorder that delivers audio is used. One that ends,
// or that delivers nothing, is not.
func TestRecorderOrder(t *testing.T) {
	programs(t, map[string]string{
		"pw-record": "echo first >&2; echo 'Host is down' >&2; exit 1",
		"pw-dump":   "echo '[]'",
		"pactl":     pactl,
		"parec":     endless,
		"arecord":   "exit 1",
	})
	src, err := openMicWith(t.Context(), "", micConfig{openAnyRecorder, Mix, time.Minute, elapsed})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if i := src.Info(); i.Name != "Desk [31mMicrophone" || i.Rate != SampleRate || i.Channels != 1 || i.Kind != Mic {
		t.Errorf("%+v", i)
	}
	x := make([]float32, 100)
	if n, err := src.Read(t.Context(), x); err != nil || n == 0 || x[0] != 0.5 {
		t.Errorf("%d samples, %v, first %v", n, err, x[0])
	}
}

// TestRecorderFailures: the message has the last words of the program, and the hint
// what to do.
func TestRecorderFailures(t *testing.T) {
	programs(t, map[string]string{"pactl": pactl, "parec": "echo 'Stream error: No such entity' >&2; exit 1", "arecord": "echo busy >&2; exit 1"})
	for _, c := range []struct{ input, want string }{
		{"parec", "parec ended: Stream error: No such entity"},
		{"parec:Desk", "parec ended: Stream error"},
		{"parec:out.monitor", `"Monitor of Desk": parec ended: Stream error`}, // named exactly
		{"parec:Monitor", `no capture device matches "Monitor"`},
		{"arecord:hw:9", `"hw:9": arecord ended: busy`},
		{"pw-record", "pw-record is not installed"},
		{"sox", "sox is not installed"},
	} {
		_, err := Open(t.Context(), Spec{Input: c.input})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || hint.Of(err) == "" {
			t.Errorf("%s: %v, want %q; hint %q", c.input, err, c.want, hint.Of(err))
		}
	}
	_, err := openAnyRecorder(t.Context(), "", false)
	if err == nil || !errors.Is(err, errNoDevice) || !strings.Contains(err.Error(), "No such entity") || !strings.Contains(err.Error(), "busy") {
		t.Errorf("%v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err = openAnyRecorder(t.Context(), "", false); !errors.Is(err, errNoDevice) || !strings.Contains(err.Error(), "parec") || hint.Of(err) == "" {
		t.Errorf("%v", err)
	}
}

// TestRecorderOfNothing: a recorder that is started and delivers nothing is killed,
// with its children.
func TestRecorderOfNothing(t *testing.T) {
	dir := programs(t, map[string]string{"pactl": pactl, "parec": "echo $$ > \"${0%/*}/pid\"; sleep 1000"})
	r, _, _ := findRecorder("parec")
	_, err := r.openWithin(t.Context(), "", false, 200*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "delivers nothing") {
		t.Error(err)
	}
	noGroup(t, filepath.Join(dir, "pid"))
}

// noGroup fails if a process of the group remains whose number is in a file.
func noGroup(t *testing.T, file string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return // killed before it began
	}
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); syscall.Kill(-pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the processes of group %d are still there", pid)
		}
	}
}

// TestRecorderOutage: a recorder that ends is started again until it
// delivers audio, as a device is reopened, and is killed at the end of the stream.
func TestRecorderOutage(t *testing.T) {
	dir := programs(t, map[string]string{"pactl": pactl, "parec": `here=${0%/*}
echo $$ > "$here/pid"
[ -e "$here/third" ] && { ` + endless + `; }
[ -e "$here/second" ] && { touch "$here/third"; exit 1; }
touch "$here/second"
printf '\000\100%.0s' $(seq 4800)
echo 'Connection terminated' >&2
exit 1`})
	src, err := Open(t.Context(), Spec{Input: "parec"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	s := Start(ctx, src, StreamOptions{})
	back := time.After(60 * time.Second)
	for gaps := 0; gaps == 0; {
		select {
		case _, ok := <-s.Chunks():
			if !ok {
				t.Fatal(s.Err())
			}
			st := s.Stats()
			if o := st.Outage; o != nil && !strings.Contains(fmt.Sprint(o.Err), "Connection terminated") {
				t.Fatal(o.Err)
			}
			if st.Outage == nil {
				gaps = len(st.Gaps)
			}
		case <-back:
			t.Fatal("the recorder is not started again")
		}
	}
	end()
	for range s.Chunks() {
	}
	noGroup(t, filepath.Join(dir, "pid"))
}

// TestRecorderLists: what programs list, as they write it.
func TestRecorderLists(t *testing.T) {
	programs(t, map[string]string{
		"pactl": pactl,
		"parec": "", "pw-record": "", "arecord": `cat <<X
**** List of CAPTURE Hardware Devices ****
card 1: PCH [HDA Intel PCH], device 0: ALC257 Analog [ALC257 Analog]
  Subdevices: 1/1
X`,
		"pw-dump": `cat <<X
[{"type":"PipeWire:Interface:Node","info":{"props":{"media.class":"Audio/Sink","node.name":"spk","node.description":"Speaker"}}},
{"type":"PipeWire:Interface:Node","info":{"props":{"media.class":"Audio/Source","node.name":"mic","node.description":"Headset","audio.position":"FL,FR"}}},
{"type":"PipeWire:Interface:Node","info":{"props":{"media.class":"Audio/Source/Virtual","node.name":"rack","audio.position":"[ FL FR FC ]"}}},
{"type":"PipeWire:Interface:Node","info":{"props":{"media.class":"Audio/Source","node.name":"one","audio.position":["MONO"]}}},
{"type":"PipeWire:Interface:Metadata","metadata":[{"key":"clock.rate","value":48000},{"key":"default.audio.source","value":{"name":"mic"}}]}]
X`,
	})
	got := fmt.Sprintf("%+v", recorderDevices(t.Context()))
	for _, want := range []string{
		"{Number:1 Name:Headset HostAPI:pw-record Channels:2 Rate:48000 Default:true Input:pw-record:1 id:mic monitor:false}",
		"{Number:2 Name:rack HostAPI:pw-record Channels:3 ",
		"{Number:3 Name:one HostAPI:pw-record Channels:1 ",
		"{Number:1 Name:Desk [31mMicrophone HostAPI:parec Channels:1 Rate:48000 Default:true Input:parec:1 id:usb monitor:false}",
		"{Number:0 Name:HDA Intel PCH, ALC257 Analog HostAPI:arecord Channels:2 Rate:48000 Default:false Input:arecord:0 id:plughw:CARD=PCH,DEV=0 monitor:false}",
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
