package recording

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hubbub/capture"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// newTestRecorder records nothing yet; the service has no latency.
func newTestRecorder(annotations *protocol.AnnotationsStore) *Recorder {
	source := capture.Info{Kind: capture.Mic, Name: "a microphone", Base: "live"}
	return NewRecorder(NewInfo("test", source, "server", time.Millisecond, capture.Realtime), annotations)
}

func startOf(at float64, label string) protocol.Event {
	return protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, at, label)
}

func endOf(at float64, label string) protocol.Event {
	return protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, at, label)
}

// TestRecorderPart records from the middle of a session to before its end: audio,
// turns, words, annotations, gaps and arrivals are on the recording's own clock.
func TestRecorderPart(t *testing.T) {
	annotations := protocol.NewAnnotationsStore(protocol.Annotations{})
	change := func(f func(protocol.Annotations) (protocol.Annotations, error)) {
		t.Helper()
		testkit.NoError(t, annotations.Update(f))
	}
	change(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Rename("A", "Anna") })
	change(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Bookmark(2, "before") })
	r := newTestRecorder(annotations)
	for seq := range int64(100) {
		r.Audio(chunk(seq))
	}
	r.Event(4, startOf(3, "B"))
	r.Event(5, endOf(4, "B"))
	r.Turn(protocol.Turn{Speaker: "B", Start: 3, End: 4})
	r.Event(9, startOf(8, "A"))
	if r.Status() != nil {
		t.Error("it records before the start")
	}
	dir := filepath.Join(t.TempDir(), "rec")
	testkit.NoError(t, r.Start(dir))
	if got, whole := r.Dir(); got != dir || whole {
		t.Errorf("%s, whole %v", got, whole)
	}
	if err := r.Start(dir); err == nil {
		t.Error("two recordings run")
	}
	for seq := int64(100); seq < 150; seq++ {
		r.Audio(chunk(seq))
	}
	gaps := []protocol.Span{{Start: 9, End: 10.5}, {Start: 13, End: 14}}
	r.Gaps = func() []protocol.Span { return gaps }
	r.SaveGaps()
	var info Info // as it is when the program is killed now
	if raw, err := os.ReadFile(filepath.Join(dir, SessionFile)); err != nil || json.Unmarshal(raw, &info) != nil || !slices.Equal(info.Gaps, []protocol.Span{{Start: 0, End: 0.5}, {Start: 3, End: 4}}) {
		t.Errorf("gaps so far: %v, %v", info.Gaps, err)
	}
	r.Event(11.5, startOf(11, "C")) // 1.5 s after the start
	r.Event(13, endOf(12.25, "A"))
	r.Turn(protocol.Turn{Speaker: "B", Start: 3, End: 4}) // had to wait for its words
	r.Turn(protocol.Turn{Speaker: "A", Start: 8, End: 12.25})
	r.Transcript(protocol.Turn{Speaker: "A", Start: 8, End: 12.25, Text: "hello"})
	change(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Bookmark(12, "in it") })
	change(func(a protocol.Annotations) (protocol.Annotations, error) { return a.MoveTurn("A", 8, 12.25, "C") })
	gaps = append(gaps, protocol.Span{Start: 16, End: 17})
	done := testkit.Must(r.Stop())(t)
	if done.Length != 5 || r.Status() != nil {
		t.Errorf("%+v", done)
	}
	r.Audio(chunk(150))
	r.Event(16, endOf(15.5, "C"))
	testkit.NoError(t, r.Close())

	got, err := Read(t.Context(), dir)
	if err != nil || len(got.Warnings) != 0 {
		t.Fatalf("%v, warnings %q", err, got.Warnings)
	}
	if got.Length != 5 || !slices.Equal(got.Info.Gaps, []protocol.Span{{Start: 0, End: 0.5}, {Start: 3, End: 4}}) {
		t.Errorf("%v s, gaps %v", got.Length, got.Info.Gaps)
	}
	want := []protocol.Turn{{Speaker: "A", Start: 0, End: 2.25, Text: "hello"}, {Speaker: "C", Start: 1, End: 5}}
	testkit.EqualSlices(t, got.Turns(), want, "turns")
	var at []float64
	for _, e := range got.events {
		at = append(at, e.at)
	}
	testkit.EqualSlices(t, at, []float64{0, 1.5, 3}, "the events arrive at")
	if !slices.Equal(got.Annotations.Bookmarks(), []protocol.Bookmark{{At: 2, Note: "in it"}}) || got.Annotations.Name("A") != "Anna" || got.Annotations.Owner(want[0]) != "C" {
		t.Errorf("annotations %+v", got.Annotations)
	}
	if !annotations.Unsaved() {
		t.Error("the bookmark before the recording counts as saved")
	}
	// The messages alone are enough.
	for _, name := range []string{ArrivalsFile, SessionFile} {
		testkit.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	if got, err := Read(t.Context(), dir); err != nil || !slices.Equal(got.Turns(), want) || got.Info.Latency != assumedLatency || len(got.Warnings) > 0 {
		t.Errorf("%v, without arrivals the turns are %v, the latency is %v; %q", err, got.Turns(), got.Info.Latency, got.Warnings)
	}
}

