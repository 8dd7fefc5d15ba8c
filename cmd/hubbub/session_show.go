package main

import (
	"fmt"
	"os"
	"path/filepath"

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
	st := s.state()
	turns := st.Timeline.Turns()
	for _, l := range st.Timeline.Lanes {
		if l.Open && st.Timeline.Decided > l.OpenSince {
			turns = append(turns, protocol.Turn{Speaker: l.Speaker, Start: l.OpenSince, End: st.Timeline.Decided})
		}
	}
	source := exportSource{
		info:  export.Info{Name: s.source.Base, Title: s.title(), Started: s.started, Length: st.Heard},
		turns: turns, notes: notes,
	}
	if s.record != nil {
		source.audio = s.record.path(audioFile)
		return exportBeside(s.record.dir, source)
	}
	// Without a recording the exports make a folder in the current one.
	name := "hubbub-" + s.started.Format("20060102-150405")
	if err := os.MkdirAll(name, 0o777); err != nil {
		return "", fmt.Errorf("cannot export: %w", err)
	}
	return exportBeside(name, source)
}

// title is what people call the session.
func (s *session) title() string {
	if s.source.Kind == capture.File {
		return filepath.Base(s.source.Name)
	}
	return "Session of " + s.started.Format("2 January 2006, 15:04")
}
