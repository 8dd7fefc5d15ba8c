package recording

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hubbub/capture"
	"hubbub/protocol"
	"hubbub/protocol/hint"
)

// assumedLatency is the latency, in seconds, of a recording that does not
// contain it: the default of the built-in server.
const assumedLatency = 1

// maxFile bounds a file that is read as a whole, in bytes: its origin may be unknown.
const maxFile = 256 << 20

// maxEvents bounds the messages of a recording, of which the shortest need hundreds of times their
// length in memory. The turns of a timeline with their transcripts are fewer.
var maxEvents = 1 << 20 // tests replace it

// Recording is a recording that was read from its folder.
type Recording struct {
	Dir         string
	Info        Info
	Annotations protocol.Annotations
	// Audio is the path of the audio file; "" = there is none.
	Audio string
	// Length is in seconds.
	Length float64
	// Warnings say what is damaged or missing.
	Warnings []string

	events      []timedEvent             // in order of arrival
	transcripts map[protocol.Turn]string // by turn, without match
	end         float64                  // where turns end that have no end event, in seconds
}

// timedEvent is an event with the position of the recording, in seconds, at
// which it arrived. Its timestamp is on the recording's clock.
type timedEvent struct {
	at    float64
	event protocol.Event
}

// Read reads a recording except its audio. It skips what is damaged, with a
// warning. A folder that contains no recording is an error.
func Read(ctx context.Context, dir string) (*Recording, error) {
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, hint.Add(fmt.Errorf("there is no folder %s", dir), "Name a folder that `hubbub --record` made.")
	case err != nil:
		return nil, unreadable(err)
	case !st.IsDir():
		return nil, hint.Add(fmt.Errorf("%s is not a folder", dir), "Name the folder of a recording; a file plays with `hubbub --input`.")
	}
	r := &Recording{Dir: dir}
	if err := r.readInfo(); err != nil {
		return nil, err
	}
	turns, name, err := r.readTurns()
	if err != nil {
		return nil, err
	}
	r.Info.Name = cmp.Or(r.Info.Name, name, "live")
	if err := cmp.Or(r.readEvents(turns), r.readAnnotations(), r.readWords()); err != nil {
		return nil, err
	}
	r.openAudio(ctx)
	r.measure(turns)
	return r, nil
}

// Title is the name of the folder.
func (r *Recording) Title() string {
	if abs, err := filepath.Abs(r.Dir); err == nil {
		return filepath.Base(abs)
	}
	return strings.TrimRight(r.Dir, "/")
}

// Timeline is that of the whole recording, at its end.
func (r *Recording) Timeline() protocol.Snapshot { return NewPlayer(r, 0, time.Now).Now().Timeline }

// Turns are all finished turns, under the service's labels.
func (r *Recording) Turns() []protocol.Turn { return r.Timeline().Turns() }

func (r *Recording) timeline() *protocol.Timeline {
	t := protocol.NewTimeline()
	for _, e := range r.events {
		t.Apply(e.event)
	}
	return t
}

func (r *Recording) path(name string) string { return filepath.Join(r.Dir, name) }

func (r *Recording) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// readFile reads one of the files; a missing one is not an error.
func (r *Recording) readFile(name string) (raw []byte, found bool, err error) {
	if err = regular(r.path(name), maxFile); err == nil {
		raw, err = os.ReadFile(r.path(name))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, unreadable(err)
	}
	return raw, true, nil
}

// readLines passes the lines of one of the files to read, which reports whether a line is intact,
// and counts them. Those beyond most are left out.
func (r *Recording) readLines(name string, most int, read func(number int, line []byte) (intact bool)) (n int, found bool, err error) {
	raw, found, err := r.readFile(name)
	damaged := 0
	for line := range bytes.Lines(raw) {
		if n < most && !read(n, line) {
			damaged++
		}
		n++
	}
	if damaged > 0 {
		r.warn("damaged lines of %s, skipped: %d", name, damaged)
	}
	if n > most {
		r.warn("lines of %s that are left out, because a recording has at most %d of them: %d", name, most, n-most)
	}
	return n, found, err
}

// regular is the error of a path that is no file, or one of more than most bytes. Of others, as a
// pipe, reading could wait for ever.
func regular(path string, most int64) error {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	case st.Size() > most:
		return fmt.Errorf("%s is larger than %d MiB", path, most>>20)
	}
	return nil
}

