// Package recording is the recording of a session in a folder: its files, the
// Writer that records while the session runs, Read, the Player that replays it,
// and its export to other formats.
package recording

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"hubbub/capture"
	"hubbub/protocol"
)

// The files of a recording. The first three are the contract's and are enough
// to replay it.
const (
	AudioFile    = "audio.wav"
	EventsFile   = "events.ndjson"   // the service's messages as received
	TurnsFile    = "turns.rttm"      // finished turns, under the service's labels
	SessionFile  = "session.json"    // Info
	ArrivalsFile = "arrivals.ndjson" // an arrival for each line of EventsFile
	NotesFile    = "notes.json"      // protocol.Annotations
	WordsFile    = "words.ndjson"    // turns with what was said, where a recogniser was used
)

// files are all of them.
var files = []string{AudioFile, EventsFile, TurnsFile, SessionFile, ArrivalsFile, NotesFile, WordsFile}

const formatVersion = 1

// Contains reports whether a file is one of the recording in dir.
func Contains(dir string, file fs.FileInfo) bool {
	return slices.ContainsFunc(files, func(name string) bool {
		own, err := os.Stat(filepath.Join(dir, name))
		return err == nil && os.SameFile(own, file)
	})
}

// Info is session.json: what audio and events do not contain.
type Info struct {
	Version int          `json:"version"`
	Program string       `json:"program"`
	Started time.Time    `json:"started"`
	Source  string       `json:"source"`  // display name
	Name    string       `json:"name"`    // in RTTM
	Server  string       `json:"server"`  // display name; without credentials
	Latency float64      `json:"latency"` // seconds; 0 = unknown
	Pace    capture.Pace `json:"pace"`
	// Ended is written when the session has ended in order.
	Ended *time.Time `json:"ended,omitempty"`
	// Gaps are written when they begin and end.
	Gaps []protocol.Span `json:"gaps,omitempty"`

	live bool // the source cannot wait
}

// NewInfo describes a session; each of its recordings has a start of its own. server must
// not contain credentials.
func NewInfo(program string, source capture.Info, server string, latency time.Duration, pace capture.Pace) Info {
	return Info{
		Version: formatVersion,
		Program: program,
		Source:  source.Name,
		Name:    source.Base,
		Server:  server,
		Latency: latency.Seconds(),
		Pace:    pace,
		live:    source.Kind.Live(),
	}
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// arrival is a line of arrivals.ndjson, in seconds: how much audio had been read
// when the event arrived, and the event's timestamp on the recording's clock,
// which also counts dropped audio.
type arrival struct {
	Position  float64 `json:"heard"`
	Timestamp float64 `json:"at"`
}

func (a arrival) valid() bool {
	return a.Timestamp >= 0 && a.Position >= 0 && a.Position <= protocol.MaxTimestamp
}
