package session

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/tui/display"
)

// toggleRecording stops the recording that runs, or starts one in a new folder. It returns
// one line that says where it is.
func (l *Live) toggleRecording() (string, error) {
	l.recordMu.Lock()
	defer l.recordMu.Unlock()
	if l.over() {
		return "", errors.New("the session is over: nothing is left to record")
	}
	if s := l.Recorder.Status(); s != nil && s.Failure == nil {
		dir, _ := l.Recorder.Dir()
		done, err := l.Recorder.Stop()
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("recorded %s into %s, %s", display.Clock(done.Length), dir, display.Bytes(done.Bytes)), nil
	}
	base := cmp.Or(l.recordInto, "hubbub-"+time.Now().Format("20060102-150405"))
	dir, err := recording.Numbered(base, "", l.Recorder.Start)
	if err != nil {
		return "", err
	}
	l.recordings = append(l.recordings, dir)
	return "recording into " + dir, nil
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
