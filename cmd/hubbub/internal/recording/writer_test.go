package recording

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/capture"
	"hubbub/capture/audiofile"
	"hubbub/cmd/hubbub/internal/crash"
	"hubbub/protocol"
	"hubbub/protocol/export"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// create records a microphone into a new folder.
func create(t *testing.T) *Writer {
	t.Helper()
	return testkit.Must(createIn(filepath.Join(t.TempDir(), "rec")))(t)
}

func createIn(dir string) (*Writer, error) {
	source := capture.Info{Kind: capture.Mic, Name: "a microphone", Base: "live"}
	w, err := newWriter(dir, NewInfo("test", source, "server", 2*time.Second, capture.Realtime), make(chan struct{}, 1))
	if err == nil {
		w.begin(protocol.NewAnnotationsStore(protocol.Annotations{}), 0)
	}
	return w, err
}

func chunk(seq int64) capture.Chunk {
	return capture.Chunk{Seq: seq, Samples: make([]float32, capture.ChunkSamples), Valid: capture.ChunkSamples}
}

// TestFullDiskAtTheBeginning does not blame the folder.
func TestFullDiskAtTheBeginning(t *testing.T) {
	err := cannotRecord(&os.PathError{Op: "write", Path: "rec/session.json", Err: syscall.ENOSPC})
	if err.Error() != "cannot record: the disk is full" || !strings.Contains(hint.Of(err), "Free disk space") {
		t.Errorf("%v; %s", err, hint.Of(err))
	}
}

// TestWriterThatCannotBegin leaves nothing in the folder, so that another attempt can succeed.
func TestWriterThatCannotBegin(t *testing.T) {
	dir, source := filepath.Join(t.TempDir(), "rec"), capture.Info{Kind: capture.Mic}
	info := NewInfo("test", source, "server", 0, capture.Realtime)
	info.Latency = math.NaN() // session.json cannot be written, as on a full disk
	if _, err := newWriter(dir, info, nil); err == nil {
		t.Fatal("no error")
	}
	info.Latency = 1
	w := testkit.Must(newWriter(dir, info, nil))(t)
	w.begin(protocol.NewAnnotationsStore(protocol.Annotations{}), 0)
	w.Audio(chunk(0))
	testkit.NoError(t, w.Close(nil))
	if _, err := newWriter(dir, info, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v, want %v", err, fs.ErrExist)
	}
	if r, err := Read(t.Context(), dir); err != nil || len(r.Warnings) > 0 {
		t.Errorf("%v, %q", err, r.Warnings)
	}
}

// TestWriter records a session and reads it again.
func TestWriter(t *testing.T) {
	w := create(t)
	for seq := range int64(20) {
		w.Audio(chunk(seq))
	}
	e := protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.5, "A")
	e.Timestamp = 0.75 // on the recording's clock
	end := protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 1.25, "A")
	w.Event(1.1, e)
	w.Event(1.9, end)
	w.Turn(protocol.Turn{Speaker: "A", Start: 0.75, End: 1.25})
	testkit.NoError(t, w.Close([]protocol.Span{{Start: 0.1, End: 0.2}}))
	if s := w.Status(); s.Length != 2 || s.Bytes <= 64000 || s.Bytes > 65000 || s.Free == 0 || s.Failure != nil {
		t.Errorf("%+v", s)
	}
	testkit.Equal(t, w.dropped.Load(), 0, "chunks are missing")
	r, err := Read(t.Context(), w.dir)
	if err != nil || len(r.Warnings) != 0 {
		t.Fatalf("%v, warnings %q", err, r.Warnings)
	}
	if r.Length != 2 || r.Info.Latency != 2 || r.Info.Source != "a microphone" || r.Info.Ended == nil || r.Info.Started.IsZero() || !slices.Equal(r.Info.Gaps, []protocol.Span{{Start: 0.1, End: 0.2}}) {
		t.Errorf("length %v, %+v", r.Length, r.Info)
	}
	testkit.EqualSlices(t, r.Turns(), []protocol.Turn{{Speaker: "A", Start: 0.75, End: 1.25}}, "turns")
	if len(r.events) != 2 || r.events[0].at != 1.1 || r.events[1].at != 1.9 {
		t.Errorf("events arrived at %+v", r.events)
	}
}

// TestSlowDisk drops chunks of a microphone when the disk is 30 s behind, and
// counts them.
func TestSlowDisk(t *testing.T) {
	free := make(chan struct{})
	crash.TestHook = func(string) { <-free }
	defer func() { crash.TestHook = func(string) {} }()
	r := newTestRecorder(protocol.NewAnnotationsStore(protocol.Annotations{}))
	testkit.NoError(t, r.Start(filepath.Join(t.TempDir(), "rec")))
	w := r.writer.Load()
	const more = 7
	for seq := range int64(audioQueue + 1 + more) { // one is at the disk
		if seq == 1 {
			testkit.Eventually(t, "a chunk at the disk", func() bool { return len(w.queue) == 0 })
		}
		r.Audio(chunk(seq))
	}
	dropped := r.Dropped()
	close(free)
	testkit.NoError(t, r.Close())
	if dropped != more || r.Dropped() != more {
		t.Errorf("%d chunks were dropped, and %d at the end, want %d", dropped, r.Dropped(), more)
	}
	got, err := Read(t.Context(), w.dir)
	if want := float64(audioQueue+1) / 10; err != nil || got.Length != want {
		t.Errorf("%v s are recorded, want %v, %v", got.Length, want, err)
	}
}

