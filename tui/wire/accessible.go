package wire

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/trace"
	"hubbub/tui/display"
)

// Sentences are the state of the connection in sentences.
func Sentences(s trace.Status, now time.Time) (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch {
	case s.Over && s.End.Fault:
		add("The stream is over: %s, %s", s.End.Type, ended(display.TerminalSafe(s.End.Text)))
		return out
	case s.Over:
		add("The stream was closed, %d, %s.", s.End.Code, protocol.CodeMeaning(s.End.Code))
		return out
	case s.Opened.IsZero():
		add("There is no stream yet.")
		return out
	}
	add("The stream has been open for %s, %s sent, %s received.", display.Clock(now.Sub(s.Opened).Seconds()),
		display.Count(s.Messages[0], "message"), display.Count(s.Messages[1], "message"))
	if s.Chunks > 0 {
		text := fmt.Sprintf("The pace of the audio is %.2f, %s", s.Pace, display.Ahead(s.Ahead))
		if s.Waiting >= 0 {
			text += ", " + display.Count(s.Waiting, "chunk") + " in the queue"
		}
		add("%s.", text)
	}
	if s.MaxGap > trace.StallGap {
		add("Warning: no chunk went out for %s within the last seconds.", display.Millis(s.MaxGap))
	}
	if waiting := now.Sub(s.Unanswered); !s.Unanswered.IsZero() && waiting > trace.MaxPong {
		add("Warning: no answer to a ping for %s.", display.Duration(waiting))
	} else if s.Ping > 0 {
		add("A ping takes %s.", display.Millis(s.Ping))
	}
	if t := s.Socket; t != nil {
		add("The TCP round-trip time is %s, %s retransmitted, %s unacknowledged.", display.Millis(t.RTT), display.Count(t.Retransmits, "segment"), display.Bytes(int64(t.Unacked)))
	}
	if s.Lag >= 0 {
		add("The last event came %s after its audio, the slowest %s.", display.Millis(s.Lag), display.Millis(s.MaxLag))
	}
	if s.Faults > 0 {
		add("%s so far.", display.Count(s.Faults, "fault"))
	}
	return out
}

// ended is a text with one full stop at its end: what to do after a failure has one already.
func ended(text string) string { return strings.TrimSuffix(text, ".") + "." }

// Latest are the latest messages and faults as sentences, at most n, oldest first.
// Chunks and pings are omitted.
func Latest(s trace.Snapshot, n int) (lines []string) {
	for i := s.Entries.Len() - 1; i >= 0 && len(lines) < n; i-- {
		e := s.Entries.At(i)
		r := row{&e.Record, &e.Run}
		if !messageRecords.includes(r) && !faultRecords.includes(r) {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s, %s%s: %s", r.record.At.Local().Format("15:04:05"), directions[r.record.Dir], r.record.Kind, ended(rowText(r))))
	}
	slices.Reverse(lines)
	return lines
}
