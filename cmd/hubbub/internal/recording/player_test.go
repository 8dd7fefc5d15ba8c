package recording

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// tape is a recording without audio: two turns, one of which never ends.
func tape(t *testing.T) *Recording {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		EventsFile: `{"type":"diarization_speaker_start","data":{"timestamp":1,"speaker":"A"}}
{"type":"diarization_speaker_start","data":{"timestamp":3,"speaker":"B"}}
{"type":"diarization_speaker_end","data":{"timestamp":4,"speaker":"A"}}
`,
		// Half a second was dropped before B; the connection was lost at 9 s.
		ArrivalsFile: "{\"heard\":2,\"at\":1}\n{\"heard\":4.6,\"at\":3.5}\n{\"heard\":6,\"at\":4.5}\n",
		TurnsFile:    "SPEAKER talk 1 1.000 3.500 <NA> <NA> A <NA> <NA>\nSPEAKER talk 1 3.500 5.500 <NA> <NA> B <NA> <NA>\nSPEAKER ta",
		SessionFile:  `{"version":1,"latency":1,"source":"a\u001bb","started":"2031-03-04T09:30:00Z","gaps":[{"start":2,"end":2.5}]}`,
	}
	for name, text := range files {
		testkit.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return testkit.Must(Read(context.Background(), dir))(t)
}

// TestDestroyedEvents: a power failure can leave zeros in events.ndjson, and a service can send starts that are none. The
// turns are in turns.rttm as well.
func TestDestroyedEvents(t *testing.T) {
	for _, content := range []string{"", "\x00\x00\x00\n\x00", strings.Repeat(`{"type":"diarization_speaker_start","data":{"speaker":"A"}}`+"\n", 3)} {
		dir := tape(t).Dir
		testkit.NoError(t, os.WriteFile(filepath.Join(dir, EventsFile), []byte(content), 0o600))
		r := testkit.Must(Read(t.Context(), dir))(t)
		want := []protocol.Turn{{Speaker: "A", Start: 1, End: 4.5}, {Speaker: "B", Start: 3.5, End: 9}}
		if got := r.Turns(); !slices.Equal(got, want) || !slices.Contains(r.Warnings, "events.ndjson has no turns; the turns were taken from turns.rttm") {
			t.Errorf("%q: turns %v, want %v; %q", content, got, want, r.Warnings)
		}
	}
}

// TestTooManyLabels: turns that a timeline does not take are reported, whatever they were read from.
func TestTooManyLabels(t *testing.T) {
	for _, name := range []string{TurnsFile, EventsFile} {
		dir := t.TempDir()
		var text strings.Builder
		for i := range protocol.MaxLabels + 1 {
			if name == TurnsFile {
				text.WriteString(protocol.FormatRTTM("talk", protocol.Turn{Speaker: fmt.Sprint("P", i), Start: float64(i), End: float64(i) + 1}) + "\n")
				continue
			}
			for j, kind := range []string{protocol.TypeSpeakerStart, protocol.TypeSpeakerEnd} {
				text.Write(append(protocol.NewSpeakerEvent(kind, float64(i+j), fmt.Sprint("P", i)).Raw, '\n'))
			}
		}
		testkit.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text.String()), 0o600))
		r := testkit.Must(Read(t.Context(), dir))(t)
		want := "events that are left out, because a session has at most 64 labels and 262144 turns: 2"
		if len(r.Turns()) != protocol.MaxLabels || !slices.Contains(r.Warnings, want) {
			t.Errorf("%s: %d turns, warnings %q", name, len(r.Turns()), r.Warnings)
		}
	}
}

