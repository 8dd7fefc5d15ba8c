package wire

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hubbub/protocol/trace"
	"hubbub/tui/canvas"
)

// Sentences are the lines of the view above its chart, each as a sentence. What follows a warning and
// is coloured like it, as the lag after the problem of the service, is said without another one.
func Sentences(s trace.Status, now time.Time, latency time.Duration, position float64) (out []string) {
	p := painter{&View{status: s, at: now}, Screen{Glyphs: &canvas.Glyphs{}, Latency: latency, Position: position}}
	for _, line := range []canvas.Line{p.traffic(), p.verdict(), p.figures(), p.socket()} {
		var texts []string
		warned := false
		for _, segment := range line {
			text := strings.TrimSpace(segment.Text) // without a glyph
			warning := slices.Contains([]canvas.Style{canvas.Warn, canvas.Warn.Bold(), canvas.Bad.Bold()}, segment.Style)
			if warning && !warned {
				text = "warning: " + text
			}
			texts, warned = append(texts, text), warning
		}
		if len(texts) > 0 {
			out = append(out, ended(strings.Join(texts, ", ")))
		}
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
