package device

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/capture/audiofile"
	"hubbub/capture/capturetest"
)

// TestRecordersOfVirtualMicrophone: each recorder records a tone from the default device, and from a device that it calls
// so itself, in small blocks, as it is played.
func TestRecordersOfVirtualMicrophone(t *testing.T) {
	capturetest.Need(t, "pulseaudio", "pactl", "paplay", "parec", "arecord", "sox")
	server := capturetest.SoundServer(t)
	inEnvironment(t, server)
	playTone(t, server, "paplay", "--device=mic")
	for _, input := range []string{"parec", "arecord", "arecord:pulse", "ffmpeg", "sox", "sox:virtmic"} {
		t.Run(input, func(t *testing.T) {
			r, device, _ := FindRecorder(input)
			if _, err := exec.LookPath(r.name); err != nil {
				t.Skip(err)
			}
			s, err := r.openWithin(t.Context(), device, false, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			hearsTone(t, s, 1)
		})
	}
}

// TestPipeWire: the first recorder records the default microphone, one by its name, and what an output plays, mixed and with its channels.
func TestPipeWire(t *testing.T) {
	server := capturetest.PipeWire(t)
	inEnvironment(t, server)
	devices := recorderDevices(t.Context())
	if len(devices) == 0 || !devices[0].Default || devices[0].Name != "Virtual Microphone" || devices[0].Channels != 1 || !strings.HasPrefix(devices[0].Input, "pw-record:") {
		t.Fatalf("%+v", devices)
	}
	playTone(t, server, "pw-play", "--target", "mic")
	r, _, _ := FindRecorder("pw-record")
	output := func(ctx context.Context) (Device, error) { return r.findOutput(ctx, "") }
	for _, c := range []struct {
		name     string
		open     func() (Stream, error)
		channels int
	}{
		{"default", func() (Stream, error) { return OpenRecorder(t.Context(), "", false) }, 1},
		{"named", func() (Stream, error) { return r.openWithin(t.Context(), "virtual micro", false, time.Minute) }, 1},
		{"speakers", func() (Stream, error) { return r.openDevice(t.Context(), output, false, time.Minute) }, 1},
		{"channels of speakers", func() (Stream, error) { return r.openDevice(t.Context(), output, true, time.Minute) }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := c.open()
			if err != nil {
				t.Fatal(err)
			}
			hearsTone(t, s, c.channels)
		})
	}
}

// inEnvironment makes the test a client of the server.
func inEnvironment(t *testing.T, server *capturetest.Server) {
	for _, v := range server.Vars {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
}

const toneHz = 440

// playTone plays a tone with a program of the server until the test ends.
func playTone(t *testing.T, server *capturetest.Server, program ...string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tone.wav")
	w, err := audiofile.CreateWAV(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(capturetest.Tone(audiofile.SampleRate, toneHz, 60*audiofile.SampleRate)), w.Close()); err != nil {
		t.Fatal(err)
	}
	player := server.Command("sh", append([]string{"-c", `while "$@"; do :; done`, "sh"}, append(program, path)...)...)
	if err := player.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Stop() // which ends the player, and so the loop
		_ = player.Wait()
	})
}

// hearsTone reads 6 s and closes the stream: the tone is in each channel, in small blocks.
func hearsTone(t *testing.T, s Stream, channels int) {
	t.Helper()
	defer s.Close()
	if _, n := s.Format(); n != channels {
		t.Fatalf("%d channels, want %d", n, channels)
	}
	x := make([][]float32, channels)
	waits := 0
	for len(x[0]) < 6*audiofile.SampleRate {
		begin := time.Now()
		block, _, err := s.Read()
		if err != nil {
			t.Fatal(err)
		}
		if time.Since(begin) > 5*time.Millisecond {
			waits++
		}
		for i, v := range block {
			x[i%channels] = append(x[i%channels], v)
		}
	}
	for c, x := range x {
		if at, rest := capturetest.Power(x[3*audiofile.SampleRate:], audiofile.SampleRate, toneHz); at < 0.05 || capturetest.DB(rest/at) > -20 {
			t.Errorf("channel %d: power %.3f at %d Hz, the rest at %.1f dB", c+1, at, toneHz, capturetest.DB(rest/at))
		}
	}
	t.Logf("%d waits for 60 blocks", waits)
	if waits < 15 { // with audio every 2 s there are fewer than 10
		t.Errorf("%d waits for 6 s of audio", waits)
	}
}
