// Package session runs a session from its source to its display. There are three
// kinds of source: Live sends audio to a service, Watched receives a stream that
// another client sends, Replay plays a recording. They share one lifecycle, Run,
// and three displays: the full screen, text, and sentences for screen readers.
//
// Where to look: live.go, watched.go and replay.go are the sessions, output.go is where the
// events of the first two go, fullscreen.go, text.go and accessible.go are the displays,
// and page.go adds the page for an audience to one of them.
package session

import (
	"cmp"
	"context"
	"sync"

	"hubbub/capture"
	"hubbub/protocol/recovered"
	"hubbub/protocol/trace"
	"hubbub/tui/display"
)

// Session is a *Live, a *Watched or a *Replay.
type Session interface {
	view
	// run passes everything that the session learns to the display, in order,
	// until the source has ended. It returns why, nil for a normal end. Its
	// goroutines have ended then.
	run(ctx context.Context, d Display) error
	// end ends the source early; what is under way is still passed on. It may be
	// called at any time, more than once, from any goroutine.
	end()
}

// view is what a display shows of a session. Its methods may be called from any
// goroutine.
type view interface {
	about() capture.Info
	state() display.State
	// notices are what users should know at the end of the session.
	notices() []string
	// controls are what its user can do with it; they do not change.
	controls() display.Controls
}

// controlsOf are the controls of a session for a display. wire returns what went over the
// connection; nil = there is none.
func controlsOf(v view, wire func() trace.Snapshot) display.Controls {
	c := v.controls()
	c.Snapshot, c.Wire = v.state, wire
	return c
}

// phase is how far a Live or a Watched is. Its lock guards also what follows it there.
type phase struct {
	mu     sync.Mutex
	conn   display.ConnState
	reason string // why conn is Failed
}

func (p *phase) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn.Over()
}

// setOver ends the session; without a cause, normally.
func (p *phase) setOver(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conn = display.Closed
	if cause != nil {
		p.conn, p.reason = display.Failed, cause.Error()
	}
}

// Run displays a session until its source has ended and, on a screen, its user
// has quit; names that are not saved may keep the accessible display open, too. It
// returns the first cause of the end, nil for a normal one.
//
// The display runs on a goroutine of its own, the source on the caller's. When
// the user quits or ctx ends, the source is asked to end, and its last turns are
// still displayed: the display ends after it. A panic of either is a
// recovered.Error; the rest of the session still ends in order.
func Run(ctx context.Context, s Session, d Display) error {
	if err := d.open(s); err != nil {
		return err
	}
	screen, closeScreen := context.WithCancel(context.WithoutCancel(ctx))
	defer closeScreen()
	source, sourceEnded := context.WithCancel(screen)
	defer sourceEnded()
	quit := make(chan error, 1)
	go func() {
		err := recovered.Guard(func() error { return d.run(source, screen) })
		s.end()
		quit <- err
	}()
	defer context.AfterFunc(ctx, s.end)()

	err := recovered.Guard(func() error { return s.run(ctx, d) })
	if recovered.Caught(err) || ctx.Err() != nil {
		closeScreen()
	}
	sourceEnded()
	var displayed error
	select {
	case displayed = <-quit:
	case <-ctx.Done():
		closeScreen()
		displayed = <-quit
	}
	return cmp.Or(err, displayed, d.finish())
}
