package main

import (
	"context"
	"math"
	"sync"
	"time"

	"hubbub/capture"
	"hubbub/protocol"
	"hubbub/tui"
)

// How fast a recording may be played.
const (
	minSpeed = 0.1
	maxSpeed = 1000
)

// player plays a recording: it is a clock, and the timeline as the session knew
// it when that much had been heard. It has no goroutine; whoever looks at it
// moves it on. All methods may be called from any goroutine.
type player struct {
	rec     *recorded
	notes   *protocol.AnnotationsStore
	now     func() time.Time
	history tui.History // filled by loadLevels

	mu       sync.Mutex // guards what follows
	playing  bool
	speed    float64
	from     float64   // position in seconds at since
	since    time.Time // when playing began there
	next     int       // the first event that has not come yet
	over     bool      // open turns were ended
	timeline *protocol.Timeline
	passed   []passed // since the last take
}

// passed is an event that playing has passed, with the turns it finished.
type passed struct {
	event protocol.Event
	turns []protocol.Turn
}

func newPlayer(r *recorded, speed float64, now func() time.Time) *player {
	return &player{
		rec: r, notes: protocol.NewAnnotationsStore(r.notes), now: now,
		playing: true, speed: speed, since: now(), timeline: protocol.NewTimeline(),
	}
}

// position is where the clock stands, in seconds. The lock is held.
func (p *player) position() float64 {
	at := p.from
	if p.playing {
		at += p.now().Sub(p.since).Seconds() * p.speed
	}
	return min(at, p.rec.length)
}

// advance brings the timeline to where the clock stands. The lock is held.
func (p *player) advance() float64 {
	at := p.position()
	for ; p.next < len(p.rec.events) && p.rec.events[p.next].heard <= at; p.next++ {
		e := p.rec.events[p.next].event
		p.passed = append(p.passed, passed{e, p.timeline.Apply(e)})
	}
	if at >= p.rec.length && !p.over {
		p.over = true
		p.from, p.playing = at, false
		if turns := p.timeline.EndOpen(p.rec.end); len(turns) > 0 {
			p.passed = append(p.passed, passed{turns: turns})
		}
	}
	return at
}

// take gives what playing has passed since the last call, and whether the end
// was reached.
func (p *player) take() (all []passed, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance()
	all, p.passed = p.passed, nil
	return all, p.over
}

// move puts the clock somewhere and gives the timeline of that moment. What
// lies between is not played. The lock is held.
func (p *player) move(to float64) {
	if to = min(max(to, 0), p.rec.length); math.IsNaN(to) {
		return
	}
	if to < p.position() || p.over {
		p.timeline, p.next, p.over = protocol.NewTimeline(), 0, false
	}
	p.from, p.since = to, p.now()
	p.advance()
	p.passed = nil
}

// TogglePause stops and goes on; at the end it begins again.
func (p *player) TogglePause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.advance()
	if p.over {
		p.move(0)
		p.playing = true
		return
	}
	p.from, p.since, p.playing = at, p.now(), !p.playing
}

// Seek goes to a position, in seconds.
func (p *player) Seek(seconds float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance()
	atEnd := p.over
	p.move(seconds)
	if atEnd && !p.over { // the end had stopped it, not its user
		p.playing, p.since = true, p.now()
	}
}

// Faster doubles the speed (steps = 1) or halves it (-1).
func (p *player) Faster(steps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.from, p.since = p.advance(), p.now()
	p.speed = min(max(p.speed*math.Pow(2, float64(steps)), minSpeed), maxSpeed)
}

// state is what the screen draws: the session as it was then.
func (p *player) state() tui.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.advance()
	s := tui.State{
		Timeline: p.timeline.Snapshot(),
		Heard:    at,
		Sent:     at,
		Length:   p.rec.length,
		Latency:  time.Duration(p.rec.info.Latency * float64(time.Second)),
		Source:   p.rec.title(),
		Server:   p.rec.info.Server,
		Link:     tui.Open,
		Started:  p.now().Add(-time.Duration(at * float64(time.Second))),
		Finished: p.over,

		ChunksSent: int64(math.Round(at * 10)),
		Playback:   &tui.Playback{Paused: !p.playing, Speed: p.speed},
	}
	if s.Server == "" {
		s.Server = "a recording"
	}
	if !p.rec.info.Started.IsZero() {
		s.SourceNotice = "recorded " + p.rec.info.Started.Local().Format("2 January 2006, 15:04")
	}
	if p.over {
		s.Link = tui.Closed
	}
	levels := p.history.Levels()
	if n := int(at * 10); n < len(levels) {
		levels = levels[:n:n]
	}
	s.Levels = levels
	if n := len(levels); n > 0 && p.playing {
		s.Level = levels[n-1]
	}
	for _, g := range p.rec.info.Gaps {
		if g.Start < at {
			s.Gaps = append(s.Gaps, tui.Span{Start: g.Start, End: min(g.End, at)})
		}
	}
	return s
}

// loadLevels measures the loudness of the recording, until its end or ctx's.
// The screen shows what is there already.
func (p *player) loadLevels(ctx context.Context) {
	if p.rec.audio == "" {
		return
	}
	src, err := capture.Open(ctx, capture.Spec{Input: p.rec.audio})
	if err != nil {
		return // readRecording has said so
	}
	chunks := capture.Start(ctx, src, capture.StreamOptions{Pace: capture.Fast})
	for c := range chunks.Chunks() {
		p.history.Add(c.Seq, tui.Level{RMS: c.Level.RMS, Peak: c.Level.Peak})
	}
}

func (p *player) notices() []string { return p.rec.warnings }

func (p *player) about() capture.Info {
	return capture.Info{Kind: capture.File, Name: p.rec.title(), Base: p.rec.info.Name}
}

func (p *player) annotations() *protocol.AnnotationsStore { return p.notes }
func (p *player) player() tui.Player                      { return p }

func (p *player) export(notes protocol.Annotations) (string, error) {
	return exportBeside(p.rec.dir, p.rec.source(notes, p.rec.turns()))
}
