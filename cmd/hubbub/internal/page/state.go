package page

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"

	"hubbub/protocol"
	"hubbub/protocol/export"
)

// Shown is how much the timeline of a page shows, in seconds.
const Shown = 60

// State is a session at one moment. Whoever hands it out never changes it afterwards.
type State struct {
	Title string `json:"title"`
	// Now is the position in seconds up to which turns are decided, Rate how many
	// seconds it moves in a second; 0 = it stands.
	Now  float64 `json:"now"`
	Rate float64 `json:"rate"`
	// Status says why it stands; "" = the session runs.
	Status   string    `json:"status"`
	Speakers []Speaker `json:"speakers"` // not nil
	// Gaps are the stretches that the timeline shows whose speakers are unknown.
	Gaps []protocol.Span `json:"gaps"`
	// Turns are in order of their starts.
	Turns []Turn `json:"-"`
}

// Speaker is a lane of the timeline.
type Speaker struct {
	ID     int     `json:"id"`
	Colour int     `json:"colour"` // of the theme
	Name   string  `json:"name"`
	Open   bool    `json:"open"`  // speaks
	Since  float64 `json:"since"` // start of the open turn
	Muted  bool    `json:"muted"`
}

// Turn is a finished turn.
type Turn struct {
	Speaker int     `json:"s"`
	Start   float64 `json:"a"`
	End     float64 `json:"b"`
	Text    string  `json:"t,omitempty"`
}

// Speakers are the lanes and turns of the people of a timeline.
func Speakers(people []protocol.Speaker) (lanes []Speaker, turns []Turn) {
	lanes = []Speaker{}
	for _, p := range people {
		lanes = append(lanes, Speaker{
			ID: p.Index, Colour: p.Index % export.Colours, Name: protocol.Clean(p.Lane.Speaker, 200),
			Open: p.Open, Since: p.OpenSince, Muted: p.Muted,
		})
		for _, t := range p.Turns {
			turns = append(turns, Turn{p.Index, t.Start, t.End, protocol.Clean(t.Text, 64<<10)})
		}
	}
	slices.SortStableFunc(turns, func(a, b Turn) int { return cmp.Compare(a.Start, b.Start) })
	return lanes, turns
}

// id stays with a turn while its text changes: a speaker has one turn at a time.
func (t Turn) id() int64 { return int64(t.Start*1000+0.5)<<8 | int64(t.Speaker&0xff) }

// board is the newest state, with the version in which each turn has changed.
type board struct {
	state func() State

	mu      sync.Mutex // guards what follows
	now     State
	version int64 // 0 = there was no state yet
	rows    []row
	byID    map[int64]int // index in rows
	reset   int64         // version in which turns were removed: older clients need all turns
	changed chan struct{} // closed with the next version, and at the end
	over    bool
}

type row struct {
	Turn
	ID      int64 `json:"id"`
	version int64
}

func (b *board) refresh() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.set(b.state())
	}
}

func (b *board) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return
	}
	st := b.state()
	st.Rate, st.Status, b.over = 0, "ended", true
	b.set(st)
	close(b.changed) // clients may have this state already, and not know that it is the last
}

func (b *board) set(st State) {
	last := b.now
	sameTurns := slices.Equal(st.Turns, last.Turns)
	if b.version > 0 && sameTurns && st.Title == last.Title && st.Now == last.Now && st.Rate == last.Rate && st.Status == last.Status && slices.Equal(st.Speakers, last.Speakers) && slices.Equal(st.Gaps, last.Gaps) {
		return
	}
	b.version++
	b.now = st
	if !sameTurns {
		b.setTurns(st.Turns)
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *board) setTurns(turns []Turn) {
	rows, byID, kept := make([]row, 0, len(turns)), make(map[int64]int, len(turns)), 0
	for _, t := range turns {
		r := row{t, t.id(), b.version}
		if _, twice := byID[r.ID]; twice {
			continue
		}
		if i, known := b.byID[r.ID]; known {
			kept++
			if b.rows[i].Turn == t {
				r.version = b.rows[i].version
			}
		}
		byID[r.ID] = len(rows)
		rows = append(rows, r)
	}
	if kept < len(b.rows) {
		b.reset = b.version
	}
	b.rows, b.byID = rows, byID
}

// since returns what a client that has seen a version does not have yet, nil for
// nothing, and a channel that is closed when there is more.
func (b *board) since(seen int64) (message []byte, version int64, changed <-chan struct{}, over bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seen == b.version {
		return nil, seen, b.changed, b.over
	}
	m := struct {
		State
		Reset bool  `json:"reset"` // Turns are all turns
		Turns []row `json:"turns,omitempty"`
	}{State: b.now, Reset: seen == 0 || seen < b.reset}
	for _, r := range b.rows {
		if m.Reset || r.version > seen {
			m.Turns = append(m.Turns, r)
		}
	}
	message, _ = json.Marshal(m) // of plain values, all finite
	return message, b.version, b.changed, b.over
}
