package export

import (
	"cmp"
	"slices"
	"time"

	"hubbub/protocol"
)

// maxText is how long a name or a note is written, in characters.
const maxText = 200

// Info is what is known of a session beside its turns.
type Info struct {
	Name    string    // in RTTM; "" = live
	Title   string    // for people; "" = Name
	Started time.Time // zero = not known
	Length  float64   // seconds; 0 = up to the last turn
	Audio   *Audio    // nil = was not kept
}

// Audio is the sound of a session, for the page.
type Audio struct {
	// Path is the file to embed; "" = the page refers to URL.
	Path string
	// URL is where the page finds the file, relative to itself.
	URL string
}

// Speaker is one person of a Document.
type Speaker struct {
	Label   string   // the label that stands for the person
	Labels  []string // all labels that were merged into it, its own first
	Name    string   // for people; unique in the document
	Talk    float64  // seconds
	Share   float64  // of all talk, 0 to 1
	Turns   int
	Longest float64 // seconds
	First   float64 // start of the first turn
}

// Turn is a stretch of speech. Speaker counts in Document.Speakers.
type Turn struct {
	Speaker    int
	Start, End float64
}

// Document is a session ready to be written.
type Document struct {
	Info
	Speakers  []Speaker           // in order of first speech
	Turns     []Turn              // in order of their starts
	Bookmarks []protocol.Bookmark // in order of time
	Talk      float64             // of all speakers together, seconds
}

// New puts a session together from its finished turns, in any order, and what
// people added to it. Merged labels are one speaker. All text is fit for one
// line; control and bidirectional formatting characters are taken out.
func New(info Info, turns []protocol.Turn, notes protocol.Annotations) *Document {
	d := &Document{Info: info, Bookmarks: notes.Bookmarks()}
	d.Name, d.Title = protocol.Clean(info.Name, maxText), protocol.Clean(info.Title, maxText)
	if d.Name == "" {
		d.Name = "live"
	}
	if d.Title == "" {
		d.Title = d.Name
	}
	raw := lanes(turns)
	roots := notes.Roots(raw)
	for i, lane := range notes.Apply(raw).Lanes {
		s := Speaker{Label: roots[i], Labels: []string{roots[i]}, Name: lane.Speaker, Turns: len(lane.Turns), First: lane.Turns[0].Start}
		for _, l := range raw.Lanes {
			if l.Speaker != s.Label && notes.Root(l.Speaker) == s.Label {
				s.Labels = append(s.Labels, l.Speaker)
			}
		}
		for _, t := range lane.Turns {
			d.Turns = append(d.Turns, Turn{i, t.Start, t.End})
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
		d.Speakers[i].Share = d.Speakers[i].Talk / d.Talk // who is listed has spoken
	}
	for _, b := range d.Bookmarks {
		d.Length = max(d.Length, b.At)
	}
	slices.SortStableFunc(d.Turns, func(a, b Turn) int { return cmp.Compare(a.Start, b.Start) })
	return d
}

// lanes sorts turns by label, in order of first speech. What no service may
// send is left out, because turns may come from a file that somebody changed.
func lanes(turns []protocol.Turn) protocol.Snapshot {
	turns = slices.Clone(turns)
	slices.SortStableFunc(turns, func(a, b protocol.Turn) int { return cmp.Compare(a.Start, b.Start) })
	var s protocol.Snapshot
	index := map[string]int{}
	for _, t := range turns {
		t.Speaker, t.Start, t.End = protocol.Label(t.Speaker), protocol.Round1ms(t.Start), protocol.Round1ms(t.End)
		if !(t.Start >= 0 && t.End > t.Start && t.End <= protocol.MaxTimestamp) {
			continue
		}
		i, known := index[t.Speaker]
		if !known {
			i = len(s.Lanes)
			index[t.Speaker] = i
			s.Lanes = append(s.Lanes, protocol.Lane{Speaker: t.Speaker})
		}
		s.Lanes[i].Turns = append(s.Lanes[i].Turns, t)
	}
	return s
}
