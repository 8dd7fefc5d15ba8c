//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hubbub/capture/capturetest"
	"hubbub/protocol/testkit"
)

// TestMicrophoneWithoutCgo: a build without PortAudio records speech with parec, and
// lists and tests the device. Without a recorder the list says what to install.
func TestMicrophoneWithoutCgo(t *testing.T) {
	t.Parallel()
	capturetest.Need(t, "pulseaudio", "pactl", "paplay", "parec")
	program := filepath.Join(t.TempDir(), "hubbub")
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	bare := exec.Command(program, "devices")
	bare.Env = append(os.Environ(), "PATH="+t.TempDir())
	out, err := bare.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "no PortAudio") || !strings.Contains(string(out), "\nInstall parec") {
		t.Errorf("without a recorder: %v\n%s", err, out)
	}
	server := capturetest.SoundServer(t)
	player := server.Command("sh", "-c", `while paplay --device=mic "$0"; do :; done`, demoFile(t))
	testkit.Start(t, player)
	t.Cleanup(func() {
		_ = server.Process.Kill() // which ends paplay, and so the loop
		_ = player.Wait()
	})
	out, err = server.Command(program, "devices", "--test").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "parec:0") || !strings.Contains(string(out), "peak") || strings.Contains(string(out), "silent") {
		t.Errorf("%v\n%s", err, out)
	}
	p := startProgram(t, program, server.Vars, "live", "--input", "mic", "--output", "lines", "--pace", "fast")
	testkit.Contains(t, p.line(""), " SPEAKER_00", "first line")
	// What the machine plays, here to the microphone's own sink.
	speakers := startProgram(t, program, server.Vars, "live", "--input", "speakers:Null", "--output", "lines")
	testkit.Contains(t, speakers.line(""), " SPEAKER_00", "first line from the speakers")
	p.signal(os.Interrupt)
	p.ends(exitInterrupted, "hubbub: --pace has no effect on a device")
}
