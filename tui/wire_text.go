package tui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"hubbub/protocol"
)

// bytesText is a number of bytes for people, in at most 6 cells.
func bytesText(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 99_950:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 999_500:
		return fmt.Sprintf("%.0f kB", float64(n)/1e3)
	case n < 99_950_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.0f MB", float64(n)/1e6)
}

// millisText is a short time for people.
func millisText(d time.Duration) string {
	switch ms := d.Seconds() * 1000; {
	case ms < 9.95:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 999.5:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return short(d)
}

// wireText says what a row is about, without what its columns say.
func wireText(r wireRow) (text string, look role) {
	rec := r.record
	switch {
	case rec.Fault:
		look = roleBad
	case wireSuspect(rec, r.run):
		look = roleWarn
	case rec.Kind == protocol.WireChunk || rec.Kind == protocol.WirePing || rec.Kind == protocol.WirePong:
		look = roleDim
	}
	said := Clean(rec.Text)
	switch rec.Kind {
	case protocol.WireChunk:
		if said != "" {
			return said, look
		}
		if r.run != nil && r.run.Chunks > 1 {
			return runText(rec, r.run), look
		}
		return chunkText(rec), look
	case protocol.WireEvent, protocol.WireError, protocol.WireMessage:
		return eventText(rec, said), look
	case protocol.WirePong:
		if rec.Took > 0 {
			return "round trip " + millisText(rec.Took), look
		}
		return said, look
	case protocol.WireClose:
		text = fmt.Sprintf("%d %s", rec.Code, protocol.CodeMeaning(rec.Code))
		if said != "" {
			text += fmt.Sprintf(" %q", said)
		}
		if rec.Code != 1000 && look == rolePlain {
			look = roleWarn
		}
		return text, look
	case protocol.WireEnd:
		text = rec.Type
		if rec.Code != 0 {
			text += fmt.Sprintf(", %d %s", rec.Code, protocol.CodeMeaning(rec.Code))
		}
		if said != "" {
			text += ", " + said
		}
		return text, look
	}
	if rec.Code != 0 { // of HTTP
		text = fmt.Sprintf("%d %s  ", rec.Code, http.StatusText(rec.Code))
	}
	if rec.Took > 0 {
		text += millisText(rec.Took) + "  "
	}
	return text + said, look
}

func chunkText(r *protocol.WireRecord) string {
	text := fmt.Sprintf("number %d, %s", r.Chunk, aheadSegment(r.Ahead).text)
	if r.Gap > protocol.WireStall {
		text = millisText(r.Gap) + " of none, then " + text
	}
	if r.Dropped > 0 {
		text = fmt.Sprintf("%d dropped, then ", r.Dropped) + text
	}
	if r.Queue > 0 {
		text += fmt.Sprintf(", %d wait", r.Queue)
	}
	if r.Gap > 0 && r.Gap <= protocol.WireStall {
		text += ", gap " + millisText(r.Gap)
	}
	text += ", taken in " + millisText(r.Took)
	if r.Socket != nil && r.Socket.Unacked > 0 {
		text += ", " + bytesText(int64(r.Socket.Unacked)) + " on the way"
	}
	return text
}

func runText(r *protocol.WireRecord, run *protocol.WireRun) string {
	text := fmt.Sprintf("%d in %s, %s", run.Chunks, short(max(r.At.Sub(run.Began), 0)), aheadSegment(r.Ahead).text)
	if run.Gap > protocol.WireStall {
		text = millisText(run.Gap) + " of none, then " + text
	}
	if run.Dropped > 0 {
		text = fmt.Sprintf("%d dropped, then ", run.Dropped) + text
	}
	if run.Unacked > backlog {
		text += ", to " + bytesText(int64(run.Unacked)) + " on the way"
	}
	if r.Queue > 0 {
		text += fmt.Sprintf(", %d wait", r.Queue)
	}
	if run.MaxGap > 0 {
		text += ", gaps to " + millisText(run.MaxGap)
	}
	text += ", taken in " + millisText(run.MaxTook)
	if run.Unacked > 0 && run.Unacked <= backlog {
		text += ", to " + bytesText(int64(run.Unacked)) + " on the way"
	}
	return text
}

func eventText(r *protocol.WireRecord, said string) string {
	text := ""
	switch r.Type {
	case protocol.TypeSpeakerStart:
		text = "start "
	case protocol.TypeSpeakerEnd:
		text = "end   "
	case protocol.TypeError:
	default:
		text = Clean(r.Type) + " "
	}
	text += said
	if r.Lag > 0 && (r.Type == protocol.TypeSpeakerStart || r.Type == protocol.TypeSpeakerEnd) {
		text += ", lag " + millisText(r.Lag)
	}
	return strings.TrimRight(text, " ")
}

// wireSearch is what the filter by text looks through: what is seen, and the
// raw message.
func wireSearch(r wireRow) string {
	text, _ := wireText(r)
	return string(r.record.Dir) + " " + string(r.record.Kind) + " " + text + " " + string(r.record.Raw)
}

// rawLines is a row as JSON in lines of at most so many cells: the message as
// it was received, then the whole record.
func (m *model) rawLines(r wireRow, width int) []rawLine {
	var out []rawLine
	rec := *r.record
	if len(rec.Raw) > 0 {
		for _, l := range wrap(string(rec.Raw), width) {
			out = append(out, rawLine{l, rolePlain})
		}
		out = append(out, rawLine{})
	}
	if r.run != nil && r.run.Chunks > 1 {
		out = append(out, rawLine{fmt.Sprintf("the newest of %d chunks; u unfolds them:", r.run.Chunks), roleDim})
	}
	rec.Raw = nil // it stands above, as it came
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(rec.Line()), "", "  "); err != nil {
		return append(out, rawLine{err.Error(), roleBad})
	}
	for _, l := range strings.Split(b.String(), "\n") {
		for _, part := range wrap(l, width) {
			out = append(out, rawLine{part, roleDim})
		}
	}
	return out
}

type rawLine struct {
	text string
	role role
}

// wrap cuts text into lines of at most width cells, wherever that is.
func wrap(s string, width int) (lines []string) {
	s = Clean(s)
	for width > 0 && textWidth(s) > width {
		n, used := 0, 0
		for n < len(s) {
			k := firstCluster(s[n:])
			if k == 0 {
				break
			}
			w := textWidth(s[n : n+k])
			if used+w > width {
				break
			}
			n, used = n+k, used+w
		}
		if n == 0 { // a character wider than the line
			break
		}
		lines = append(lines, s[:n])
		s = s[n:]
	}
	return append(lines, s)
}
