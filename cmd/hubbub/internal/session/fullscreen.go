package session

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"hubbub/cmd/hubbub/internal/crash"
	"hubbub/protocol"
	"hubbub/protocol/trace"
	"hubbub/tui"
	"hubbub/tui/display"
)

// fullScreen is the timeline on the alternate screen.
type fullScreen struct {
	streams Streams
	view    view
	mailbox chan tui.Msg
	options tui.Options

	closed  atomic.Bool // the normal screen is shown
	waiting *time.Timer // set by quit
}

// waitShown is how long the end of a session may take until the normal screen says why.
const waitShown = 2 * time.Second

func (f *fullScreen) Properties() Properties {
	return Properties{Attended: true, StaysOpen: true, JoinHint: ": " + f.options.Keys.Key("join") + " joins them"}
}

func (f *fullScreen) Traced(ctx context.Context) (context.Context, trace.Tracer, func() error) {
	log := trace.NewLog()
	f.options.Wire, f.options.SaveWire = log.Snapshot, saveTrace
	return ctx, log, func() error { return nil }
}

func (f *fullScreen) open(v view) error {
	f.view = v
	f.options.Messages = f.mailbox
	f.options.Controls = controlsOf(v, f.options.Wire)
	f.options.Snapshot = func() display.State {
		crash.TestHook("display")
		return v.state()
	}
	if watchNotice(v.state()) != "" { // in full at the end: the line has keys, too
		f.post(tui.Msg{Text: "others can watch: " + f.options.Keys.Key("help") + " shows the stream"})
	}
	return nil
}

func (f *fullScreen) run(_, ctx context.Context) error {
	if screen, ok := f.streams.Stdout.(*os.File); ok {
		defer crash.StartMonitor(screen, crash.ResetScreen)()
	}
	signals, end := continued()
	defer end()
	f.options.Continued = signals
	err := tui.Run(ctx, f.options)
	f.quit()
	switch {
	case errors.Is(err, tui.ErrInterrupted):
		f.streams.Interrupted()
		return nil
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return nil // the session ended it
	}
	return err
}

// quit says that the screen was closed. What was captured is still sent and decided, which
// may take as long as the service does.
func (f *fullScreen) quit() {
	f.closed.Store(true)
	f.waiting = time.AfterFunc(waitShown, func() {
		f.streams.notice("waiting for the last turns; ctrl+c ends the wait")
	})
}

func (f *fullScreen) event(e protocol.Event) error {
	f.post(tui.Msg{Text: faultText(e), Problem: true})
	return nil
}

func (f *fullScreen) turn(protocol.Turn) error { return nil }

func (f *fullScreen) notice(text string, problem bool) error {
	if f.closed.Load() {
		f.streams.notice(text)
		return nil
	}
	f.post(tui.Msg{Text: text, Problem: problem})
	return nil
}

// post never waits: the screen sees every turn in its next snapshot.
func (f *fullScreen) post(m tui.Msg) {
	select {
	case f.mailbox <- m:
	default:
	}
}

// finish writes the notices and the summary on the normal screen.
func (f *fullScreen) finish() error {
	if f.waiting != nil {
		f.waiting.Stop()
	}
	f.streams.notice(f.view.about().Notice) // the screen that showed it is gone
	f.streams.notice(f.view.notices()...)
	f.streams.notice(watchNotice(f.view.state()))
	return tui.Summary(f.streams.Stdout, f.view.state(), f.options)
}
