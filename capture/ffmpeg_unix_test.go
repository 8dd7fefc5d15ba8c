//go:build unix

package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubbub/capture/capturetest"
	"hubbub/capture/program"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// ffmpeg runs it in a folder.
func ffmpeg(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("ffmpeg", append([]string{"-loglevel", "error"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %s", args, out)
	}
}

// TestOpenRecording decodes other formats with ffmpeg, and gives it nothing that
// refers to other files.
func TestOpenRecording(t *testing.T) {
	t.Parallel()
	capturetest.Need(t, "ffmpeg")
	dir := t.TempDir()
	for _, name := range []string{"a.m4a", "a.ogg", "a.mka"} {
		path := filepath.Join(dir, name)
		if out, err := exec.Command("ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", "sine=frequency=300:duration=2", "-ar", "44100", "-ac", "2", path).CombinedOutput(); err != nil {
			t.Skipf("ffmpeg cannot write %s: %s", name, out)
		}
		source, err := OpenRecording(t.Context(), path, Mix, DecoderStall)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if i := source.Info(); i.Duration != 0 || i.Estimate < 1900*time.Millisecond || i.Estimate > 2200*time.Millisecond {
			t.Errorf("%s: %v, an estimate of %v", name, i.Duration, i.Estimate)
		}
		samples, err := rest(t.Context(), source)
		if n := len(samples); err != nil || n < 30_000 || n > 35_000 || source.Info().Channels != 2 || source.Info().Kind != File {
			t.Errorf("%s: %d samples, %+v, %v", name, n, source.Info(), err)
		}
		_ = source.Close()
		if _, err := OpenRecording(t.Context(), path, 5, DecoderStall); err == nil || err.Error() != path+": the input has 2 channels, not 5" {
			t.Errorf("%s, channel 5: %v", name, err)
		}
	}
	if file, err := os.Open(filepath.Join(dir, "a.ogg")); err == nil && runtime.GOOS == "linux" {
		source := testkit.Must(OpenRecording(t.Context(), fmt.Sprintf("/dev/fd/%d", file.Fd()), Mix, DecoderStall))(t)
		if samples, err := rest(t.Context(), source); err != nil || len(samples) < 30_000 {
			t.Errorf("an open file: %d samples, %v", len(samples), err)
		}
		_ = source.Close()
		pipe := filepath.Join(dir, "pipe")
		testkit.NoError(t, syscall.Mkfifo(pipe, 0o600))
		go func() {
			if w, err := os.OpenFile(pipe, os.O_WRONLY, 0); err == nil {
				_, _ = io.Copy(w, file)
				_ = w.Close()
			}
		}()
		if _, err := OpenRecording(t.Context(), pipe, Mix, DecoderStall); err == nil || !strings.HasPrefix(hint.Of(err), "Write it into a file") {
			t.Errorf("a pipe: %v, %q", err, hint.Of(err))
		}
	}
	link := filepath.Join(dir, "link")
	testkit.NoError(t, errors.Join(os.WriteFile(filepath.Join(dir, "target"), []byte("OggS is all"), 0o600), os.Symlink("target", link)))
	if _, err := OpenRecording(t.Context(), link, Mix, DecoderStall); err == nil || strings.Contains(err.Error(), "target") || strings.Contains(err.Error(), "file:") {
		t.Errorf("a link: %v", err)
	}
	for name, content := range map[string]string{
		"list.m3u8":   "#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n",
		"list.txt":    "ffconcat version 1.0\nfile '/etc/passwd'\n",
		"damaged.bin": strings.Repeat("\x00\x01\x02\xfe", 1000),
		"empty.m4a":   "",
		"none.au":     ".snd\x00\x00\x00\x18\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x3e\x80\x00\x00\x00\x01",
		"none.wav":    "RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data\x00\x00\x00\x00",
		"cut.wav":     "RIFF\xa4\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data\x80\x00\x00\x00",
	} {
		path := filepath.Join(dir, name)
		testkit.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		if source, err := OpenRecording(t.Context(), path, Mix, DecoderStall); err == nil {
			t.Errorf("%s was opened: %+v", name, source.Info())
		}
	}
}

// TestOpenMP3 opens an MP3 file of a rate that needs ffmpeg, as any other one.
func TestOpenMP3(t *testing.T) {
	t.Parallel()
	capturetest.Need(t, "ffmpeg")
	source := testkit.Must(Open(t.Context(), Spec{Input: filepath.Join("audiofile", "testdata", "mono8.mp3")}))(t)
	defer source.Close()
	n := len(testkit.Must(rest(t.Context(), source))(t))
	if i := source.Info(); n < 19_000 || n > 21_000 || i.Channels != 1 || i.Base != "mono8" {
		t.Errorf("%d samples, %+v", n, i)
	}
}

// TestDamagedRecording: ffmpeg skips what is damaged or missing; the notice says so.
func TestDamagedRecording(t *testing.T) {
	t.Parallel()
	capturetest.Need(t, "ffmpeg")
	path := filepath.Join(t.TempDir(), "a.mka")
	ffmpeg(t, "", "-f", "lavfi", "-i", "sine=duration=20", "-c:a", "pcm_s16le", path)
	st := testkit.Must(os.Stat(path))(t)
	for _, size := range []int64{st.Size(), st.Size() / 2} {
		testkit.NoError(t, os.Truncate(path, size))
		source := testkit.Must(OpenRecording(t.Context(), path, Mix, DecoderStall))(t)
		if _, err := rest(t.Context(), source); err != nil {
			t.Error(err)
		}
		got := strings.Join(source.Notices(), "\n")
		if damaged := size < st.Size(); damaged != strings.HasPrefix(got, "parts of the audio may be missing") || strings.Contains(got, "0x") {
			t.Errorf("%d of %d bytes: %q", size, st.Size(), got)
		}
		_ = source.Close()
	}
}

// TestRecordingBeyondFullScale: float samples that ffmpeg decodes keep their precision, and are not limited to full scale.
func TestRecordingBeyondFullScale(t *testing.T) {
	t.Parallel()
	capturetest.Need(t, "ffmpeg")
	for _, amplitude := range []float64{1.8, 1e-4} {
		path := filepath.Join(t.TempDir(), "a.caf")
		ffmpeg(t, "", "-f", "lavfi", "-i", fmt.Sprintf("aevalsrc=%g*sin(2*PI*400*t):s=16000:d=1", amplitude), "-c:a", "pcm_f32le", path)
		source := testkit.Must(OpenRecording(t.Context(), path, Mix, DecoderStall))(t)
		got := testkit.Must(rest(t.Context(), source))(t)
		want := capturetest.Tone(SampleRate, 400, SampleRate)
		for i := range want {
			want[i] *= float32(2 * amplitude)
		}
		capturetest.Same(t, path, got, want, 1e-6*amplitude)
		testkit.NoError(t, source.Close())
	}
}

// TestRecordingWithGaps: audio that begins late, and a part that is missing, are silence, so that what follows has the
// time that players show. Where timestamps go back or the format changes, as in files that were joined, nothing is added
// or removed.
func TestRecordingWithGaps(t *testing.T) {
	t.Parallel()
	capturetest.Need(t, "ffmpeg")
	dir := t.TempDir()
	write := func(args ...string) { ffmpeg(t, dir, args...) }
	join := func(name string, parts ...string) {
		var all []byte
		for _, part := range parts {
			all = append(all, testkit.Must(os.ReadFile(filepath.Join(dir, part)))(t)...)
		}
		testkit.NoError(t, os.WriteFile(filepath.Join(dir, name), all, 0o600))
	}
	write("-f", "lavfi", "-i", "sine=frequency=400:sample_rate=48000:duration=6", "tone.wav")
	write("-itsoffset", "2", "-i", "tone.wav", "-i", "tone.wav", "-map", "0", "-map", "1", "-c:a", "flac", "late.mka")
	write("-i", "tone.wav", "-af", "aselect='lt(t,1)+gte(t,4)'", "-c:a", "flac", "gap.mka")
	write("-i", "tone.wav", "-c:a", "flac", "part.oga")
	join("back.oga", "part.oga", "part.oga")
	write("-i", "tone.wav", "mono.ac3")
	write("-i", "tone.wav", "-ac", "2", "stereo.ac3")
	join("changes.ac3", "mono.ac3", "stereo.ac3")

	for name, want := range map[string]string{ // of each second, whether the tone is there
		"late.mka": "  ======", "gap.mka": "=   ==", "back.oga": "============", "changes.ac3": "============",
	} {
		source := testkit.Must(OpenRecording(t.Context(), filepath.Join(dir, name), Mix, DecoderStall))(t)
		samples := testkit.Must(rest(t.Context(), source))(t)
		testkit.NoError(t, source.Close())
		got := ""
		for len(samples) >= SampleRate {
			if tone, _ := capturetest.Power(samples[SampleRate/4:SampleRate/2], SampleRate, 400); tone > 1e-4 {
				got += "="
			} else {
				got += " "
			}
			samples = samples[SampleRate:]
		}
		if got != want || len(samples) > SampleRate/8 {
			t.Errorf("%s: %q and %d samples, want %q", name, got, len(samples), want)
		}
	}
}

// TestVideoWithoutSound: the error says so.
func TestVideoWithoutSound(t *testing.T) {
	t.Parallel()
	capturetest.Need(t, "ffmpeg")
	path := filepath.Join(t.TempDir(), "a.mkv")
	ffmpeg(t, "", "-f", "lavfi", "-i", "testsrc=s=64x64:d=1", path)
	if _, err := OpenRecording(t.Context(), path, Mix, DecoderStall); err == nil || !strings.HasSuffix(err.Error(), "it contains no audio") {
		t.Error(err)
	}
}

// TestUnusableRate: what is wrong is the file, not that ffmpeg was ended.
func TestUnusableRate(t *testing.T) {
	t.Parallel()
	capturetest.Need(t, "ffmpeg")
	path := filepath.Join(t.TempDir(), "a.wav")
	head := "RIFF\xff\xff\xff\x7fWAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x01\x00\x00\x00\x02\x00\x00\x00\x02\x00\x10\x00data\xff\xff\xff\x7f"
	testkit.NoError(t, os.WriteFile(path, append([]byte(head), make([]byte, 1<<20)...), 0o600)) // more than a pipe holds
	if _, err := OpenRecording(t.Context(), path, Mix, DecoderStall); err == nil || !strings.HasSuffix(err.Error(), "1 Hz") {
		t.Error(err)
	}
}

// TestDecoderLimits kills a decoder that hangs, and one that uses too much memory
// ends.
func TestDecoderLimits(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "ffmpeg")
	testkit.Program(t, script, "#!/bin/sh\nulimit -v\nexec sleep 1000\n")
	d, err := startDecoder(script, "x", 5*time.Second) // a busy machine may take some of it to start the script
	testkit.NoError(t, err)
	out, err := io.ReadAll(d)
	if string(out) != "2097152\n" || err == nil || !strings.Contains(err.Error(), "delivered nothing") {
		t.Errorf("%q %v", out, err)
	}
	testkit.NoError(t, d.Close())
}

// TestLimitsThatCannotBeSet: they are not reported, as if the decoder had done it, and those after them hold. Root may raise
// the limit, so its value does not matter.
func TestLimitsThatCannotBeSet(t *testing.T) {
	if out, err := exec.Command("sh", "-c", "ulimit -t 3600; "+decoderLimits+"ulimit -f").CombinedOutput(); err != nil || string(out) != "0\n" {
		t.Errorf("%q %v", out, err)
	}
}

// TestDecoderLog: what ffmpeg says of the length and of errors, in any pieces.
func TestDecoderLog(t *testing.T) {
	t.Parallel()
	const text = "[info]   Metadata:\n[info]     title : Duration: 09:00:00\n[info]   Duration: 01:02:03.50, start: 0.000000\n[info]   Duration: 05:00:00.00\n" +
		"[aac @ 0x55] [warning] estimated\n[mov @ 0x55] [error] moov atom not found\n[info] size= 1kB\n"
	for _, size := range []int{1, 7, len(text)} {
		l := newDecoderLog()
		lines := program.Lines{Each: l.take}
		for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			if n, err := lines.Write(rest[:min(size, len(rest))]); n != min(size, len(rest)) || err != nil {
				t.Fatal(n, err)
			}
		}
		testkit.Equal(t, l.length(t.Context()), time.Hour+2*time.Minute+3500*time.Millisecond, "length")
		testkit.Equal(t, l.errors.Last(), "[mov @ 0x55] moov atom not found", "error")
	}
	l := newDecoderLog()
	lines := program.Lines{Each: l.take}
	_, _ = lines.Write([]byte(strings.Repeat("x", 3*program.MaxLine) + "\n[info]   Duration: N/A, bitrate: N/A\nsh: no memory\n"))
	if got := l.length(t.Context()); got != 0 || l.errors.Last() != "sh: no memory" {
		t.Errorf("%v %q", got, l.errors.Last())
	}
}