func (r *Recording) readInfo() error {
	r.Info = Info{Latency: assumedLatency}
	raw, found, err := r.readFile(SessionFile)
	if err != nil || !found {
		return err
	}
	var info Info
	if err := json.Unmarshal(raw, &info); err != nil {
		r.warn("%s is damaged and was skipped", SessionFile)
		return nil
	}
	if info.Version > formatVersion {
		return hint.Add(fmt.Errorf("%s was recorded by a newer hubbub (format version %d)", r.Dir, info.Version), "Replay it with the program that recorded it, or a newer one.")
	}
	if !(info.Latency > 0 && info.Latency < 60) {
		info.Latency = assumedLatency
	}
	info.Source, info.Server, info.Name = protocol.Clean(info.Source, 200), protocol.Clean(info.Server, 200), protocol.Clean(info.Name, 200)
	r.Info = info
	return nil
}

// readTurns reads turns.rttm and the name in it. The last line of a program that
// was killed may be incomplete.
func (r *Recording) readTurns() (turns []protocol.Turn, name string, err error) {
	_, _, err = r.readLines(TurnsFile, maxEvents/2, func(_ int, line []byte) bool {
		read, err := protocol.ReadRTTM(bytes.NewReader(line))
		for _, t := range read {
			turns, name = append(turns, t.Turn), t.File
		}
		return err == nil
	})
	return turns, name, err
}

// readEvents reads the messages with their arrivals. Without events.ndjson the
// messages are made of the turns.
func (r *Recording) readEvents(turns []protocol.Turn) error {
	arrivals, arrived, err := r.readArrivals()
	if err != nil {
		return err
	}
	newest, starts := 0.0, false
	lines, found, err := r.readLines(EventsFile, maxEvents, func(number int, line []byte) bool {
		if len(bytes.TrimSpace(line)) == 0 {
			return true
		}
		e, err := protocol.ParseEvent(line)
		// A service may send JSON that is no event: that is part of the session.
		// A line that is no JSON is damaged.
		if err != nil && !json.Valid(bytes.TrimSpace(line)) {
			return false
		}
		starts = starts || err == nil && e.Type == protocol.TypeSpeakerStart
		newest = max(newest, r.place(&e, arrivals[number]))
		r.events = append(r.events, timedEvent{newest, e})
		return true
	})
	if err != nil {
		return err
	}
	if !found {
		if len(turns) == 0 && !exists(r.path(AudioFile)) {
			return hint.Add(fmt.Errorf("%s holds no recording", r.Dir), "Name a folder that `hubbub --record` made: it holds audio.wav, events.ndjson and turns.rttm.")
		}
		r.eventsFromTurns(turns, "is missing")
		return nil
	}
	switch {
	case !starts && len(turns) > 0: // a power failure can leave a file of zeros
		r.eventsFromTurns(turns, "has no turns")
	case arrived > 0 && arrived != lines && !r.contains(turns): // a missing arrival moves those after it
		r.eventsFromTurns(turns, "does not fit "+ArrivalsFile)
	}
	return nil
}

// contains reports whether these turns follow from the events: their starts, and their ends
// unless the session ended them.
func (r *Recording) contains(turns []protocol.Turn) bool {
	timeline := r.timeline().Snapshot()
	known := map[string]bool{}
	for _, t := range timeline.Turns() {
		known[protocol.FormatRTTM("", t)] = true
	}
	open := func(t protocol.Turn) string {
		return protocol.FormatRTTM("", protocol.Turn{Speaker: t.Speaker, Start: t.Start, End: t.Start})
	}
	for _, l := range timeline.Lanes {
		if l.Open {
			known[open(protocol.Turn{Speaker: l.Speaker, Start: l.OpenSince})] = true
		}
	}
	return !slices.ContainsFunc(turns, func(t protocol.Turn) bool { return !known[protocol.FormatRTTM("", t)] && !known[open(t)] })
}

// place puts an event on the recording's clock, and returns the position at
// which it arrived; 0 = unknown. a is nil where no arrival was recorded.
func (r *Recording) place(e *protocol.Event, a *arrival) (position float64) {
	if e.Type == protocol.TypeSpeakerStart || e.Type == protocol.TypeSpeakerEnd {
		if a != nil {
			e.Timestamp = a.Timestamp
		}
		position = e.Timestamp + r.Info.Latency
	}
	// At the pace of a file that was processed fast, arrivals mean nothing.
	if a != nil && r.Info.Pace != capture.Fast {
		position = a.Position
	}
	return position
}

