package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hubbub/capture"
	"hubbub/localserver/engine"
	"hubbub/protocol"
)

// The files of a recording. The first three are the contract's and enough to
// play it again; the others say what they leave open.
const (
	audioFile    = "audio.wav"
	eventsFile   = "events.ndjson"   // the service's messages as received
	turnsFile    = "turns.rttm"      // finished turns, under the service's labels
	sessionFile  = "session.json"    // sessionInfo
	arrivalsFile = "arrivals.ndjson" // an arrival for each line of eventsFile
	notesFile    = "notes.json"      // protocol.Annotations
)

const sessionVersion = 1

// sessionInfo is session.json: what the audio and the events do not tell.
type sessionInfo struct {
	Version int       `json:"version"`
	Program string    `json:"program"`
	Started time.Time `json:"started"`
	Source  string    `json:"source"`  // for people
	Name    string    `json:"name"`    // in RTTM
	Server  string    `json:"server"`  // for people; no credentials
	Latency float64   `json:"latency"` // seconds; 0 = not known
	Pace    string    `json:"pace"`
	// Watched is the id of a stream that somebody else sent: its recording
	// has no audio.
	Watched string `json:"watched,omitempty"`
	// Known once the session has ended in order.
	Ended *time.Time `json:"ended,omitempty"`
	Gaps  []gap      `json:"gaps,omitempty"`
}

// gap is a stretch that never reached the service, in seconds.
type gap struct {
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

// arrival says when an event came and where it belongs.
type arrival struct {
	Heard float64 `json:"heard"` // newest audio by then, seconds
	At    float64 `json:"at"`    // its timestamp on the recording's clock, which counts dropped audio as well
}

// arrived is an event of a recording, with its place on the recording's clock.
type arrived struct {
	heard float64
	event protocol.Event
}

// recorded is a recording as it was found on the disk.
type recorded struct {
	dir    string
	info   sessionInfo
	events []arrived // in order of arrival
	notes  protocol.Annotations
	audio  string  // path; "" = there is none
	length float64 // seconds
	end    float64 // where turns that never ended are ended

	warnings []string // what is damaged or missing, for people
}

// readRecording reads all of a recording but its audio. What is damaged is
// left out and said; what cannot be a recording is an error.
func readRecording(ctx context.Context, dir string) (*recorded, error) {
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &failure{fmt.Errorf("there is no folder %s", dir), "Name a folder that `hubbub --record` made."}
	case err != nil:
		return nil, &failure{fmt.Errorf("cannot read the recording: %w", err), "Name a folder that you may read."}
	case !st.IsDir():
		return nil, &failure{fmt.Errorf("%s is no folder", dir), "Name the folder of a recording; a file plays with `hubbub --input`."}
	}
	r := &recorded{dir: dir}
	if err := r.readInfo(); err != nil {
		return nil, err
	}
	turns, name, err := r.readTurns()
	if err != nil {
		return nil, err
	}
	if r.info.Name == "" {
		if r.info.Name = name; name == "" {
			r.info.Name = "live"
		}
	}
	if err := r.readEvents(turns); err != nil {
		return nil, err
	}
	if err := r.readNotes(); err != nil {
		return nil, err
	}
	r.measure(ctx, turns)
	return r, nil
}

func (r *recorded) path(name string) string { return filepath.Join(r.dir, name) }