// TestTooManyMessages: a file of unknown origin does not fill the memory. What is left out is reported.
func TestTooManyMessages(t *testing.T) {
	defer func(was int) { maxEvents = was }(maxEvents)
	maxEvents = 4
	dir := tape(t).Dir
	file := filepath.Join(dir, EventsFile)
	raw := testkit.Must(os.ReadFile(file))(t)
	testkit.NoError(t, os.WriteFile(file, append(raw, strings.Repeat("0\n", 10)...), 0o600))
	r := testkit.Must(Read(t.Context(), dir))(t)
	if want := "lines of events.ndjson that are left out, because a recording has at most 4 of them: "; len(r.events) != 4 ||
		!slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.HasPrefix(w, want) }) {
		t.Errorf("%d messages; %q", len(r.events), r.Warnings)
	}
	testkit.NoError(t, os.Remove(file))
	line := "SPEAKER a 1 0.5 1.0 <NA> <NA> A <NA> <NA>\n"
	testkit.NoError(t, os.WriteFile(filepath.Join(dir, TurnsFile), []byte(strings.Repeat(line, 9)), 0o600))
	r = testkit.Must(Read(t.Context(), dir))(t)
	if want := "lines of turns.rttm that are left out, because a recording has at most 2 of them: 7"; len(r.events) != 4 || !slices.Contains(r.Warnings, want) {
		t.Errorf("%d messages; %q", len(r.events), r.Warnings)
	}
	for _, name := range []string{WordsFile, NotesFile, TurnsFile, EventsFile} {
		testkit.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		testkit.NoError(t, os.Truncate(filepath.Join(dir, name), maxFile+1)) // it takes no space on the disk
		_, err := Read(t.Context(), dir)
		testkit.Contains(t, fmt.Sprint(err), name+" is larger than 256 MiB")
		testkit.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
}

