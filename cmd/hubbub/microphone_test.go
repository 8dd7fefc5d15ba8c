//go:build cgo && linux

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"hubbub/capture/capturetest"
	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// pause suspends the virtual microphone, or resumes it.
func pause(t *testing.T, s *capturetest.Server, suspend string) {
	t.Helper()
	s.Run(t, "pactl", "suspend-source", "virtmic", suspend)
}

// recorded reads the gaps and the length of a recording with audio.
func recorded(t *testing.T, dir string) (gaps []protocol.Span, length float64) {
	t.Helper()
	r := testkit.Must(recording.Read(t.Context(), dir))(t)
	return r.Info.Gaps, recordedSeconds(t, filepath.Join(dir, recording.AudioFile))
}

// TestMicrophonePauses suspends a microphone for longer than a stall: the session
// and its recording continue, the recording keeps up with the wall clock, and the
// silent microphone is reported before and after.
func TestMicrophonePauses(t *testing.T) {
	t.Parallel()
	capturetest.Need(t, "pulseaudio", "pactl")
	capturetest.NeedReopening(t)
	server := capturetest.SoundServer(t)
	dir := filepath.Join(t.TempDir(), "rec")
	p := startWith(t, server.Vars, "live", "--input", "mic", "--output", "json", "--record", dir)
	p.says(`" delivers only silence: is it muted`, 1)
	pause(t, server, "1")
	p.says("no audio from", 1)
	pause(t, server, "0")
	p.says("delivers audio again", 1)
	p.signal(os.Interrupt)
	p.ends(exitInterrupted)
	gaps, length := recorded(t, dir)
	if len(gaps) != 1 || gaps[0].End-gaps[0].Start < 1 || length < gaps[0].End {
		t.Errorf("%.1f s are recorded, gaps %v", length, gaps)
	}
}

// TestMicrophoneFollows: the sound server gives PortAudio's default device another microphone, which is reported, as is
// that it has none left.
func TestMicrophoneFollows(t *testing.T) {
	t.Parallel()
	capturetest.Need(t, "pulseaudio", "pactl")
	server := capturetest.SoundServer(t)
	server.Run(t, "pactl", "set-default-source", "virtmic")
	server.Run(t, "pactl", "load-module", "module-remap-source", "master=mic.monitor", "source_name=usb", "source_properties=device.description=Headset")
	p := startWith(t, server.Vars, "live", "--input", "mic", "--output", "json")
	p.says("delivers only silence", 1) // so the watch has begun
	server.Run(t, "pactl", "set-default-source", "usb")
	p.says(`the sound server records "Headset" instead of `, 1)
	server.Run(t, "pactl", "unload-module", "module-remap-source")
	p.says(": the sound server has no microphone any more; reopening it", 1)
	p.signal(os.Interrupt)
	p.ends(exitInterrupted)
}

// TestMicrophoneOnScreen: the screen names a suspended microphone, and stays when
// its sound server is killed; ctrl+z and fg are a gap like any other.
func TestMicrophoneOnScreen(t *testing.T) {
	t.Parallel()
	capturetest.Need(t, "pulseaudio", "pactl")
	capturetest.NeedReopening(t)
	server := capturetest.SoundServer(t)
	x := inTerminalWith(t, 120, 34, server.Vars, "live", "--input", "mic")
	x.Shows("connected", `^ hubbub .*0:0[3-9] *$`) // the time of the session, not of the axis
	x.kill("-STOP")
	time.Sleep(3 * time.Second) // the pause itself
	x.kill("-CONT")
	x.Shows("delivers audio again")
	pause(t, server, "1")
	x.Shows(`no audio from "default" since \d:\d\d: reopening it until 2:\d\d`)
	pause(t, server, "0")
	x.Shows("delivers audio again")
	server.Stop()
	x.Shows(`no audio from`, "connected")
	x.Keys("q")
	x.ends(exitOK)
}

// TestChooseMicrophoneOnScreen: i lists the microphones with a level, and the session
// continues with the one that is chosen, without a gap.
func TestChooseMicrophoneOnScreen(t *testing.T) {
	t.Parallel()
	capturetest.Need(t, "pulseaudio", "pactl", "parec")
	capturetest.NeedReopening(t)
	server := capturetest.SoundServer(t)
	dir := filepath.Join(t.TempDir(), "rec")
	x := inTerminalWith(t, 120, 34, server.Vars, "live", "--input", "mic", "--record", dir)
	x.Shows("connected", `^ hubbub .*0:0[1-9] *$`) // the time of the session, not of the axis
	x.Keys("i")
	x.Shows("parec", "in use")
	x.Keys("Down", "Down", "Down") // to the end of the list
	x.Shows("silent")
	x.Keys("Enter")
	x.Shows("is used now")
	x.Keys("q")
	x.ends(exitOK)
	if gaps, length := recorded(t, dir); len(gaps) != 0 || length < 1 {
		t.Errorf("%.1f s are recorded, gaps %v", length, gaps)
	}
}

// TestEqualMicrophonesOnScreen: of two microphones with one name, the list tells which is which, and which one is in use.
func TestEqualMicrophonesOnScreen(t *testing.T) {
	t.Parallel()
	capturetest.Need(t, "pulseaudio", "pactl", "parec")
	server := capturetest.SoundServer(t)
	for _, name := range []string{"left", "right"} {
		server.Run(t, "pactl", "load-module", "module-remap-source", "master=mic.monitor", "source_name="+name, "source_properties=device.description=Headset")
	}
	x := inTerminalWith(t, 120, 34, server.Vars, "live", "--input", "parec:right")
	x.Shows("connected", `^ hubbub .*0:0[1-9] *$`) // the time of the session, not of the axis
	x.Keys("i")
	x.Shows(`▌ Headset \(parec:2\) .* in use`, `Headset \(parec:1\) +parec *$`)
	x.Keys("Escape", "q")
	x.ends(exitOK)
}