// TestBrokenDisk: the first thing that cannot be written stops the recording, is
// reported at once and only once, and is the one reason at the end.
func TestBrokenDisk(t *testing.T) {
	defer func() { crash.TestHook = func(string) {} }()
	e := protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.5, "A")
	for what, fail := range map[string]func(*Writer){
		"audio": func(w *Writer) { crash.TestHook = func(string) { _ = w.wav.Close() }; w.Audio(chunk(0)) },
		"event": func(w *Writer) { _ = w.events.Close(); w.Event(0, e) },
		"turn":  func(w *Writer) { _ = w.turns.Close(); w.Turn(protocol.Turn{Speaker: "A", End: 1}) },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := create(t)
			changed := make(chan struct{}, 1)
			w.changed = changed
			fail(w)
			<-changed
			for seq := range int64(audioQueue + 10) {
				w.Audio(chunk(seq))
			}
			w.Event(0, e)
			w.Turn(protocol.Turn{Speaker: "A", End: 1})
			err := w.Close(nil)
			if err == nil || !strings.HasPrefix(err.Error(), "recording stopped at ") || !errors.Is(w.Status().Failure.Err, os.ErrClosed) || hint.Of(err) == "" {
				t.Errorf("%s: %v", what, err)
			}
			if w.dropped.Load() != 0 || len(changed) != 0 {
				t.Errorf("%s: %d chunks count as dropped, %d more reports", what, w.dropped.Load(), len(changed))
			}
		})
	}
}

// TestCreateRefuses keeps a folder that has a recording, or is none.
func TestCreateRefuses(t *testing.T) {
	w := create(t)
	testkit.NoError(t, w.Close(nil))
	before := testkit.Must(os.ReadFile(w.Path(SessionFile)))(t)
	for dir, want := range map[string]string{w.dir: "holds a recording already", w.Path(SessionFile): "cannot record", w.Path(SessionFile) + "/x": "cannot record"} {
		if _, err := newWriter(dir, Info{}, nil); err == nil || !strings.Contains(err.Error(), want) || hint.Of(err) == "" {
			t.Errorf("%s: %v", dir, err)
		}
	}
	testkit.Equal(t, string(testkit.Must(os.ReadFile(w.Path(SessionFile)))(t)), string(before), "a file of the recording")
}

// TestWriteExport replaces a file only where that is wanted, and leaves no other
// file behind.
func TestWriteExport(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "turns.csv")
	d := Content{Turns: []protocol.Turn{{Speaker: "A", Start: 0, End: 1}}}.Document(dir, "auto")
	write := func(replace bool) error { return WriteExport(path, export.CSV, d, replace) }
	testkit.NoError(t, write(false))
	if err := write(false); !errors.Is(err, os.ErrExist) || hint.Of(err) == "" {
		t.Errorf("an existing file: %v", err)
	}
	first := testkit.Must(os.ReadFile(path))(t)
	testkit.NoError(t, os.WriteFile(path, append(first, "more"...), 0o600))
	testkit.NoError(t, write(true))
	testkit.Equal(t, string(testkit.Must(os.ReadFile(path))(t)), string(first), "replaced by")
	if err := WriteExport(filepath.Join(dir, "none", "turns.csv"), export.CSV, d, true); err == nil {
		t.Error("a folder that does not exist")
	}
	testkit.Equal(t, len(testkit.Must(os.ReadDir(dir))(t)), 1, "files")
}

// TestAudioOfAPage embeds short audio, links to long audio, and finds it from
// another folder.
func TestAudioOfAPage(t *testing.T) {
	c := Content{Audio: filepath.Join("rec", AudioFile)}
	for _, w := range []struct {
		length    float64
		audio     string
		path, url string
	}{
		{60, "auto", c.Audio, ""}, {embedLimit + 1, "auto", "", "../rec/audio.wav"}, {1e5, "embed", c.Audio, ""}, {60, "beside", "", "../rec/audio.wav"}, {60, "none", "", ""},
	} {
		c.Info.Length = w.length
		var got export.Audio
		if a := c.Document("elsewhere", w.audio).Audio; a != nil {
			got = *a
		}
		if got.Path != w.path || filepath.ToSlash(got.URL) != w.url {
			t.Errorf("%v s, %s: %+v", w.length, w.audio, got)
		}
	}
	video := filepath.Join(t.TempDir(), "talk.mp4")
	testkit.NoError(t, errors.Join(os.WriteFile(video, nil, 0o600), os.Truncate(video, embedBytes+1)))
	c.Audio, c.Info.Length = video, 60
	if a := c.Document(filepath.Dir(video), "auto").Audio; a == nil || *a != (export.Audio{URL: "talk.mp4"}) {
		t.Errorf("a large file: %+v", a)
	}
}

