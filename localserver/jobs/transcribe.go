package jobs

import (
	"cmp"
	"fmt"
	"strings"

	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/words"
)

// transcribe adds what is said to the turns of a diarization. A recogniser that fails
// costs words, not the job.
func (a *attempt) transcribe(path string, out *protocol.Diarization) error {
	list := make([]protocol.Turn, len(out.Turns))
	for i, t := range out.Turns {
		list[i] = protocol.Turn{Speaker: t.Speaker, Start: float64(t.Start), End: float64(t.End)}
	}
	out.TurnTexts, out.Words = []protocol.JobText{}, []protocol.JobText{} // arrays, not null
	if a.Words == nil {                                                   // another node has created the job
		warn(out, "The turns have no words: the node that ran the job has no speech recogniser.")
		return nil
	}
	recording := words.NewRecording(a.Words, list, true, nil)
	err := a.read(path, maxLength, 0.5, 1, func(position int64, samples []float32) error {
		return recording.Audio(a.ctx, position, samples)
	})
	failed, first, e := recording.Finish(a.ctx)
	if err := cmp.Or(err, e); err != nil {
		return err
	}
	if failed > 0 {
		a.Logger.Warn("turns of a job have no words", "job", a.job.ID, "turns", failed, "error", first, "hint", hint.Of(first))
		warn(out, "%d of %d turns have no words: the speech recogniser failed.", failed, len(list))
	}
	out.TurnTexts, out.Words = texts(list), texts(recording.Words())
	return nil
}

// texts are the stretches in which something was said.
func texts(list []protocol.Turn) []protocol.JobText {
	out := []protocol.JobText{}
	for _, t := range list {
		if t.Text != "" {
			out = append(out, protocol.JobText{Speaker: t.Speaker, Start: protocol.Seconds(t.Start), End: protocol.Seconds(t.End), Text: t.Text})
		}
	}
	return out
}

// warn adds a warning to a diarization.
func warn(out *protocol.Diarization, format string, args ...any) {
	out.Warning = strings.TrimSpace(out.Warning + " " + fmt.Sprintf(format, args...))
}
