package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"hubbub/capture"
	"hubbub/protocol"
	"hubbub/tui"
)

// session is one session from source to display, of one stream or of several
// where a lost one was resumed.
type session struct {
	source   capture.Info
	server   string        // for people
	latency  time.Duration // of the built-in server; 0 = not known
	streamID func() string // by which others can watch; "" where nobody can
	chunks   *capture.Stream
	endInput context.CancelFunc
	wire     *protocol.Link
	timeline *protocol.Timeline
	record   *recording
	display  display
	history  tui.History // loudness, and what was dropped
	notes    *protocol.AnnotationsStore

	started time.Time

	mu     sync.Mutex // guards what follows
	link   tui.LinkState
	reason string
	over   bool
}

// run carries the session to its end: until the input is over and everything
// said has been decided, the connection is lost for good, or ctx ends, which
// ends the input and still waits for what was said to be decided.
func (s *session) run(ctx context.Context) error {
	s.started = time.Now()
	s.setLink(tui.Open, "")
	if err := s.display.open(s); err != nil {
		return err
	}

	// The display outlives the input: what was said last must still be shown.
	screen, closeScreen := context.WithCancel(context.WithoutCancel(ctx))
	defer closeScreen()
	left := make(chan error, 1)
	go func() {
		err := guarded(func() error { return s.display.run(screen) })
		s.endInput()
		left <- err
	}()

	sent := make(chan error, 1)
	go func() {
		err := guarded(func() error { return s.send(context.WithoutCancel(ctx)) })
		if isDefect(err) { // nobody will say any more that the stream ends
			s.endInput()
			_ = s.wire.Close()
		}
		sent <- err
	}()

	folded := guarded(s.fold)
	s.endInput()
	for range s.wire.Updates() { // after a defect of fold: the wire must not wait
	}
	sendErr := <-sent
	closed := s.wire.Wait()
	s.end(closed)

	var shown error
	// A defect ends the input as well, but its end may take longer to arrive.
	defect := isDefect(sendErr) || isDefect(folded)
	if ctx.Err() == nil && s.chunks.Err() == nil && !defect {
		shown = s.waitForUser(ctx, left, closeScreen)
	} else {
		closeScreen()
		shown = <-left
	}
	return firstOf(s.outcome(closed, sendErr), folded, shown, s.display.finish())
}

// waitForUser leaves a finished session on the screen until its user has seen
// enough; a display without a screen is through at once.
func (s *session) waitForUser(ctx context.Context, left <-chan error, closeScreen func()) error {
	if !s.display.stays() {
		closeScreen()
	}
	select {
	case err := <-left:
		return err
	case <-ctx.Done():
		closeScreen()
		return <-left
	}
}

// send takes chunks from the capture queue to the wire, then says that there
// will be no more.
func (s *session) send(ctx context.Context) error {
	var failed error
	for c := range s.chunks.Chunks() {
		provoke("send")
		s.history.Add(c.Seq, tui.Level{RMS: c.Level.RMS, Peak: c.Level.Peak})
		if failed != nil {
			continue // the recording goes on to the end of what was captured
		}
		if failed = s.wire.Send(ctx, c.Seq, c.Samples); failed != nil {
			s.endInput()
		}
	}
	if failed != nil {
		return failed
	}
	s.setLink(tui.Draining, "")
	return s.wire.EndOfStream(ctx) // each step of the link has its own deadline
}

// fold takes events from the wire into the timeline, the recording and the
// display, in order, until the stream is over.
func (s *session) fold() error {
	var failed error
	keep := func(err error) {
		if err != nil && failed == nil {
			failed = err
			s.endInput()
		}
	}
	for u := range s.wire.Updates() {
		provoke("fold")
		if u.Change != nil {
			keep(s.linkChanged(u.Change))
			continue
		}
		keep(s.record.event(s.chunks.Stats().Heard.Seconds(), u.Event))
		keep(s.display.event(u.Event))
		for _, t := range s.timeline.Apply(u.Event) {
			keep(s.turn(t))
		}
	}
	s.endInput()
	// A lost connection leaves turns open: they lasted at least this long.
	for _, t := range s.timeline.EndOpen(s.wire.Sent()) {
		keep(s.turn(t))
	}
	return failed
}

func (s *session) turn(t protocol.Turn) error {
	return firstOf(s.record.turn(t), s.display.turn(t))
}

// outcome says in one error why the session ended, nil for a normal end. The
// first cause counts: a device that was unplugged, then a lost connection.
func (s *session) outcome(closed protocol.CloseInfo, sendErr error) error {
	if err := s.chunks.Err(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if closed.Err != nil && !isDefect(sendErr) {
		return closed.Err
	}
	return sendErr
}

func (s *session) setLink(l tui.LinkState, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link, s.reason = l, reason
}

// end marks the session as over, for good or for bad.
func (s *session) end(closed protocol.CloseInfo) {
	link, reason := tui.Closed, ""
	if closed.Err != nil {
		link, reason = tui.Failed, closed.Err.Error()
	}
	if err := s.chunks.Err(); err != nil && !errors.Is(err, context.Canceled) {
		link, reason = tui.Failed, err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link, s.reason, s.over = link, reason, true
}

// state is what the screen draws: one moment of the whole session.
func (s *session) state() tui.State {
	s.mu.Lock()
	link, reason, over := s.link, s.reason, s.over
	s.mu.Unlock()
	heard, wire := s.chunks.Stats(), s.wire.Stats()
	link, reason, retry := s.linkState(link, reason)
	return tui.State{
		Timeline:     s.timeline.Snapshot(),
		Heard:        heard.Heard.Seconds(),
		Sent:         s.wire.Sent(),
		Length:       s.source.Duration.Seconds(),
		Latency:      s.latency,
		Level:        tui.Level{RMS: heard.Level.RMS, Peak: heard.Level.Peak},
		Levels:       s.history.Levels(),
		Gaps:         s.gaps(),
		Source:       s.source.Name,
		SourceNotice: s.source.Notice,
		Server:       s.server,
		Stream:       s.streamID(),
		Link:         link,
		LinkReason:   reason,
		Retry:        retry,
		Fresh:        s.wire.Status().Fresh,
		ChunksSent:   wire.ChunksSent,
		Dropped:      heard.Dropped + s.wire.Status().Dropped + s.record.dropped(),
		Overflows:    heard.Overflows,
		Ahead:        wire.Ahead,
		Started:      s.started,
		Finished:     over,
	}
}

// notices are what the user should know when the session is over.
func (s *session) notices() []string {
	st := s.chunks.Stats()
	out := append([]string(nil), st.Notices...)
	out = append(out, s.linkNotices()...)
	if n := st.Dropped + s.wire.Status().Dropped; n > 0 {
		out = append(out, fmt.Sprintf("%d chunks of 100 ms were dropped: the connection was too slow, or there was none", n))
	}
	if st.Overflows > 0 {
		out = append(out, fmt.Sprintf("the device lost audio %d times: the machine was too busy", st.Overflows))
	}
	if n := s.record.dropped(); n > 0 {
		out = append(out, fmt.Sprintf("%d chunks are missing in the recording: the disk was too slow", n))
	}
	return out
}