// readArrivals reads the valid arrivals by the number of their line, and counts the lines.
func (r *Recording) readArrivals() (arrivals map[int]*arrival, n int, err error) {
	raw, _, err := r.readFile(ArrivalsFile)
	if err != nil {
		return nil, 0, err
	}
	arrivals = map[int]*arrival{}
	for line := range bytes.Lines(raw) {
		var a arrival
		if n < maxEvents && json.Unmarshal(line, &a) == nil && a.valid() {
			arrivals[n] = &a
		}
		n++
	}
	return arrivals, n, nil
}

// eventsFromTurns makes the events that lead to these turns. why says what is wrong with the
// file of the events.
func (r *Recording) eventsFromTurns(turns []protocol.Turn, why string) {
	r.events = nil
	for _, t := range turns {
		for _, e := range []protocol.Event{
			protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, t.Start, t.Speaker),
			protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, t.End, t.Speaker),
		} {
			r.events = append(r.events, timedEvent{e.Timestamp + r.Info.Latency, e})
		}
	}
	slices.SortStableFunc(r.events, func(a, b timedEvent) int { return cmp.Compare(a.at, b.at) })
	if len(turns) > 0 {
		r.warn("%s %s; the turns were taken from %s", EventsFile, why, TurnsFile)
	} else {
		r.warn("%s %s, and %s has no turns", EventsFile, why, TurnsFile)
	}
}

func (r *Recording) readAnnotations() error {
	raw, found, err := r.readFile(NotesFile)
	if err != nil || !found {
		return err
	}
	if err := json.Unmarshal(raw, &r.Annotations); err != nil {
		// The next change would replace the file.
		return hint.Add(fmt.Errorf("cannot read %s: %w", r.path(NotesFile), err), "Repair it, or move it away to replay the recording without its names.")
	}
	return nil
}

func (r *Recording) readWords() error {
	r.transcripts = map[protocol.Turn]string{}
	_, _, err := r.readLines(WordsFile, protocol.MaxTurns, func(_ int, line []byte) bool {
		var t protocol.Turn
		err := json.Unmarshal(line, &t)
		if err == nil {
			r.transcripts[protocol.Turn{Speaker: t.Speaker, Start: t.Start, End: t.End}] = t.Text
		}
		return err == nil
	})
	return err
}

// addTranscripts gives finished turns their transcripts, also on the timeline.
func (r *Recording) addTranscripts(timeline *protocol.Timeline, turns []protocol.Turn) []protocol.Turn {
	for i, t := range turns {
		if turns[i].Text = r.transcripts[protocol.Turn{Speaker: t.Speaker, Start: t.Start, End: t.End}]; turns[i].Text != "" {
			timeline.SetText(turns[i])
		}
	}
	return turns
}

func (r *Recording) openAudio(ctx context.Context) {
	var source capture.Source
	err := regular(r.path(AudioFile), math.MaxInt64)
	if err == nil {
		source, err = capture.Open(ctx, capture.Spec{Input: r.path(AudioFile)})
	}
	switch {
	case err == nil:
		r.Audio, r.Length = r.path(AudioFile), source.Info().Duration.Seconds()
		if n := source.Info().Notice; n != "" {
			r.warn("%s: %s", AudioFile, n)
		}
		_ = source.Close()
	case exists(r.path(AudioFile)):
		r.warn("the audio cannot be read: %v", err)
	default:
		r.warn("%s is missing", AudioFile)
	}
}

// measure finds the length of the recording, and where turns without an end
// event end: the session wrote them into turns.rttm when it ended.
func (r *Recording) measure(turns []protocol.Turn) {
	timeline := r.timeline().Snapshot()
	if n := timeline.Counts.Refused; n > 0 {
		r.warn("events that are left out, because a session has at most %d labels and %d turns: %d", protocol.MaxLabels, protocol.MaxTurns, n)
	}
	r.Length = max(r.Length, timeline.Decided)
	for _, t := range turns {
		r.Length = max(r.Length, t.End)
	}
	r.end = r.Length
	// Labels in the file are as RTTM writes them.
	label := func(s string) string { return protocol.FormatRTTM("", protocol.Turn{Speaker: s, End: 1}) }
	for _, l := range timeline.Lanes {
		for _, t := range turns {
			if l.Open && t.Start == l.OpenSince && label(t.Speaker) == label(l.Speaker) {
				r.end = t.End
			}
		}
	}
	for i := range r.events {
		r.events[i].at = min(r.events[i].at, r.Length)
	}
}

func unreadable(err error) error {
	return hint.Add(fmt.Errorf("cannot read the recording: %w", err), "Name a folder that you may read.")
}
