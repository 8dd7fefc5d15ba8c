package capture

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"hubbub/capture/capturetest"
	"hubbub/protocol/testkit"
)

// TestNoAudio: the error for an input without audio names the cause and has a
// hint.
func TestNoAudio(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ path, want string }{
		"missing":    {filepath.Join(dir, "none.wav"), "no such file"},
		"folder":     {dir, "is a folder"},
		"empty":      {write(t, "x.wav", nil), "is empty"},
		"text":       {write(t, "x.wav", []byte("Dear all, the minutes of the meeting:\n\tcafé\n")), "is text"},
		"one letter": {write(t, "x.wav", []byte("a")), "is text"},
		"zeros":      {write(t, "x.wav", make([]byte, 5000)), "not an audio file"},
		"ogg":        {write(t, "x.wav", append([]byte("OggS"), make([]byte, 99)...)), "Ogg"},
		"m4a":        {write(t, "x.wav", append([]byte("\x00\x00\x00\x20ftypM4A "), make([]byte, 99)...)), "MP4"},
		"tag only":   {write(t, "x.mp3", []byte("ID3\x04\x00\x00\x00\x00\x00\x00")), "ends after its tag"},
		"half a tag": {write(t, "x.mp3", []byte("ID3\x04\x00\x00\x7f\x7f\x7f\x7fxx")), "ends within its tag"},
		"flac head":  {write(t, "x.flac", []byte("fLaC\x00\x00\x00\x22")), "ends within its header"},
		"flac noise": {write(t, "x.flac", append([]byte("fLaC\x80\x00\x00\x22"), make([]byte, 500)...)), "damaged"},
	} {
		refused(t, name, c.path, c.want)
	}
}

// refused expects that an input does not open.
func refused(t *testing.T, name, input, text string) {
	t.Helper()
	src, err := Open(context.Background(), Spec{Input: input})
	if err == nil {
		_ = src.Close()
	}
	capturetest.Rejected(t, name, err, text)
}

func TestRTTMName(t *testing.T) {
	for path, want := range map[string]string{
		"/x/monday.meeting.wav": "monday.meeting", "a b.flac": "a_b", ".hidden": ".hidden", ".hidden.wav": ".hidden", "noending": "noending", " .wav": "live", "/": "live",
	} {
		testkit.Equal(t, RTTMName(path), want, path)
	}
}

// TestDemo: the conversation that was asked for has no notice, and its RTTM is
// correct: there is speech in the turns and none outside.
func TestDemo(t *testing.T) {
	src := testkit.Must(Open(context.Background(), Spec{Input: "demo"}))(t)
	defer src.Close()
	i := src.Info()
	if i.Kind != Demo || i.Base != "live" || i.Notice != "" || i.Duration < 70*time.Second || i.Duration > 80*time.Second {
		t.Errorf("%+v", i)
	}
	if len(demoFLAC) > 1_000_000 {
		t.Errorf("the demo has %d bytes", len(demoFLAC))
	}
	x := readAll(t, src, 1600)
	turns := demoTurns(t)
	spoken := make([]int, len(x)/160+1) // voices in each 10 ms
	for _, u := range turns {
		for f := int(u.start * 100); f < int(u.end*100); f++ {
			spoken[f]++
		}
	}
	loud, quiet, overlap := 0, 0, 0
	for f := range len(x) / 160 {
		l := measure(x[160*f : 160*f+160]).RMS
		if l == 0 {
			t.Fatalf("digital silence at %d ms", 10*f)
		}
		if spoken[f] > 0 && l > 0.003 {
			loud++
		}
		if spoken[f] == 0 && l > 0.003 {
			quiet++
		}
		if spoken[f] > 1 {
			overlap++
		}
	}
	if loud < 4500 || quiet > 60 || overlap < 100 {
		t.Errorf("of %d frames %d are loud within turns, %d outside; %d overlap", len(spoken), loud, quiet, overlap)
	}
	last := map[string]float64{}
	longest := 0.0
	for _, u := range turns {
		if e, ok := last[u.speaker]; ok {
			longest = max(longest, u.start-e)
		}
		last[u.speaker] = u.end
	}
	if len(last) != 4 || longest < 20 {
		t.Errorf("%d voices; the longest pause between two turns of one voice is %.1f s", len(last), longest)
	}
}

// TestMemoryDoesNotGrow: memory does not depend on the length of the input.
func TestMemoryDoesNotGrow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long.wav")
	f := testkit.Must(os.Create(path))(t)
	head := stereoWAV(22050, 0)
	_, _ = f.Write(head)
	if err := f.Truncate(int64(len(head)) + 120*22050*4); err != nil { // a sparse file: silence
		t.Fatal(err)
	}
	_ = f.Close()
	src := testkit.Must(openPath(t, path))(t)
	buf := make([]float32, ChunkSamples)
	total := 0
	read := func(n int) {
		for range n {
			k, err := src.Read(context.Background(), buf)
			total += k
			if errors.Is(err, io.EOF) {
				return
			}
			testkit.NoError(t, err)
		}
	}
	var before, after runtime.MemStats
	read(20)
	runtime.ReadMemStats(&before)
	read(1 << 30)
	runtime.ReadMemStats(&after)
	testkit.Equal(t, total, 120*SampleRate, "samples of two minutes")
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("two minutes allocated %d bytes", grown)
	}
}

func TestCancelledReadEnds(t *testing.T) {
	src := testkit.Must(openPath(t, "demo/demo.flac"))(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := src.Read(ctx, make([]float32, 10)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
