package device

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/capture/audiofile"
	"hubbub/capture/capturetest"
	"hubbub/protocol/testkit"
)

// TestRecordersOfVirtualMicrophone: each recorder records a tone from the default device, and from a device that it calls
// so itself, in small blocks, as it is played.
func TestRecordersOfVirtualMicrophone(t *testing.T) {
	capturetest.Need(t, "pulseaudio", "pactl", "paplay", "parec", "arecord", "sox")
	server := capturetest.SoundServer(t)
	server.Use(t)
	playTone(t, server, "paplay", "--device=mic")
	for _, input := range []string{"parec", "arecord", "arecord:pulse", "ffmpeg", "sox", "sox:virtmic"} {
		t.Run(input, func(t *testing.T) {
			t.Parallel()
			name, device, _ := strings.Cut(input, ":")
			r := FindRecorder(name)
			if _, err := exec.LookPath(r.name); err != nil {
				t.Skip(err)
			}
			s := testkit.Must(r.openWithin(t.Context(), device, false, false, time.Minute))(t)
			hearsTone(t, s, 1)
		})
	}
}

// TestRemovedMicrophone: when a microphone is removed, the sound server gives its recorder another one. That ends the
// recorder: nobody's voice is recorded under the name of a device that is gone.
func TestRemovedMicrophone(t *testing.T) {
	capturetest.Need(t, "pulseaudio", "pactl", "parec")
	server := capturetest.SoundServer(t)
	server.Use(t)
	server.Run(t, "pactl", "load-module", "module-rescue-streams")
	desk := server.Run(t, "pactl", "load-module", "module-remap-source", "master=mic.monitor", "source_name=desk", "source_properties=device.description=Büro")
	r := FindRecorder("parec")
	s, err := r.openWithin(t.Context(), "büro", false, false, time.Minute)
	testkit.NoError(t, err)
	defer s.Close()
	testkit.Equal(t, s.Device().Name, "Büro", "the device is called")
	server.Run(t, "pactl", "unload-module", desk)
	for deadline := time.Now().Add(time.Minute); err == nil && time.Now().Before(deadline); {
		_, _, err = s.Read()
	}
	if err == nil || !strings.Contains(err.Error(), "the sound server moved it to another device") {
		t.Errorf("after the removal: %v", err)
	}
}

// TestNoMicrophone: what the machine plays is not taken for one.
func TestNoMicrophone(t *testing.T) {
	capturetest.Need(t, "pulseaudio", "pactl", "parec", "arecord")
	server := capturetest.SoundServer(t)
	server.Use(t)
	if list, err := List(t.Context()); PlaysOnly(t.Context()) || len(list) == 0 {
		t.Errorf("the server has a microphone: %v, %v", list, err)
	}
	server.Run(t, "pactl", "unload-module", "module-remap-source")
	if list, err := List(t.Context()); !PlaysOnly(t.Context()) || len(list) != 0 {
		t.Errorf("the server has no microphone: %v, %v", list, err)
	}
	if s, err := OpenRecorder(t.Context(), "", false); !errors.Is(err, ErrNone) {
		if err == nil {
			_ = s.Close()
		}
		t.Errorf("%v", err)
	}
}

// TestPipeWire: the first recorder records the default microphone, one by its name, and what an output plays, mixed and with its channels.
func TestPipeWire(t *testing.T) {
	server := capturetest.PipeWire(t)
	server.Use(t)
	devices := recorderDevices(t.Context())
	if len(devices) == 0 || !devices[0].Default || devices[0].Name != "Virtual Microphone" || devices[0].Channels != 1 || !strings.HasPrefix(devices[0].Input, "pw-record:") {
		t.Fatalf("%+v", devices)
	}
	playTone(t, server, "pw-play", "--target", "mic")
	r := FindRecorder("pw-record")
	for _, c := range []struct {
		name     string
		open     func() (Stream, error)
		channels int
	}{
		{"default", func() (Stream, error) { return OpenRecorder(t.Context(), "", false) }, 1},
		{"named", func() (Stream, error) { return r.openWithin(t.Context(), "virtual micro", false, false, time.Minute) }, 1},
		{"speakers", func() (Stream, error) { return r.openWithin(t.Context(), "", true, false, time.Minute) }, 1},
		{"channels of speakers", func() (Stream, error) { return r.openWithin(t.Context(), "", true, true, time.Minute) }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := testkit.Must(c.open())(t)
			hearsTone(t, s, c.channels)
		})
	}
}

const toneHz = 440

// playTone plays a tone with a program of the server until the test ends.
func playTone(t *testing.T, server *capturetest.Server, program ...string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tone.wav")
	w := testkit.Must(audiofile.CreateWAV(path))(t)
	testkit.NoError(t, errors.Join(w.Write(capturetest.Tone(audiofile.SampleRate, toneHz, 60*audiofile.SampleRate)), w.Close()))
	player := server.Command("sh", append([]string{"-c", `while "$@"; do :; done`, "sh"}, append(program, path)...)...)
	testkit.Start(t, player)
	t.Cleanup(func() {
		server.Stop() // which ends the player, and so the loop
		_ = player.Wait()
	})
}

// hearsTone reads until a second of the tone alone is in each channel, which takes longer on a busy machine, and closes the
// stream: the audio comes in small blocks.
func hearsTone(t *testing.T, s Stream, channels int) {
	t.Helper()
	defer s.Close()
	if _, n := s.Format(); n != channels {
		t.Fatalf("%d channels, want %d", n, channels)
	}
	const least, most = 4, 20 // seconds
	x := make([][]float32, channels)
	waits := 0
	for seconds := least; ; seconds++ {
		for len(x[0]) < seconds*audiofile.SampleRate {
			begin := time.Now()
			block, _, err := s.Read()
			testkit.NoError(t, err)
			if time.Since(begin) > 5*time.Millisecond && len(x[0]) < least*audiofile.SampleRate {
				waits++
			}
			for i, v := range block {
				x[i%channels] = append(x[i%channels], v)
			}
		}
		report := ""
		for c, x := range x {
			at, rest := capturetest.Power(x[(seconds-1)*audiofile.SampleRate:], audiofile.SampleRate, toneHz)
			if at < 0.05 || capturetest.DB(rest/at) > -20 {
				report += fmt.Sprintf("channel %d: power %.3f at %d Hz, the rest at %.1f dB\n", c+1, at, toneHz, capturetest.DB(rest/at))
			}
		}
		if report == "" {
			break
		}
		if seconds == most {
			t.Error(report)
			break
		}
	}
	t.Logf("%d waits for %d blocks", waits, 10*least)
	if waits < 10 { // with audio every 2 s there are fewer than 7
		t.Errorf("%d waits for %d s of audio", waits, least)
	}
}
