package capture

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/capture/audiofile"
	"hubbub/capture/capturetest"
)

// TestRecordersOfVirtualMicrophone: each recorder records a tone from the default device in small blocks, as it is played.
func TestRecordersOfVirtualMicrophone(t *testing.T) {
	capturetest.Need(t, "pulseaudio", "pactl", "paplay", "parec", "arecord", "sox")
	server := capturetest.SoundServer(t)
	for _, v := range server.Vars {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	const hz = 440
	path := filepath.Join(t.TempDir(), "tone.wav")
	w, err := audiofile.CreateWAV(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(capturetest.Tone(SampleRate, hz, 60*SampleRate)), w.Close()); err != nil {
		t.Fatal(err)
	}
	player := server.Command("sh", "-c", `while paplay --device=mic "$0"; do :; done`, path)
	if err := player.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // which ends paplay, and so the loop
		_ = player.Wait()
	})
	for _, name := range []string{"parec", "arecord", "ffmpeg", "sox"} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil {
				t.Skip(err)
			}
			r, _, _ := findRecorder(name)
			s, err := r.openWithin(t.Context(), "", false, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			const length = 6 * SampleRate
			var x []float32
			waits := 0
			for len(x) < length {
				begin := time.Now()
				block, _, err := s.read()
				if err != nil {
					t.Fatal(err)
				}
				if time.Since(begin) > 5*time.Millisecond {
					waits++
				}
				x = append(x, block...)
			}
			if at, rest := capturetest.Power(x[length/2:], SampleRate, hz); at < 0.05 || capturetest.DB(rest/at) > -20 {
				t.Errorf("power %.3f at %d Hz, the rest at %.1f dB", at, hz, capturetest.DB(rest/at))
			}
			t.Logf("%d waits for 60 blocks", waits)
			if waits < 15 { // with audio every 2 s there are fewer than 10
				t.Errorf("%d waits for 6 s of audio", waits)
			}
		})
	}
}
