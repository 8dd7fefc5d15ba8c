package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"hubbub/capture"
	"hubbub/protocol"
	"hubbub/protocol/export"
	"hubbub/tui"
)

func (s *session) about() capture.Info                     { return s.source }
func (s *session) annotations() *protocol.AnnotationsStore { return s.notes }
func (s *session) player() tui.Player                      { return nil }

// export writes what the session knows by now. A turn that is still open is
// written as far as it has been decided.
func (s *session) export(notes protocol.Annotations) (string, error) {
	dir, audio := "", ""
	if s.record != nil {
		dir, audio = s.record.dir, s.record.path(audioFile)
	}
	return exportState(s.state(), s.source.Base, s.title(), s.started, dir, audio, notes)
}

// exportState writes one moment of a session beside its recording in dir, or,
// where that is "", into a folder of its own.
func exportState(st tui.State, name, title string, started time.Time, dir, audio string, notes protocol.Annotations) (string, error) {
	turns := st.Timeline.Turns()
	for _, l := range st.Timeline.Lanes {
		if l.Open && st.Timeline.Decided > l.OpenSince {
			turns = append(turns, protocol.Turn{Speaker: l.Speaker, Start: l.OpenSince, End: st.Timeline.Decided})
		}
	}
	source := exportSource{
		info:  export.Info{Name: name, Title: title, Started: started, Length: st.Heard},
		turns: turns, notes: notes, audio: audio,
	}
	if dir == "" { // in the current one
		dir = "hubbub-" + started.Format("20060102-150405")
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return "", fmt.Errorf("cannot export: %w", err)
		}
	}
	return exportBeside(dir, source)
}

// title is what people call the session.
func (s *session) title() string {
	if s.source.Kind == capture.File {
		return filepath.Base(s.source.Name)
	}
	return "Session of " + s.started.Format("2 January 2006, 15:04")
}
