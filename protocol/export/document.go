package export

import (
	"cmp"
	"slices"
	"time"

	"hubbub/protocol"
)

// maxText is the maximum length of a name or title, in characters.
const maxText = 200

// maxTurnText is the maximum length of the text of a turn, in characters.
const maxTurnText = 64 << 10

// Info is what is known of a session besides its turns.
type Info struct {
	Name    string    // in RTTM; "" = live
	Title   string    // display name; "" = Name
	Started time.Time // zero = not known
	Length  float64   // seconds; 0 = up to the last turn
	Audio   *Audio    // nil = none
	// Gaps are the stretches whose speakers are unknown: audio is missing or was not decided.
	Gaps []protocol.Span
}

// Audio is the audio of a session, for the page.
type Audio struct {
	// Path is the file to embed; "" = the page refers to URL.
	Path string
	// URL is the address of the file, relative to the page.
	URL string
}

// Speaker is one person of a Document.
type Speaker struct {
	Label   string   `json:"label"`  // the one that the others were merged into
	Labels  []string `json:"labels"` // all labels of the person, Label first
	Name    string   `json:"name"`   // display name; unique in the document
	Talk    float64  `json:"talk"`   // seconds
	Share   float64  `json:"share"`  // of all talk, 0 to 1
	Turns   int      `json:"turns"`
	Longest float64  `json:"longest"` // seconds
	First   float64  `json:"first"`   // start of the first turn
}

// Turn is a turn of Document.Speakers[Speaker], in seconds.
type Turn struct {
	Speaker    int
	Start, End float64
	Text       string // what was said, on one line; "" = not recognised
}

// Document is a session with its annotations applied.
type Document struct {
	Info
	Speakers  []Speaker           // in order of first speech
	Turns     []Turn              // in order of their starts
	Bookmarks []protocol.Bookmark // in order of time
	Talk      float64             // of all speakers together, seconds
}

// New makes a Document of finished turns, in any order, and annotations. Merged
// labels are one speaker. All text is cleaned for one line, without control and
// bidirectional formatting characters.
func New(info Info, turns []protocol.Turn, annotations protocol.Annotations) *Document {
	d := &Document{Info: info, Bookmarks: annotations.Bookmarks()}
	d.Name = cmp.Or(protocol.Clean(info.Name, maxText), "live")
	d.Title = cmp.Or(protocol.Clean(info.Title, maxText), d.Name)
	for i, p := range annotations.Speakers(protocol.SnapshotOf(turns)) {
		s := Speaker{Label: p.Label, Labels: p.Labels, Name: p.Lane.Speaker, Turns: len(p.Turns), First: p.Turns[0].Start}
		for _, t := range p.Turns {
			d.Turns = append(d.Turns, Turn{i, t.Start, t.End, protocol.Clean(t.Text, maxTurnText)})
			s.Talk += t.End - t.Start
			s.Longest = max(s.Longest, protocol.Round1ms(t.End-t.Start))
			d.Length = max(d.Length, t.End)
		}
		d.Talk += s.Talk
		s.Talk = protocol.Round1ms(s.Talk)
		d.Speakers = append(d.Speakers, s)
	}
	d.Talk = protocol.Round1ms(d.Talk)
	for i := range d.Speakers {
		d.Speakers[i].Share = d.Speakers[i].Talk / d.Talk // every speaker has a turn
	}
	for _, b := range d.Bookmarks {
		d.Length = max(d.Length, b.At)
	}
	slices.SortStableFunc(d.Turns, func(a, b Turn) int { return cmp.Compare(a.Start, b.Start) })
	return d
}
