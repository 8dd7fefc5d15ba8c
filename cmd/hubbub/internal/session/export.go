package session

import (
	"fmt"
	"os"
	"path/filepath"

	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/protocol"
	"hubbub/protocol/export"
	"hubbub/tui/display"
)

// exportState writes a session so far into the folder of a recording that has it from the
// start on, or, without one (""), into a new folder in the current one. An open turn is
// written as far as it was decided.
func exportState(st display.State, name, title, dir string, annotations protocol.Annotations) (string, error) {
	content := recording.Content{
		Info:  export.Info{Name: name, Title: title, Started: st.Started, Length: st.Position, Gaps: st.Gaps},
		Turns: turnsSoFar(st), Annotations: annotations,
	}
	if dir != "" {
		content.Audio = filepath.Join(dir, recording.AudioFile)
	} else {
		dir = "hubbub-" + st.Started.Format("20060102-150405")
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return "", fmt.Errorf("cannot export: %w", err)
		}
	}
	return content.Export(dir)
}

// turnsSoFar are the turns of a session, an open one as far as it was decided.
func turnsSoFar(st display.State) []protocol.Turn {
	turns := st.Timeline.Turns()
	for _, l := range st.Timeline.Lanes {
		if until := st.DecidedUntil(); l.Open && until > l.OpenSince {
			turns = append(turns, protocol.Turn{Speaker: l.Speaker, Start: l.OpenSince, End: until})
		}
	}
	return turns
}
