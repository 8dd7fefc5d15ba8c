package audiofile

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"hubbub/capture/capturetest"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"

	"github.com/go-audio/wav"
)

// TestWAVWriter: what was written is read back, by our reader and by another.
func TestWAVWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audio.wav")
	w := testkit.Must(CreateWAV(path))(t)
	want := capturetest.Tone(SampleRate, 440, 70_000)
	for i := 0; i < len(want); i += 1600 {
		testkit.NoError(t, w.Write(want[i:min(len(want), i+1600)]))
	}
	testkit.NoError(t, w.Close())
	if err := errors.Join(w.Write(want), w.Save()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a closed writer takes samples: %v", err)
	}
	file := testkit.Must(os.ReadFile(path))(t)
	back := mustDecode(t, "read back", file, false, 1600)
	if f := back.format; f.Notice != "" || f.Rate != SampleRate || f.Channels != 1 {
		t.Errorf("%+v", f)
	}
	capturetest.Same(t, "read back", back.samples, want, 1.0/32768)

	f := testkit.Must(os.Open(path))(t)
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
		testkit.Equal(t, pcm16(x), want, x, "becomes")
	}
	testkit.Equal(t, pcm16(float32(math.NaN())), 0, "NaN is not silence")
	for i := math.MinInt16; i <= math.MaxInt16; i++ {
		if pcm16(float32(i)*fullScale(16)) != int16(i) {
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

// TestSave: a copy of the file is complete although the writer is not closed.
func TestSave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audio.wav")
	w := testkit.Must(CreateWAV(path))(t)
	defer w.Close()
	want := capturetest.Tone(SampleRate, 440, 5000)
	testkit.NoError(t, errors.Join(w.Write(want), w.Silence(300), w.Save()))
	b := testkit.Must(os.ReadFile(path))(t)
	if !bytes.Equal(b[:WAVHeaderBytes], WAVHeader(2*5300)) {
		t.Errorf("% x", b[:WAVHeaderBytes])
	}
	capturetest.Same(t, "copy", mustDecode(t, "copy", b, false, 1600).samples, append(want, make([]float32, 300)...), 1.0/32768)
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
	w := testkit.Must(CreateWAV(filepath.Join(b.TempDir(), "audio.wav")))(b)
	x := capturetest.Tone(SampleRate, 440, SampleRate/10)
	b.ReportAllocs()
	for b.Loop() {
		testkit.NoError(b, w.Write(x))
	}
	_ = w.Close()
}