func (r *recorded) warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// readInfo fills in what a recording without session.json leaves open.
func (r *recorded) readInfo() error {
	r.info = sessionInfo{Latency: engine.DefaultLatency.Seconds()}
	raw, err := os.ReadFile(r.path(sessionFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unreadable(err)
	}
	var info sessionInfo
	switch err := json.Unmarshal(raw, &info); {
	case err != nil:
		r.warn("%s is damaged and was left out", sessionFile)
		return nil
	case info.Version > sessionVersion:
		return &failure{fmt.Errorf("%s was recorded by a newer hubbub (version %d of its form)", r.dir, info.Version), "Play it with the program that recorded it, or a newer one."}
	}
	if !(info.Latency > 0 && info.Latency < 60) {
		info.Latency = r.info.Latency
	}
	info.Source, info.Server, info.Name = protocol.Clean(info.Source, 200), protocol.Clean(info.Server, 200), protocol.Clean(info.Name, 200)
	r.info = info
	return nil
}

// readTurns reads turns.rttm; the last line of a program that was killed may
// be half a line.
func (r *recorded) readTurns() (turns []protocol.Turn, name string, err error) {
	raw, err := os.ReadFile(r.path(turnsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", unreadable(err)
	}
	damaged := 0
	for line := range bytes.Lines(raw) {
		read, err := protocol.ReadRTTM(bytes.NewReader(line))
		if err != nil {
			damaged++
			continue
		}
		for _, t := range read {
			turns, name = append(turns, t.Turn), t.File
		}
	}
	if damaged > 0 {
		r.warn("%s damaged in %s, left out", lines(damaged), turnsFile)
	}
	return turns, name, nil
}

// readEvents reads the messages, and when they came. Without them the turns
// tell what the messages were.
func (r *recorded) readEvents(turns []protocol.Turn) error {
	f, err := os.Open(r.path(eventsFile))
	if errors.Is(err, fs.ErrNotExist) {
		if len(turns) == 0 && !exists(r.path(audioFile)) {
			return &failure{fmt.Errorf("%s holds no recording", r.dir), "Name a folder that `hubbub --record` made: it holds audio.wav, events.ndjson and turns.rttm."}
		}
		r.fromTurns(turns)
		return nil
	}
	if err != nil {
		return unreadable(err)
	}
	defer f.Close()
	arrivals := r.readArrivals()
	damaged := 0
	in := bufio.NewReaderSize(f, 1<<16)
	newest := 0.0
	for n := 0; ; n++ {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 && len(bytes.TrimSpace(line)) > 0 {
			e, bad := protocol.ParseEvent(line)
			// A service may send what nobody can read: such a message is part
			// of the session. A line that is no JSON at all is damage.
			if bad != nil && !json.Valid(bytes.TrimSpace(line)) {
				damaged++
			} else {
				speech := e.Type == protocol.TypeSpeakerStart || e.Type == protocol.TypeSpeakerEnd
				heard := newest
				if speech {
					heard = e.Timestamp + r.info.Latency
				}
				if a, ok := arrivals[n]; ok {
					if speech {
						e.Timestamp, heard = a.At, a.At+r.info.Latency
					}
					if r.info.Pace != capture.Fast.String() {
						heard = a.Heard
					}
				}
				newest = max(newest, heard)
				r.events = append(r.events, arrived{newest, e})
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return unreadable(err)
		}
	}
	if damaged > 0 {
		r.warn("%s damaged in %s, left out", lines(damaged), eventsFile)
	}
	return nil
}

// readArrivals reads when the events came, by the number of their line.
func (r *recorded) readArrivals() map[int]arrival {
	raw, err := os.ReadFile(r.path(arrivalsFile))
	if err != nil {
		return nil
	}
	all := map[int]arrival{}
	n := 0
	for line := range bytes.Lines(raw) {
		var a arrival
		if json.Unmarshal(line, &a) == nil && a.At >= 0 && a.Heard >= 0 && a.Heard <= protocol.MaxTimestamp {
			all[n] = a
		}
		n++
	}
	return all
}

// fromTurns makes the events that lead to these turns.
func (r *recorded) fromTurns(turns []protocol.Turn) {
	for _, t := range turns {
		for _, e := range []protocol.Event{
			protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, t.Start, t.Speaker),
			protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, t.End, t.Speaker),
		} {
			r.events = append(r.events, arrived{e.Timestamp + r.info.Latency, e})
		}
	}
	slices.SortStableFunc(r.events, func(a, b arrived) int {
		switch {
		case a.heard < b.heard:
			return -1
		case a.heard > b.heard:
			return 1
		}
		return 0
	})
	if !exists(r.path(eventsFile)) {
		r.warn("%s is missing; the turns were taken from %s", eventsFile, turnsFile)
	}
}

func (r *recorded) readNotes() error {
	raw, err := os.ReadFile(r.path(notesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &r.notes)
	}
	if err != nil {
		// Going on would replace people's names by none.
		return &failure{fmt.Errorf("cannot read %s: %w", r.path(notesFile), err), "Mend it, or move it away to play the recording without its names."}
	}
	return nil
}

// measure finds how long the recording is, and where open turns end: the
// session has written them into turns.rttm when it ended.
func (r *recorded) measure(ctx context.Context, turns []protocol.Turn) {
	if src, err := capture.Open(ctx, capture.Spec{Input: r.path(audioFile)}); err == nil {
		r.audio, r.length = r.path(audioFile), src.Info().Duration.Seconds()
		if n := src.Info().Notice; n != "" {
			r.warn("%s: %s", audioFile, n)
		}
		_ = src.Close()
	} else if exists(r.path(audioFile)) {
		r.warn("the audio cannot be read: %v", err)
	} else if r.info.Watched == "" {
		r.warn("%s is missing", audioFile)
	}
	timeline := protocol.NewTimeline()
	for _, e := range r.events {
		timeline.Apply(e.event)
	}
	s := timeline.Snapshot()
	r.length = max(r.length, s.Decided)
	for _, t := range turns {
		r.length = max(r.length, t.End)
	}
	r.end = r.length
	for _, l := range s.Lanes {
		for _, t := range turns {
			if l.Open && t.Start == l.OpenSince && protocol.FormatRTTM("", protocol.Turn{Speaker: l.Speaker, End: 1}) == protocol.FormatRTTM("", protocol.Turn{Speaker: t.Speaker, End: 1}) {
				r.end = t.End
			}
		}
	}
	for i := range r.events {
		r.events[i].heard = min(r.events[i].heard, r.length)
	}
}

// turns are all finished turns, under the service's labels.
func (r *recorded) turns() []protocol.Turn {
	timeline := protocol.NewTimeline()
	for _, e := range r.events {
		timeline.Apply(e.event)
	}
	timeline.EndOpen(r.end)
	return timeline.Snapshot().Turns()
}

// title is what people call the recording.
func (r *recorded) title() string {
	if abs, err := filepath.Abs(r.dir); err == nil {
		return filepath.Base(abs)
	}
	return strings.TrimRight(r.dir, "/")
}

func unreadable(err error) error {
	return &failure{fmt.Errorf("cannot read the recording: %w", err), "Name a folder that you may read."}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func lines(n int) string {
	if n == 1 {
		return "1 line is"
	}
	return fmt.Sprintf("%d lines are", n)
}
