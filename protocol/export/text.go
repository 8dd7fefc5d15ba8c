package export

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"hubbub/protocol"
)

// writeRTTM writes the turns with names for labels. RTTM has no bookmarks.
func writeRTTM(w *bufio.Writer, d *Document) {
	for _, t := range d.Turns {
		fmt.Fprintln(w, protocol.FormatRTTM(d.Name, protocol.Turn{Speaker: d.Speakers[t.Speaker].Name, Start: t.Start, End: t.End}))
	}
}

type jsonTurn struct {
	Speaker string  `json:"speaker"` // label
	Name    string  `json:"name"`
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
	Text    string  `json:"text,omitempty"`
}

// writeJSON writes one object; times are seconds, shares fractions.
func writeJSON(w *bufio.Writer, d *Document) error {
	out := struct {
		Name      string              `json:"name"`
		Title     string              `json:"title"`
		Started   *time.Time          `json:"started"`
		Length    float64             `json:"length"`
		Talk      float64             `json:"talk"`
		Speakers  []Speaker           `json:"speakers"`
		Turns     []jsonTurn          `json:"turns"`
		Bookmarks []protocol.Bookmark `json:"bookmarks"`
		Gaps      []protocol.Span     `json:"gaps"`
	}{
		Name: d.Name, Title: d.Title, Length: protocol.Round1ms(d.Length), Talk: d.Talk,
		Speakers: []Speaker{}, Turns: []jsonTurn{}, Bookmarks: append([]protocol.Bookmark{}, d.Bookmarks...),
		Gaps: append([]protocol.Span{}, d.Gaps...),
	}
	if !d.Started.IsZero() {
		started := d.Started.UTC().Truncate(time.Millisecond)
		out.Started = &started
	}
	for _, s := range d.Speakers {
		s.Share = math.Round(s.Share*10000) / 10000
		out.Speakers = append(out.Speakers, s)
	}
	for _, t := range d.Turns {
		s := d.Speakers[t.Speaker]
		out.Turns = append(out.Turns, jsonTurn{s.Label, s.Name, t.Start, t.End, t.Text})
	}
	return protocol.WriteJSON(w, out)
}

// writeCSV writes a row for each turn and bookmark, in order of time. The column
// bookmark is empty in the rows of turns, and text, what was said, in those of bookmarks.
func writeCSV(w io.Writer, d *Document) error {
	c := csv.NewWriter(w)
	c.UseCRLF = true // RFC 4180
	rows := [][]string{{"start", "end", "duration", "speaker", "label", "bookmark", "text"}}
	for _, m := range d.inTime() {
		row := []string{seconds(m.start), seconds(m.end), seconds(m.end - m.start), "", "", cell(cmp.Or(m.text, "bookmark")), ""}
		if m.speaker != nil {
			row = append(row[:3], cell(m.speaker.Name), cell(m.speaker.Label), "", cell(m.text))
		}
		rows = append(rows, row)
	}
	return c.WriteAll(rows)
}

// formula is where a spreadsheet may evaluate text: at the start of a cell. Where a comma
// separates decimals, it ends a cell at a semicolon, and knows no quotation marks inside one.
var formula = regexp.MustCompile(`(^|; *"*)([=+\-@|%＝＋－＠])`)

// cell keeps a spreadsheet from evaluating text as a formula: an apostrophe in
// front makes it text (OWASP, CSV injection).
func cell(s string) string { return formula.ReplaceAllString(s, "$1'$2") }

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 3, 64) }

// writeAudacity writes a label track for Audacity. A bookmark is a point label: its
// end is its start.
func writeAudacity(w *bufio.Writer, d *Document) {
	for _, m := range d.inTime() {
		fmt.Fprintf(w, "%.6f\t%.6f\t%s\n", m.start, m.end, m.label())
	}
}

// bookmarkCue is the length of the cue of a bookmark, in seconds.
const bookmarkCue = 3

// writeWebVTT writes a cue for each turn, with the voice of its speaker, and one for
// each bookmark. The text of a turn without words is the name.
func writeWebVTT(w *bufio.Writer, d *Document) {
	fmt.Fprintf(w, "WEBVTT %s\n", strings.ReplaceAll(d.Title, "-->", "→"))
	for i, m := range d.inTime() {
		end, text := m.end, vttText.Replace(m.label())
		if m.speaker == nil {
			end += bookmarkCue
		} else {
			text = fmt.Sprintf("<v %s>%s</v>", text, vttText.Replace(cmp.Or(m.text, m.label())))
		}
		fmt.Fprintf(w, "\n%d\n%s --> %s\n%s\n", i+1, vttTime(m.start), vttTime(end), text)
	}
}

// vttText escapes cue text; an escaped ">" can neither end a tag nor be part of
// "-->".
var vttText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// vttTime is hh:mm:ss.mmm, with two or more digits for the hours.
func vttTime(s float64) string {
	ms := int64(math.Round(s * 1000))
	return fmt.Sprintf("%02d:%02d:%02d.%03d", ms/3600000, ms/60000%60, ms/1000%60, ms%1000)
}

// moment is a turn, or a bookmark, which ends where it starts.
type moment struct {
	start, end float64
	speaker    *Speaker // nil = a bookmark
	text       string   // what was said, or the note
}

// label is who speaks, or the bookmark with its note.
func (m moment) label() string {
	switch {
	case m.speaker != nil:
		return m.speaker.Name
	case m.text == "":
		return "Bookmark"
	}
	return "Bookmark: " + m.text
}

// inTime are all turns and bookmarks in order of their starts; bookmarks come before
// turns with the same start.
func (d *Document) inTime() (all []moment) {
	for _, b := range d.Bookmarks {
		all = append(all, moment{b.At, b.At, nil, b.Note})
	}
	for _, t := range d.Turns {
		all = append(all, moment{t.Start, t.End, &d.Speakers[t.Speaker], t.Text})
	}
	slices.SortStableFunc(all, func(a, b moment) int { return cmp.Compare(a.start, b.start) })
	return all
}
