package session

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/tui/display"
)

// recordSwitch starts and stops recordings while the session runs.
type recordSwitch struct {
	rec    *recording.Recorder
	wanted string      // folder of --record, where the first one runs already; "" = none was named
	over   func() bool // whether the session is

	mu   sync.Mutex // held during a change
	dirs []string   // of the recordings that were started here
}

func newRecordSwitch(rec *recording.Recorder, over func() bool) *recordSwitch {
	wanted, _ := rec.Dir()
	return &recordSwitch{rec: rec, wanted: wanted, over: over}
}

// toggle stops the recording that runs, or starts one in a new folder. It returns
// one line that says where it is.
func (r *recordSwitch) toggle() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over() {
		return "", errors.New("the session is over: nothing is left to record")
	}
	if s := r.rec.Status(); s != nil && s.Failure == nil {
		dir, _ := r.rec.Dir()
		done, err := r.rec.Stop()
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("recorded %s into %s, %s", display.Clock(done.Length), dir, display.Bytes(done.Bytes)), nil
	}
	base := cmp.Or(r.wanted, "hubbub-"+time.Now().Format("20060102-150405"))
	dir, err := recording.Numbered(base, "", r.rec.Start)
	if err != nil {
		return "", err
	}
	r.dirs = append(r.dirs, dir)
	return "recording into " + dir, nil
}

// notices say where the recordings are that the user started.
func (r *recordSwitch) notices() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, dir := range r.dirs {
		out = append(out, "a recording is in "+dir)
	}
	return out
}

// recordingState is what the displays show of a recording; nil without one.
func recordingState(rec *recording.Recorder) *display.Recording {
	s := rec.Status()
	if s == nil {
		return nil
	}
	r := &display.Recording{Length: s.Length, Bytes: s.Bytes, Free: s.Free}
	if s.Failure != nil {
		r.Stopped = s.Failure.String()
	}
	return r
}
