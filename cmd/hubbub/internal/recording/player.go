package recording

import (
	"math"
	"sync"
	"time"

	"hubbub/protocol"
)

// The playback speeds.
const (
	MinSpeed = 0.1
	MaxSpeed = 1000
)

// Player is the clock of a replay, and the timeline as the session had it at
// that position. It has no goroutine: every call advances it. All methods may be
// called from any goroutine.
type Player struct {
	rec *Recording
	now func() time.Time

	mu       sync.Mutex // guards what follows
	paused   bool       // by the user
	speed    float64
	from     float64   // position in seconds at since
	since    time.Time // when playing started there
	next     int       // the first event that was not reached yet
	over     bool      // open turns were ended
	timeline *protocol.Timeline
	reached  []Step // since the last Take
}

// Step is an event that was reached, with the turns it finished. At the end of
// the recording there may be one without an event (Raw is nil), with the turns
// that were open.
type Step struct {
	Event protocol.Event
	Turns []protocol.Turn
}

// Moment is a replay at one moment.
type Moment struct {
	Timeline protocol.Snapshot
	Position float64 // seconds
	Playing  bool
	Speed    float64         // 1 = as it was recorded
	Over     bool            // the end was reached
	Gaps     []protocol.Span // up to Position
}

// NewPlayer plays a recording from its start; speed 0 is at its end at once.
// now is the wall clock.
func NewPlayer(r *Recording, speed float64, now func() time.Time) *Player {
	p := &Player{rec: r, now: now, speed: speed, since: now(), timeline: protocol.NewTimeline()}
	if speed == 0 {
		p.speed, p.from = 1, r.Length
	}
	return p
}

// position is where the clock stands, in seconds. The lock is held.
func (p *Player) position() float64 {
	at := p.from
	if !p.paused {
		at += p.now().Sub(p.since).Seconds() * p.speed
	}
	return min(at, p.rec.Length)
}

// advance brings the timeline to where the clock stands. The lock is held.
func (p *Player) advance() float64 {
	at := p.position()
	for ; p.next < len(p.rec.events) && p.rec.events[p.next].at <= at; p.next++ {
		e := p.rec.events[p.next].event
		p.reached = append(p.reached, Step{e, p.rec.addTranscripts(p.timeline, p.timeline.Apply(e))})
	}
	if at >= p.rec.Length && !p.over {
		p.over = true
		p.from = at
		if turns := p.rec.addTranscripts(p.timeline, p.timeline.EndOpen(p.rec.end)); len(turns) > 0 {
			p.reached = append(p.reached, Step{Turns: turns})
		}
	}
	return at
}

// Take returns the steps since the last call, and whether the end was reached.
// Steps that a seek skips are not returned.
func (p *Player) Take() (steps []Step, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance()
	steps, p.reached = p.reached, nil
	return steps, p.over
}

// seek sets the clock and brings the timeline there. The lock is held.
func (p *Player) seek(to float64) {
	if to = min(max(to, 0), p.rec.Length); math.IsNaN(to) {
		return
	}
	if to < p.position() {
		p.timeline, p.next, p.over = protocol.NewTimeline(), 0, false
	}
	p.from, p.since = to, p.now()
	p.advance()
	p.reached = nil
}

// TogglePause pauses or resumes; at the end it starts again.
func (p *Player) TogglePause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.advance()
	if p.over {
		p.seek(0)
		p.paused = false
		return
	}
	p.from, p.since, p.paused = at, p.now(), !p.paused
}

// Seek goes to a position, in seconds, within the recording.
func (p *Player) Seek(seconds float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seek(seconds)
}

// Faster goes to the next higher (steps = 1) or lower (-1) power of two, within the bounds.
func (p *Player) Faster(steps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.from, p.since = p.advance(), p.now()
	exponent := math.Floor(math.Log2(p.speed) + 1)
	if steps < 0 {
		exponent = math.Ceil(math.Log2(p.speed) - 1)
	}
	p.speed = min(max(math.Exp2(exponent), MinSpeed), MaxSpeed)
}

// Now is the replay at this moment.
func (p *Player) Now() Moment {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.advance()
	m := Moment{Timeline: p.timeline.Snapshot(), Position: at, Playing: !p.paused && !p.over, Speed: p.speed, Over: p.over}
	for _, g := range p.rec.Info.Gaps {
		if g.Start < at {
			m.Gaps = append(m.Gaps, protocol.Span{Start: g.Start, End: min(g.End, at)})
		}
	}
	return m
}
