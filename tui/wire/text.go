package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"hubbub/protocol"
	"hubbub/protocol/trace"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

func rowStyle(r row) canvas.Style {
	switch rec := r.record; {
	case rec.Fault:
		return canvas.Bad
	case r.warning(), rec.Kind == trace.KindClose && rec.Code != 1000:
		return canvas.Warn
	case rec.Kind == trace.KindChunk || rec.Kind == trace.KindPing || rec.Kind == trace.KindPong:
		return canvas.Dim
	}
	return canvas.Plain
}

// rowText is the text of a row, without what its columns show.
func rowText(r row) (text string) {
	rec := r.record
	recordText := display.TerminalSafe(rec.Text)
	switch rec.Kind {
	case trace.KindChunk:
		if recordText != "" {
			return recordText
		}
		return chunkText(rec, r.asRun())
	case trace.KindEvent, trace.KindError, trace.KindMessage:
		return eventText(rec, recordText)
	case trace.KindPong:
		if rec.Took > 0 {
			return "round trip " + display.Millis(rec.Took)
		}
		return recordText
	case trace.KindClose:
		text = fmt.Sprintf("%d %s", rec.Code, protocol.CodeMeaning(rec.Code))
		if recordText != "" {
			text += fmt.Sprintf(" %q", recordText)
		}
		return text
	case trace.KindEnd:
		text = rec.Type
		if rec.Code != 0 {
			text += fmt.Sprintf(", %d %s", rec.Code, protocol.CodeMeaning(rec.Code))
		}
		if recordText != "" {
			text += ", " + recordText
		}
		return text
	}
	if rec.Code != 0 { // of HTTP
		text = fmt.Sprintf("%d %s  ", rec.Code, http.StatusText(rec.Code))
	}
	if rec.Took > 0 {
		text += display.Millis(rec.Took) + "  "
	}
	return text + recordText
}

// chunkText is the text of a run of chunks, perhaps of one.
func chunkText(r *trace.Record, run trace.Run) string {
	text, gap, write, upTo := fmt.Sprintf("number %d", r.Chunk), "gap ", "write ", ""
	if run.Chunks > 1 {
		text = fmt.Sprintf("%d in %s", run.Chunks, display.Duration(max(r.At.Sub(run.Began), 0)))
		gap, write, upTo = "largest gap ", "longest write ", "up to "
	}
	text += ", " + display.Ahead(r.Ahead)
	if run.Gap > trace.StallGap {
		text = "gap of " + display.Millis(run.Gap) + ", then " + text
	}
	if run.Dropped > 0 {
		text = fmt.Sprintf("%d dropped, then ", run.Dropped) + text
	}
	unacked := ""
	if run.Unacked > 0 {
		unacked = ", " + upTo + display.Bytes(int64(run.Unacked)) + " unacknowledged"
	}
	if run.Unacked > maxUnacked { // a warning comes first: the line may be cut
		text, unacked = text+unacked, ""
	}
	if r.Waiting > 0 {
		text += fmt.Sprintf(", queue %d", r.Waiting)
	}
	if run.Chunks == 1 && run.Gap <= trace.StallGap {
		run.MaxGap = run.Gap
	}
	if run.MaxGap > 0 {
		text += ", " + gap + display.Millis(run.MaxGap)
	}
	return text + ", " + write + display.Millis(run.MaxTook) + unacked
}

func eventText(r *trace.Record, recordText string) string {
	text := ""
	switch r.Type {
	case protocol.TypeSpeakerStart:
		text = "start "
	case protocol.TypeSpeakerEnd:
		text = "end   "
	case protocol.TypeError:
	default:
		text = display.TerminalSafe(r.Type) + " "
	}
	text += recordText
	if r.Lag > 0 && (r.Type == protocol.TypeSpeakerStart || r.Type == protocol.TypeSpeakerEnd) {
		text += ", lag " + display.Millis(r.Lag)
	}
	return strings.TrimRight(text, " ")
}

type styledLine struct {
	text  string
	style canvas.Style
}

// rawLines is a row in lines of at most width cells: the message as it was
// received, then the whole record as JSON. unfold is the key that unfolds a run.
func rawLines(r row, width int, unfold string) []styledLine {
	var out []styledLine
	rec := *r.record
	if len(rec.Raw) > 0 {
		for _, l := range canvas.WrapWords(display.TerminalSafe(string(rec.Raw)), width) {
			out = append(out, styledLine{l, canvas.Plain})
		}
		out = append(out, styledLine{})
	}
	if n := r.asRun().Chunks; n > 1 {
		out = append(out, styledLine{fmt.Sprintf("the newest of %d chunks; %s unfolds them:", n, unfold), canvas.Dim})
	}
	rec.Raw = nil // shown above
	var b bytes.Buffer
	_ = json.Indent(&b, []byte(rec.Line()), "", "  ") // it is JSON
	for l := range strings.SplitSeq(b.String(), "\n") {
		for _, part := range canvas.WrapWords(display.TerminalSafe(l), width) {
			out = append(out, styledLine{part, canvas.Dim})
		}
	}
	return out
}

// NDJSON is all rows that the filter leaves as records, one per line.
func (v *View) NDJSON() (text []byte, records int) { return v.ndjson(v.visibleRows()) }

// SelectedNDJSON is the selected row, or the newest; records is 0 if there is none.
func (v *View) SelectedNDJSON() (text []byte, records int) {
	rows := v.visibleRows()
	i := v.Index(rows)
	if i < 0 {
		return nil, 0
	}
	return v.ndjson(rows[i : i+1])
}

// ndjson is rows as records, one per line; of a run all chunks that the log
// still has, else the newest.
func (v *View) ndjson(rows []row) (text []byte, records int) {
	var b bytes.Buffer
	for _, r := range rows {
		chunks := v.chunks(r)
		if len(chunks) == 0 {
			chunks = []row{r}
		}
		for _, c := range chunks {
			b.WriteString(c.record.Line())
			b.WriteByte('\n')
			records++
		}
	}
	return b.Bytes(), records
}