// TestMissingChunks writes silence in place of chunks that were not captured, so
// that the audio stays on the session's clock.
func TestMissingChunks(t *testing.T) {
	w := create(t)
	loud := chunk(0)
	for i := range loud.Samples {
		loud.Samples[i] = 0.5
	}
	w.Audio(loud)
	loud.Seq = 50
	w.Audio(loud)
	testkit.NoError(t, w.Close(nil))
	source := testkit.Must(capture.Open(t.Context(), capture.Spec{Input: w.Path(AudioFile)}))(t)
	var seen []int64
	for c := range capture.NewChunkReader(t.Context(), source, capture.Fast).Chunks() {
		if c.Level.RMS > 0.1 {
			seen = append(seen, c.Seq)
		}
	}
	testkit.EqualSlices(t, seen, []int64{0, 50}, "sound in the chunks")
}

// recorded are the samples of a file that may still be written.
func recorded(t *testing.T, path string) []float32 {
	t.Helper()
	return testkit.Must(capture.Decode(t.Context(), capture.Spec{Input: path}))(t)
}

// TestRecordingInProgress: a second after a chunk, the audio is complete although the
// writer gets no other one and is not closed.
func TestRecordingInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := create(t)
		defer func() { testkit.NoError(t, w.Close(nil)) }()
		for seq := range int64(3) {
			c := chunk(seq)
			copy(c.Samples, ramp(seq))
			w.Audio(c)
			time.Sleep(saveInterval)
			synctest.Wait()
			b := testkit.Must(os.ReadFile(w.Path(AudioFile)))(t)
			size := audiofile.WAVHeaderBytes + 2*capture.ChunkSamples*(seq+1)
			if int64(len(b)) != size || !bytes.Equal(b[:audiofile.WAVHeaderBytes], audiofile.WAVHeader(size-audiofile.WAVHeaderBytes)) {
				t.Errorf("%d bytes, want a complete file of %d", len(b), size)
			}
		}
		if want := slices.Concat(ramp(0), ramp(1), ramp(2)); !slices.Equal(recorded(t, w.Path(AudioFile)), want) {
			t.Error("another recording")
		}
	})
}

// ramp is a chunk that differs from those around it.
func ramp(seq int64) []float32 {
	x := make([]float32, capture.ChunkSamples)
	for i := range x {
		x[i] = float32((seq*capture.ChunkSamples+int64(i))%20000-10000) / (1 << 15)
	}
	return x
}

// recorderChild records a turn, and a ramp in real time, and prints the number of each
// chunk, until it is killed.
func recorderChild() {
	w, err := createIn(os.Getenv(asChild))
	if err != nil {
		fmt.Println(err)
		return
	}
	w.Event(0, startOf(0.5, "A"))
	w.Event(0, endOf(1, "A"))
	w.Turn(protocol.Turn{Speaker: "A", Start: 0.5, End: 1})
	for seq := int64(0); w.Status().Failure == nil; seq++ {
		w.Audio(capture.Chunk{Seq: seq, Samples: ramp(seq), Valid: capture.ChunkSamples})
		fmt.Println(seq)
		time.Sleep(100 * time.Millisecond)
	}
}

// TestKilledRecorder: a program that is killed with SIGKILL leaves a recording
// that is readable up to the last second, with its events and turns.
func TestKilledRecorder(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process")
	}
	dir := filepath.Join(t.TempDir(), "rec")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"="+dir)
	out := testkit.Must(cmd.StdoutPipe())(t)
	testkit.Start(t, cmd)
	var times []time.Time
	for lines := bufio.NewScanner(out); len(times) < 25 && lines.Scan(); {
		times = append(times, time.Now())
	}
	testkit.NoError(t, cmd.Process.Kill())
	killed := time.Now()
	_ = cmd.Wait()
	for name, want := range map[string]string{EventsFile: string(startOf(0.5, "A").Raw) + "\n" + string(endOf(1, "A").Raw) + "\n", TurnsFile: "SPEAKER live 1 0.500 0.500 <NA> <NA> A <NA> <NA>\n"} {
		testkit.Equal(t, string(testkit.Must(os.ReadFile(filepath.Join(dir, name)))(t)), want, name)
	}
	got := recorded(t, filepath.Join(dir, AudioFile))
	for seq, c := range slices.Collect(slices.Chunk(got, capture.ChunkSamples)) {
		if !slices.Equal(c, ramp(int64(seq))[:len(c)]) {
			t.Errorf("chunk %d is another one", seq)
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
	if len(got) < old*capture.ChunkSamples || old == 0 {
		t.Errorf("%d samples of %d chunks, %d of them old", len(got), len(times), old)
	}
	t.Logf("%.1f s of %.1f s are in the file", float64(len(got))/capture.SampleRate, float64(len(times))/10)
}
