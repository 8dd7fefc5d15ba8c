package audiofile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"hubbub/capture/capturetest"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"

	"github.com/go-audio/wav"
)

// TestWAVWriter: what was written is read back, by our reader and by another.
func TestWAVWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audio.wav")
	w, err := CreateWAV(path)
	testkit.NoError(t, err)
	want := capturetest.Tone(SampleRate, 440, 70_000)
	for i := 0; i < len(want); i += 1600 {
		testkit.NoError(t, w.Write(want[i:min(len(want), i+1600)]))
	}
	testkit.NoError(t, errors.Join(w.Close(), w.Close()))
	if err := w.Write(want); err == nil {
		t.Error("a closed writer takes samples")
	}
	file, err := os.ReadFile(path)
	testkit.NoError(t, err)
	back := mustDecode(t, "read back", file, false, 1600)
	if f := back.format; f.Notice != "" || f.Rate != SampleRate || f.Channels != 1 {
		t.Errorf("%+v", f)
	}
	capturetest.Same(t, "read back", back.samples, want, 1.0/32768)

	f, err := os.Open(path)
	testkit.NoError(t, err)
	defer f.Close()
	d := wav.NewDecoder(f)
	b, err := d.FullPCMBuffer()
	if err != nil || !d.IsValidFile() || len(b.Data) != len(want) || d.SampleRate != SampleRate || d.NumChans != 1 || d.BitDepth != 16 {
		t.Errorf("another reader finds %d samples, rate %d, %v", len(b.Data), d.SampleRate, err)
	}
}

func TestPCM16(t *testing.T) {
	for x, want := range map[float32]int16{0: 0, 1: 32767, -1: -32768, 5: 32767, -5: -32768, 0.5: 16384,
		float32(math.Inf(1)): 32767, float32(math.Inf(-1)): -32768} {
		if got := PCM16(x); got != want {
			t.Errorf("%g becomes %d, want %d", x, got, want)
		}
	}
	if PCM16(float32(math.NaN())) != 0 {
		t.Error("NaN is not silence")
	}
	for i := math.MinInt16; i <= math.MaxInt16; i++ {
		if PCM16(float32(i)*fullScale(16)) != int16(i) {
			t.Fatalf("%d is not read back", i)
		}
	}
}

// TestWAVSizeLimit: after 37 hours the sizes in the header are at their maximum.
func TestWAVSizeLimit(t *testing.T) {
	h := WAVHeader(5 << 30)
	if !bytes.Equal(h[4:8], []byte{255, 255, 255, 255}) || !bytes.Equal(h[40:44], []byte{255, 255, 255, 255}) {
		t.Fatalf("% x", h)
	}
}

// TestRecordingInProgress: a second after a write, a copy of the file is complete
// although the writer was neither written to again nor closed.
func TestRecordingInProgress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audio.wav")
	w, err := CreateWAV(path)
	testkit.NoError(t, err)
	defer w.Close()
	want := capturetest.Tone(SampleRate, 440, 5000)
	testkit.NoError(t, w.Write(want))
	var b []byte
	testkit.Eventually(t, "a complete file", func() bool {
		b, err = os.ReadFile(path)
		testkit.NoError(t, err)
		return len(b) == WAVHeaderBytes+2*len(want) && bytes.Equal(b[:WAVHeaderBytes], WAVHeader(int64(2*len(want))))
	})
	capturetest.Same(t, "copy", mustDecode(t, "copy", b, false, 1600).samples, want, 1.0/32768)
}

// recorderChild records a ramp in real time and prints the number of each chunk,
// until it is killed.
func recorderChild() {
	w, err := CreateWAV(os.Getenv(asChild))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	x := make([]float32, chunkSamples)
	for n := 0; ; n++ {
		for i := range x {
			x[i] = ramp(n*chunkSamples + i)
		}
		if err := w.Write(x); err != nil {
			os.Exit(1)
		}
		fmt.Println(n)
		time.Sleep(100 * time.Millisecond)
	}
}

// chunkSamples is 100 ms.
const chunkSamples = 1600

func ramp(i int) float32 { return float32(i%20000-10000) * fullScale(16) }

// TestKilledRecorder: a program that is killed with SIGKILL leaves a recording
// that is readable up to the last second.
func TestKilledRecorder(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process")
	}
	path := filepath.Join(t.TempDir(), "audio.wav")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"="+path)
	out, err := cmd.StdoutPipe()
	testkit.NoError(t, err)
	testkit.NoError(t, cmd.Start())
	chunks := 0
	var times []time.Time
	for lines := bufio.NewScanner(out); chunks < 25 && lines.Scan(); chunks++ {
		times = append(times, time.Now())
	}
	testkit.NoError(t, cmd.Process.Kill())
	killed := time.Now()
	_ = cmd.Wait()
	file, err := os.ReadFile(path)
	testkit.NoError(t, err)
	got := mustDecode(t, "killed", file, false, 1600).samples
	for i, v := range got {
		if v != ramp(i) {
			t.Fatalf("sample %d is %g, want %g", i, v, ramp(i))
		}
	}
	// Everything older than a second must be there, and a second more for a busy
	// machine.
	old := 0
	for _, at := range times {
		if killed.Sub(at) > 2*time.Second {
			old++
		}
	}
	if len(got) < old*chunkSamples || old == 0 {
		t.Errorf("%d samples of %d chunks, %d of them old", len(got), chunks, old)
	}
	t.Logf("%.1f s of %.1f s are in the file", float64(len(got))/SampleRate, float64(chunks)/10)
}

func TestDiskThatFails(t *testing.T) {
	if _, err := CreateWAV(filepath.Join(t.TempDir(), "none", "audio.wav")); err == nil || hint.Of(err) == "" {
		t.Error(err)
	}
	w, err := CreateWAV("/dev/full")
	if err == nil {
		_ = w.Close()
		t.Skip("no /dev/full here")
	}
	if hint.Of(err) == "" {
		t.Error(err)
	}
}

func BenchmarkWAVWriter(b *testing.B) {
	w, err := CreateWAV(filepath.Join(b.TempDir(), "audio.wav"))
	testkit.NoError(b, err)
	x := capturetest.Tone(SampleRate, 440, chunkSamples)
	b.ReportAllocs()
	for b.Loop() {
		testkit.NoError(b, w.Write(x))
	}
	_ = w.Close()
}
