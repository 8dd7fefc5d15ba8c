package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hubbub/capture"
	"hubbub/protocol"
	"hubbub/tui/display"
)

// inputProblem says what is wrong with a microphone, in one line; "" = nothing is.
// Displays add what to do.
func inputProblem(s capture.Stats) string {
	switch {
	case s.Outage != nil:
		o := s.Outage
		text := fmt.Sprintf("no audio from %q since %s: ", cmp.Or(o.Device, s.Device), display.Clock(o.Since.Seconds()))
		if o.Reason != "" {
			text += o.Reason + "; "
		}
		if o.Device != "" {
			return text + "reopening it; the other device goes on"
		}
		return text + "reopening it until " + display.Clock((o.Since + capture.OutageLimit).Seconds())
	case s.Drift > 0:
		return fmt.Sprintf("%q delivers more audio than real time: is its sample rate wrong?", s.Device)
	case s.Drift < 0:
		return fmt.Sprintf("%q delivers less audio than real time: is its sample rate wrong?", s.Device)
	case s.Silence == capture.Muted:
		return fmt.Sprintf("%q delivers only silence: is it muted?", s.Silent)
	case s.Silence == capture.Quiet:
		return fmt.Sprintf("almost no sound from %q: is it muted?", s.Silent)
	}
	return ""
}

// reportInput reports what has changed at a microphone. Displays that are looked
// at show the problem itself, from the state.
func reportInput(was, is capture.Stats, d Display) error {
	if was.Source != "" && is.Source != was.Source {
		text := fmt.Sprintf("the sound server records %q instead of %q now", is.Source, was.Source)
		if err := d.notice(text, false); err != nil {
			return err
		}
	}
	problem := inputProblem(is)
	if problem != "" && problem != inputProblem(was) && !d.Properties().Attended {
		if is.Outage == nil {
			problem += " `hubbub devices` lists all"
		}
		if err := d.notice(problem, true); err != nil {
			return err
		}
	}
	// One that ended before this report has left a gap.
	if n := len(is.Gaps); is.Outage == nil && n > 0 && (was.Outage != nil || n > len(was.Gaps)) {
		back := is.Device
		if was.Outage != nil {
			back = cmp.Or(was.Outage.Device, back)
		}
		text := fmt.Sprintf("%q delivers audio again", back)
		if is.Device != was.Device {
			text = fmt.Sprintf("%q is used instead of %q", is.Device, was.Device)
		}
		if !d.Properties().StatesGaps {
			text += fmt.Sprintf("; %.1f s of audio from %s on are missing", is.Gaps[n-1].End-is.Gaps[n-1].Start, display.Clock(is.Gaps[n-1].Start))
		}
		return d.notice(text, false)
	}
	if was.StandsIn != "" && is.StandsIn == "" && is.Outage == nil && strings.Contains(is.Device, was.StandsIn) { // and no other was chosen
		return d.notice(fmt.Sprintf("%q is used again", was.StandsIn), false)
	}
	if was.Silence != capture.NotSilent && problem == "" && is.Device == was.Device { // another one may be silent, too
		return d.notice(fmt.Sprintf("there is sound from %q now", was.Silent), false)
	}
	return nil
}

// lossNotices say at the end which audio is missing: what the device did not deliver, and what was dropped.
func lossNotices(s capture.Stats, dropped int64) (out []string) {
	missing := 0.0
	for _, g := range s.Gaps {
		missing += g.End - g.Start
	}
	if missing > 0 {
		out = append(out, fmt.Sprintf("the device delivered no audio for %.1f s in all", missing))
	}
	if dropped > 0 {
		out = append(out, display.Count(dropped, "chunk")+" of 100 ms dropped: the connection was too slow, or there was none")
	}
	if n := s.Overflows; n > 0 {
		out = append(out, fmt.Sprintf("the device lost audio %s: the machine was too busy", display.Times(n)))
	}
	return out
}

// gaps are the stretches that no stream has decided, and those in which the device
// delivered nothing, in order and without overlap.
func (l *Live) gaps() []protocol.Span {
	var merged []protocol.Span
	stream := l.Stream.State()
	all := slices.Clone(stream.Gaps)
	l.mu.Lock()
	if end := l.Chunks.Stats().Position.Seconds(); l.unfinished && end-stream.Sent > noticeableGap {
		all = append(all, protocol.Span{Start: stream.Sent, End: end})
	}
	l.mu.Unlock()
	for _, g := range l.Chunks.Stats().Gaps {
		all = append(all, protocol.Span(g))
	}
	slices.SortFunc(all, func(a, b protocol.Span) int { return cmp.Compare(a.Start, b.Start) })
	for _, g := range all {
		if n := len(merged); n > 0 && g.Start <= merged[n-1].End {
			merged[n-1].End = max(merged[n-1].End, g.End)
			continue
		}
		merged = append(merged, g)
	}
	return merged
}