// TestRecorderWaitsForLastEvents: what the service still says about the last audio
// belongs to the recording, as far as it is inside.
func TestRecorderWaitsForLastEvents(t *testing.T) {
	r := newTestRecorder(protocol.NewAnnotationsStore(protocol.Annotations{}))
	dir := filepath.Join(t.TempDir(), "rec")
	testkit.NoError(t, r.Start(dir))
	for seq := range int64(20) {
		r.Audio(chunk(seq))
	}
	stopped := make(chan error, 1)
	r.info.Latency = 60
	go func() { _, err := r.Stop(); stopped <- err }()
	testkit.Eventually(t, "the end of the part", func() bool { // until Stop waits
		r.mu.Lock()
		defer r.mu.Unlock()
		return !math.IsInf(r.excerpt.until, 1)
	})
	r.Audio(chunk(20))
	const asReceived = `{"type":"diarization_speaker_start", "data":{"timestamp":1,"speaker":"A"},"x":[]}`
	first := testkit.Must(protocol.ParseEvent([]byte(asReceived)))(t)
	r.Event(2.1, first)
	r.Event(2.2, endOf(1.5, "A"))
	r.Turn(protocol.Turn{Speaker: "A", Start: 1, End: 1.5})
	r.Event(2.5, startOf(1.75, "B"))
	r.Event(2.6, startOf(2, "C")) // after the end
	r.Event(3, endOf(2.5, "B"))
	r.Turn(protocol.Turn{Speaker: "B", Start: 1.75, End: 2.5})
	r.Event(3, endOf(2.75, "C"))
	testkit.NoError(t, r.Close()) // ends the waiting
	testkit.NoError(t, <-stopped)
	got := testkit.Must(Read(t.Context(), dir))(t)
	if want := []protocol.Turn{{Speaker: "A", Start: 1, End: 1.5}, {Speaker: "B", Start: 1.75, End: 2}}; got.Length != 2 || !slices.Equal(got.Turns(), want) {
		t.Errorf("%v s, %v", got.Length, got.Turns())
	}
	events, err := os.ReadFile(filepath.Join(dir, "events.ndjson"))
	if err != nil || bytes.Contains(events, []byte(`"C"`)) || !bytes.Contains(events, []byte(asReceived)) || bytes.Count(events, []byte(protocol.TypeSpeakerEnd)) != 2 {
		t.Errorf("%s %v", events, err)
	}
}

// TestRecorderAfterFailure: after a full disk another recording can be started, and
// the failure is the outcome of the session.
func TestRecorderAfterFailure(t *testing.T) {
	r := newTestRecorder(protocol.NewAnnotationsStore(protocol.Annotations{}))
	first, second := filepath.Join(t.TempDir(), "rec"), filepath.Join(t.TempDir(), "rec")
	testkit.NoError(t, r.Start(first))
	r.writer.Load().fail(syscall.ENOSPC)
	<-r.Changed()
	testkit.NoError(t, r.Start(second))
	r.Audio(chunk(0))
	r.Event(0.1, startOf(0.05, "A")) // ends with the session, and so without a turn here
	err := r.Close()
	if err == nil || !strings.Contains(err.Error(), "the disk is full") || !exists(filepath.Join(second, AudioFile)) {
		t.Errorf("%v", err)
	}
	if got, err := Read(t.Context(), second); err != nil || got.Length != 0.1 || len(got.Warnings) > 0 {
		t.Errorf("%v, %v, %q", got.Length, err, got.Warnings)
	}
	if err := r.Start(first); err == nil {
		t.Error("a session that is over can be recorded")
	}
}

// TestRecorderConcurrent starts and stops while audio and events arrive: every
// recording is complete. It needs the race detector.
func TestRecorderConcurrent(t *testing.T) {
	r := newTestRecorder(protocol.NewAnnotationsStore(protocol.Annotations{}))
	dirs := t.TempDir()
	stop := make(chan struct{})
	var feeders sync.WaitGroup
	feed := func(f func(n int64)) {
		feeders.Go(func() {
			for n := int64(0); ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Microsecond):
					f(n)
				}
			}
		})
	}
	feed(func(n int64) { r.Audio(chunk(n)) })
	feed(func(n int64) {
		at := float64(n) / 10
		r.Event(at, startOf(at, "A"))
		r.Event(at, endOf(at+0.05, "A"))
		r.Turn(protocol.Turn{Speaker: "A", Start: protocol.Round1ms(at), End: protocol.Round1ms(at + 0.05)})
		_, _ = r.Status(), r.Dropped()
	})
	const recordings = 2
	for i := range recordings {
		dir := filepath.Join(dirs, string(rune('a'+i)))
		testkit.NoError(t, r.Start(dir))
		testkit.Eventually(t, "audio", func() bool { return r.Status().Length > 0 })
		testkit.Must(r.Stop())(t)
		if got, err := Read(t.Context(), dir); err != nil || len(got.Warnings) != 0 {
			t.Errorf("%v, warnings %q", err, got.Warnings)
		}
	}
	close(stop)
	feeders.Wait()
	testkit.NoError(t, r.Close())
}
