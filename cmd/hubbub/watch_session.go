package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"hubbub/capture"
	"hubbub/protocol"
	"hubbub/tui"
)

// watched is a source that is somewhere else.
const watched capture.Kind = "stream"

const (
	// clockEvery is how often a service says how far a stream is; the clock
	// shown takes that long to get there, so that it runs and does not jump.
	clockEvery = 500 * time.Millisecond
	// clockJump is more than it runs: the clock is put there at once.
	clockJump = 2 * time.Second
)

// watchSession is a stream that somebody else sends, from wire to display.
type watchSession struct {
	id       string
	source   capture.Info
	server   string // for people
	wire     *protocol.Watch
	now      func() time.Time
	timeline *protocol.Timeline
	record   *recording
	display  display
	notes    *protocol.AnnotationsStore
	started  time.Time

	mu     sync.Mutex // guards what follows
	status string     // of the stream; "" = not told yet
	clock  float64    // of the stream, in seconds, as the service told it last
	from   float64    // what was shown then
	since  time.Time  // when that was
	link   tui.LinkState
	reason string
	over   bool
}

// run shows the stream until it is over, or its user leaves, or ctx ends.
func (s *watchSession) run(ctx context.Context) error {
	s.started = s.now()
	if err := s.display.open(s); err != nil {
		return err
	}
	screen, closeScreen := context.WithCancel(context.WithoutCancel(ctx))
	defer closeScreen()
	left := make(chan error, 1)
	go func() { left <- s.display.run(screen) }()

	folded, failed := make(chan struct{}), error(nil)
	go func() {
		defer close(folded)
		failed = s.fold()
	}()
	var shown error
	gone := false
	select {
	case <-folded:
	case shown = <-left:
		gone = true
	case <-ctx.Done():
	}
	_ = s.wire.Close()
	<-folded
	end := s.wire.Wait()
	if gone || ctx.Err() != nil { // who leaves has seen enough: that is no failure
		end = protocol.CloseInfo{Text: protocol.StatusDone}
	}
	outcome := watchOutcome(end)
	s.end(outcome)
	if !gone {
		if ctx.Err() != nil || !s.display.stays() {
			closeScreen()
		}
		select {
		case shown = <-left:
		case <-ctx.Done():
			closeScreen()
			shown = <-left
		}
	}
	return firstOf(failed, outcome, shown, s.display.finish())
}

// fold takes what comes into the timeline, the recording and the display, in
// order, until the watch is over.
func (s *watchSession) fold() error {
	var failed error
	keep := func(err error) {
		if err != nil && failed == nil {
			failed = err
			_ = s.wire.Close()
		}
	}
	for e := range s.wire.Events() {
		if state, ok := protocol.ParseStreamState(e); ok {
			s.tell(state)
			continue
		}
		if e.Type == protocol.TypeStreamState {
			continue // a newer service's
		}
		s.mu.Lock()
		heard := max(s.clock, e.Timestamp)
		s.mu.Unlock()
		keep(s.record.event(heard, e))
		keep(s.display.event(e))
		for _, t := range s.timeline.Apply(e) {
			keep(s.turn(t))
		}
	}
	for _, t := range s.timeline.EndOpen(max(s.heard(), s.timeline.Snapshot().Decided)) {
		keep(s.turn(t))
	}
	return failed
}

func (s *watchSession) turn(t protocol.Turn) error {
	return firstOf(s.record.turn(t), s.display.turn(t))
}

// tell takes in how far the stream is.
func (s *watchSession) tell(state protocol.StreamState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from, s.since = s.heardLocked(), s.now()
	s.status, s.clock = state.Status, max(s.clock, state.Timestamp)
	if s.clock-s.from > clockJump.Seconds() {
		s.from = s.clock
	}
}

// heard is the stream's clock as it is shown: never beyond what the service has
// told.
func (s *watchSession) heard() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heardLocked()
}

func (s *watchSession) heardLocked() float64 {
	part := float64(s.now().Sub(s.since)) / float64(clockEvery)
	return s.from + (s.clock-s.from)*min(max(part, 0), 1)
}

// end marks the watch as over, for good or for bad.
func (s *watchSession) end(failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link, s.over, s.from = tui.Closed, true, s.clock
	if failed != nil {
		s.link, s.reason = tui.Failed, failed.Error()
	}
}

// state is what the screen draws: what is known here, and no more.
func (s *watchSession) state() tui.State {
	wire := s.wire.Stats()
	s.mu.Lock()
	defer s.mu.Unlock()
	// An event may tell of a moment that the clock shown has not reached.
	timeline := s.timeline.Snapshot()
	heard := max(s.heardLocked(), timeline.Decided)
	st := tui.State{
		Timeline: timeline, Heard: heard, Sent: heard,
		Source: s.source.Name, Server: s.server, Stream: s.id, Watching: true,
		Link: s.link, LinkReason: s.reason, Started: s.started, Finished: s.over,
	}
	if !s.over {
		st.Link = tui.Open
		if !wire.Connected {
			st.Link, st.LinkReason = tui.Connecting, "again, "+wire.Trouble
		}
		if s.status == protocol.StatusCreated {
			st.SourceNotice = "not begun"
		}
	}
	return st
}

// notices are what people should know when it is over.
func (s *watchSession) notices() []string {
	if n := s.wire.Stats().Lost; n > 0 && s.link != tui.Failed {
		return []string{fmt.Sprintf("the connection was lost %d times and taken up again; nothing is missing", n)}
	}
	return nil
}

func (s *watchSession) about() capture.Info                     { return s.source }
func (s *watchSession) annotations() *protocol.AnnotationsStore { return s.notes }
func (s *watchSession) player() tui.Player                      { return nil }

// export writes what is known by now.
func (s *watchSession) export(notes protocol.Annotations) (string, error) {
	dir := ""
	if s.record != nil {
		dir = s.record.dir
	}
	return exportState(s.state(), s.source.Base, s.source.Name, s.started, dir, "", notes)
}