// TestMissingArrival: the arrivals after one that is missing are those of other events.
func TestMissingArrival(t *testing.T) {
	for missing := range 3 {
		r := tape(t)
		want := r.Turns()
		raw := testkit.Must(os.ReadFile(r.path(ArrivalsFile)))(t)
		lines := slices.Collect(bytes.Lines(raw))
		testkit.NoError(t, os.WriteFile(r.path(ArrivalsFile), bytes.Join(slices.Delete(lines, missing, missing+1), nil), 0o600))
		r = testkit.Must(Read(t.Context(), r.Dir))(t)
		warned := slices.Contains(r.Warnings, "events.ndjson does not fit arrivals.ndjson; the turns were taken from turns.rttm")
		if got := r.Turns(); !slices.Equal(got, want) || !warned {
			t.Errorf("without line %d: turns %v, want %v; %q", missing, got, want, r.Warnings)
		}
	}
	// Where nothing was dropped, the events lead to the turns also without the last arrival. B has no end of its own.
	dir, want := t.TempDir(), []protocol.Turn{{Speaker: "A", Start: 1, End: 4}, {Speaker: "B", Start: 3, End: 5.5}, {Speaker: "C", Start: 6, End: 7}}
	var events, arrivals, turns strings.Builder
	for i, e := range []protocol.Event{startOf(1, "A"), startOf(3, "B"), endOf(4, "A"), startOf(6, "C"), endOf(7, "C")} {
		fmt.Fprintf(&events, "%s\n", e.Raw)
		if i < 4 {
			fmt.Fprintf(&arrivals, "{\"heard\":%g,\"at\":%[1]g}\n", e.Timestamp)
		}
	}
	for _, turn := range want {
		turns.WriteString(protocol.FormatRTTM("talk", turn) + "\n")
	}
	for name, text := range map[string]string{EventsFile: events.String(), ArrivalsFile: arrivals.String(), TurnsFile: turns.String()} {
		testkit.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	r := testkit.Must(Read(t.Context(), dir))(t)
	if got := r.Turns(); !slices.Equal(got, want) || len(r.events) != 5 {
		t.Errorf("turns %v, want %v; %d events, %q", got, want, len(r.events), r.Warnings)
	}
}

// TestPlayer moves the clock by hand: at every moment the timeline is the one
// of the session then, whichever way the clock got there.
func TestPlayer(t *testing.T) {
	r := tape(t)
	if r.Info.Name != "talk" || r.Info.Source != "ab" || r.Length != 9 || r.end != 9 || !slices.Contains(r.Warnings, "damaged lines of turns.rttm, skipped: 1") {
		t.Fatalf("%+v, length %v, end %v, warnings %q", r.Info, r.Length, r.end, r.Warnings)
	}
	now := time.Date(2032, 1, 1, 0, 0, 0, 0, time.UTC)
	p := NewPlayer(r, 2, func() time.Time { return now })
	at := func(want float64, open ...string) {
		t.Helper()
		s := p.Now()
		var speaking []string
		for _, l := range s.Timeline.Lanes {
			if l.Open {
				speaking = append(speaking, l.Speaker)
			}
		}
		if s.Position != want || !slices.Equal(speaking, open) {
			t.Errorf("at %v %v speak, want at %v %v", s.Position, speaking, want, open)
		}
	}
	at(0)
	testkit.Equal(t, len(p.Now().Gaps), 0, "gaps before they begin")
	now = now.Add(time.Second) // 2 s of the recording
	at(2, "A")
	p.TogglePause()
	now = now.Add(time.Hour)
	at(2, "A")
	p.Seek(5)
	at(5, "A", "B")
	p.Seek(4.5)
	at(4.5, "A")
	p.Faster(-1)
	p.TogglePause()
	now = now.Add(time.Second)
	p.Faster(1)
	at(5.5, "A", "B")
	p.Faster(-1)
	if s := p.Now(); s.Speed != 1 || !s.Playing || len(s.Gaps) != 1 || s.Gaps[0].End != 2.5 {
		t.Errorf("%+v", s)
	}
	now = now.Add(time.Second)
	at(6.5, "B")
	now = now.Add(time.Hour)
	at(9)
	if s := p.Now(); !s.Over || s.Playing || s.Position != 9 {
		t.Error("the end is no end")
	}
	want := []protocol.Turn{{Speaker: "A", Start: 1, End: 4.5}, {Speaker: "B", Start: 3.5, End: 9}}
	if got := p.Now().Timeline.Turns(); !slices.Equal(got, want) || !slices.Equal(r.Turns(), want) {
		t.Errorf("turns %v, want %v", got, want)
	}
	p.Seek(5) // from the end it continues to play
	now = now.Add(time.Second)
	at(6, "B")
	p.Seek(1e9)
	at(9)
	p.TogglePause() // begins again
	at(0)
	p.TogglePause()
	p.Seek(1e9) // paused by its user, who goes to the end and back
	at(9)
	p.Seek(5)
	now = now.Add(time.Second)
	at(5, "A", "B")
	if p.Now().Playing {
		t.Error("it plays, although it was paused")
	}
	p.Seek(1e9)
	if p.TogglePause(); !p.Now().Playing {
		t.Error("it begins again, but does not play")
	}
	p.Seek(-5)
	for range 20 {
		p.Faster(1)
	}
	testkit.Equal(t, p.Now().Speed, MaxSpeed, "the speed has no bound")
	for range 40 {
		p.Faster(-1)
	}
	testkit.Equal(t, p.Now().Speed, MinSpeed, "the speed has no bound")
	for range 4 {
		p.Faster(1)
	}
	testkit.Equal(t, p.Now().Speed, 1, "the way back does not lead to the recording's speed")
}

// TestPlayerSteps returns every event and turn once, in order, and none that a
// seek skipped.
func TestPlayerSteps(t *testing.T) {
	now := time.Now()
	p := NewPlayer(tape(t), 1, func() time.Time { return now })
	takes := func(events, turns int, atEnd bool) {
		t.Helper()
		all, over := p.Take()
		testkit.Equal(t, over, atEnd, "over")
		for _, step := range all {
			turns -= len(step.Turns)
			if step.Event.Raw != nil {
				events--
			}
		}
		if events != 0 || turns != 0 {
			t.Errorf("%d events and %d turns are missing", events, turns)
		}
	}
	now = now.Add(5 * time.Second)
	_ = p.Now() // does not take steps
	takes(2, 0, false)
	now = now.Add(time.Hour)
	takes(1, 2, true)
	p.Seek(1)
	p.Seek(8)
	takes(0, 0, false)
}

// TestSaveAnnotationsOfTwo: of two programs that show a recording, one does not undo what the other has saved.
func TestSaveAnnotationsOfTwo(t *testing.T) {
	dir := t.TempDir()
	name := func(store *protocol.AnnotationsStore, label, name string) {
		t.Helper()
		testkit.NoError(t, store.Update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Rename(label, name) }))
	}
	one, two := protocol.NewAnnotationsStore(protocol.Annotations{}), protocol.NewAnnotationsStore(protocol.Annotations{})
	first, second := SaveAnnotations(dir, one, 0), SaveAnnotations(dir, two, 0)
	name(one, "SPEAKER_00", "Anna")
	testkit.NoError(t, first.Close())
	name(two, "SPEAKER_01", "Ben")
	if err := second.Close(); err == nil || !strings.Contains(err.Error(), "another program has changed") || hint.Of(err) == "" || !two.Unsaved() {
		t.Errorf("%v; %s", err, hint.Of(err))
	}
	if raw, err := os.ReadFile(filepath.Join(dir, NotesFile)); err != nil || !strings.Contains(string(raw), "Anna") || strings.Contains(string(raw), "Ben") {
		t.Errorf("%s, %v", raw, err)
	}
}

