package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"hubbub/capture/audiofile"
	"hubbub/capture/capturetest"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

func rawFloats(x []float32) []byte {
	b, _ := binary.Append(nil, binary.LittleEndian, x)
	return b
}

func openReader(t testing.TB, r io.Reader) (Source, error) {
	t.Helper()
	src, err := Open(context.Background(), Spec{Input: "-", Stdin: r})
	if err == nil {
		t.Cleanup(func() { _ = src.Close() })
	}
	return src, err
}

// TestRawInput: pcm_f32le in blocks of any size, also silence.
func TestRawInput(t *testing.T) {
	for name, want := range map[string][]float32{
		"tone": capturetest.Tone(SampleRate, 440, 5000), "silence": make([]float32, 3000), "one sample": {0.25}, "noise": noisy(4321),
	} {
		src, err := openReader(t, &pieces{r: bytes.NewReader(rawFloats(want))})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if i := src.Info(); i.Kind != Stdin || i.Base != "live" || i.Rate != SampleRate || i.Channels != 1 || i.Duration != 0 {
			t.Errorf("%s: %+v", name, i)
		}
		capturetest.Same(t, name, readAll(t, src, 333), want, 0)
		if n := src.Notices(); len(n) > 0 {
			t.Errorf("%s: notices %q", name, n)
		}
	}
}

// TestSamplesThatAreNoNumbers: they are replaced by silence, with a notice.
func TestSamplesThatAreNoNumbers(t *testing.T) {
	x := capturetest.Tone(SampleRate, 440, 1600)
	x[100], x[101], x[102] = float32(math.NaN()), float32(math.Inf(1)), 1e30
	src := testkit.Must(openReader(t, bytes.NewReader(rawFloats(x))))(t)
	got := readAll(t, src, 160)
	x[100], x[101], x[102] = 0, 0, 0
	capturetest.Same(t, "cleaned", got, x, 0)
	if n := src.Notices(); len(n) != 1 || !strings.Contains(n[0], "3 samples") {
		t.Errorf("notices %q", n)
	}
}

// pieces returns a reader's bytes a few at a time.
type pieces struct {
	r io.Reader
	n int
}

func (p *pieces) Read(b []byte) (int, error) {
	p.n = p.n%7 + 1
	return p.r.Read(b[:min(len(b), p.n)])
}

func TestRawInputThatEndsWithinASample(t *testing.T) {
	want := capturetest.Tone(SampleRate, 440, 500)
	src := testkit.Must(openReader(t, bytes.NewReader(rawFloats(want)[:1999])))(t)
	capturetest.Same(t, "cut", readAll(t, src, 333), want[:499], 0)
	if n := src.Notices(); len(n) != 1 || !strings.Contains(n[0], "3 extra bytes") {
		t.Errorf("notices %q", n)
	}
}

func TestInputThatIsNoAudio(t *testing.T) {
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"nothing": {nil, "is empty"},
		"text":    {[]byte("hello\n"), "is text"},
		"16 bits": {audiofile.AppendPCM16(nil, capturetest.Tone(SampleRate, 440, 3000)), "neither WAV nor raw"},
		"ogg":     {append([]byte("OggS"), make([]byte, 99)...), "Ogg"},
	} {
		_, err := openReader(t, bytes.NewReader(c.b))
		if err == nil || !strings.Contains(err.Error(), c.want) || hint.Of(err) == "" {
			t.Errorf("%s: %v; want %q in it", name, err, c.want)
		}
	}
}

// TestRawInputThatBeginsWithSilence: it is of any format. What follows says whether the samples are floats.
func TestRawInputThatBeginsWithSilence(t *testing.T) {
	x := append(make([]float32, SampleRate), capturetest.Tone(SampleRate, 440, SampleRate)...)
	src := testkit.Must(openReader(t, bytes.NewReader(rawFloats(x))))(t)
	capturetest.Same(t, "floats", readAll(t, src, 333), x, 0)

	src = testkit.Must(openReader(t, &pieces{r: bytes.NewReader(audiofile.AppendPCM16(nil, x))}))(t)
	if got, err := drain(src, 333); err == nil || !strings.Contains(err.Error(), "neither WAV nor raw") || hint.Of(err) == "" {
		t.Errorf("16 bits: %d samples, %v", len(got), err)
	}
}

// TestFLACFromAPipe: the format of a pipe is detected from the content.
func TestFLACFromAPipe(t *testing.T) {
	src := testkit.Must(openReader(t, iotest.HalfReader(bytes.NewReader(demoFLAC))))(t)
	testkit.Equal(t, len(readAll(t, src, 1600)), 1260640, "samples of the demo")
}

// TestPausedPipe: a pipe that pauses has not ended.
func TestPausedPipe(t *testing.T) {
	r, w := io.Pipe()
	x := capturetest.Tone(SampleRate, 440, 2*ChunkSamples)
	b := rawFloats(x)
	go func() {
		_, _ = w.Write(b[:3])
		time.Sleep(50 * time.Millisecond)
		_, _ = w.Write(b[3:5001])
		time.Sleep(200 * time.Millisecond)
		_, _ = w.Write(b[5001:])
		_ = w.Close()
	}()
	src := testkit.Must(openReader(t, r))(t)
	capturetest.Same(t, "paused", readAll(t, src, 1600), x, 0)
}

// TestIdlePipeIsCancelled: opening and reading an idle pipe end with the context.
func TestIdlePipeIsCancelled(t *testing.T) {
	r, w, err := os.Pipe()
	testkit.NoError(t, err)
	defer w.Close()
	defer r.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := Open(ctx, Spec{Input: "-", Stdin: r}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("opening an idle pipe: %v", err)
	}

	r2, w2, err := os.Pipe()
	testkit.NoError(t, err)
	defer w2.Close()
	defer r2.Close()
	go func() { _, _ = w2.Write(rawFloats(capturetest.Tone(SampleRate, 440, 1700))) }() // more than a pipe of Windows has room for
	src := testkit.Must(Open(context.Background(), Spec{Input: "-", Stdin: r2}))(t)
	ctx2, cancel2 := context.WithCancel(context.Background())
	defer cancel2()
	s := NewChunkReader(ctx2, src, Fast)
	for c := range s.Chunks() {
		if c.Valid != ChunkSamples {
			t.Fatalf("%d samples", c.Valid)
		}
		time.AfterFunc(50*time.Millisecond, cancel2)
	}
	if !errors.Is(s.Err(), context.Canceled) {
		t.Errorf("the stream ended with %v", s.Err())
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("it took %v", d)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("input/output error") }

type panickyReader struct{}

func (panickyReader) Read([]byte) (int, error) { panic("reader") }

func TestAReaderThatFails(t *testing.T) {
	for _, r := range []io.Reader{failing{}, panickyReader{}} {
		if _, err := openReader(t, r); err == nil || hint.Of(err) == "" {
			t.Errorf("%T: %v", r, err)
		}
	}
	x := capturetest.Tone(SampleRate, 440, 500)
	src := testkit.Must(openReader(t, io.MultiReader(bytes.NewReader(rawFloats(x)), failing{})))(t)
	got, err := drain(src, 100)
	capturetest.Same(t, "before the failure", got, x, 0)
	if err == nil || !strings.Contains(err.Error(), "input/output") || hint.Of(err) == "" {
		t.Error(err)
	}
}