// savedName is the folder of a recording in which a name of A is saved. rename gives A another one.
func savedName(t *testing.T) (dir string, store *protocol.AnnotationsStore, k *AnnotationsSaver, rename func(name string)) {
	dir, store = t.TempDir(), protocol.NewAnnotationsStore(protocol.Annotations{})
	k = SaveAnnotations(dir, store, 0)
	rename = func(name string) {
		testkit.NoError(t, store.Update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Rename("A", name) }))
	}
	rename("Anna")
	testkit.Eventually(t, "the saving", func() bool { return !store.Unsaved() && exists(filepath.Join(dir, NotesFile)) })
	return dir, store, k, rename
}

// TestSaveAnnotationsUnreadable: a file that cannot be read was not changed by another program.
func TestSaveAnnotationsUnreadable(t *testing.T) {
	dir, store, k, rename := savedName(t)
	testkit.NoError(t, os.Remove(filepath.Join(dir, NotesFile)))
	testkit.NoError(t, os.Mkdir(filepath.Join(dir, NotesFile), 0o700))
	rename("Bea")
	if err := k.Close(); err == nil || strings.Contains(err.Error(), "another program") || hint.Of(err) == "" || !store.Unsaved() {
		t.Errorf("%v; %s", err, hint.Of(err))
	}
}

// TestSaveAnnotations saves every change; the file is complete at any moment.
func TestSaveAnnotations(t *testing.T) {
	dir, store, k, rename := savedName(t)
	k.cancel() // as if it were busy with the first change
	<-k.done
	rename("Bea")
	if store.Unsaved() {
		t.Error("a change that the end saves counts as unsaved")
	}
	store.MarkSaved(store.Load())
	testkit.NoError(t, k.Close())
	r := &Recording{Dir: dir}
	if err := r.readAnnotations(); err != nil || r.Annotations.Name("A") != "Bea" {
		t.Errorf("A is %q, %v", r.Annotations.Name("A"), err)
	}
	again := SaveAnnotations(dir, store, 0) // which has the file already
	rename("Cleo")
	testkit.NoError(t, again.Close())
	settings := testkit.Must(r.Annotations.Rename("B", "Ben"))(t)
	configured := t.TempDir()
	testkit.NoError(t, SaveAnnotations(configured, protocol.NewAnnotationsStore(settings), 0).Close())
	if !exists(filepath.Join(configured, NotesFile)) {
		t.Error("the names of the settings are not saved")
	}
	left, _ := os.ReadDir(dir)
	testkit.Equal(t, len(left), 1, "files are left")
	gone := protocol.NewAnnotationsStore(protocol.Annotations{})
	k = SaveAnnotations(filepath.Join(dir, "gone"), gone, 0)
	_ = gone.Update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Bookmark(1, "") })
	testkit.Eventually(t, "a change that could not be saved", gone.Unsaved)
	if err := k.Close(); err == nil || !gone.Unsaved() {
		t.Errorf("annotations that cannot be saved are no error")
	}
}

// TestWordsOfTheService: without words.ndjson, an export has the words that a replay has.
func TestWordsOfTheService(t *testing.T) {
	dir := t.TempDir()
	want := []protocol.Turn{{Speaker: "A", Start: 1, End: 2, Text: "good morning"}}
	var events bytes.Buffer
	for _, e := range []protocol.Event{protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 1, "A"), protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 2, "A"), protocol.NewTextEvent(want[0])} {
		fmt.Fprintf(&events, "%s\n", e.Raw)
	}
	testkit.NoError(t, os.WriteFile(filepath.Join(dir, EventsFile), events.Bytes(), 0o600))
	r := testkit.Must(Read(t.Context(), dir))(t)
	testkit.EqualSlices(t, r.Content(protocol.Annotations{}).Turns, want, "turns")
}
