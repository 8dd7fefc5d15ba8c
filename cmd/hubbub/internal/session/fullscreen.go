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

func (d *fullScreen) Attended() bool { return true }

func (d *fullScreen) Traced(ctx context.Context) (context.Context, *Tracer) {
	log := trace.NewLog()
	d.options.Wire, d.options.SaveWire = log.Snapshot, saveTrace
	return ctx, &Tracer{sink: log}
}

func (d *fullScreen) open(v view) error {
	d.view = v
	d.options.Snapshot = func() display.State {
		crash.TestHook("display")
		return v.state()
	}
	d.options.Messages = d.mailbox
	d.options.Annotations = v.annotations()
	d.options.Export = v.export
	c := v.controls()
	d.options.Player, d.options.Memory, d.options.Record, d.options.Microphones = c.player, c.memory, c.record, c.mics
	if watchNotice(v.state()) != "" { // in full at the end: the line has keys, too
		d.post(tui.Msg{Kind: tui.MsgNotice, Text: "others can watch: " + d.options.Keys.Key("help") + " shows the stream"})
	}
	return nil
}

func (d *fullScreen) run(ctx context.Context) error {
	if screen, ok := d.streams.Stdout.(*os.File); ok {
		defer crash.StartMonitor(screen)()
	}
	err := tui.Run(ctx, d.options)
	d.quit()
	switch {
	case errors.Is(err, tui.ErrInterrupted):
		d.streams.Interrupted()
		return nil
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return nil // the session ended it
	}
	return err
}

// quit says that the screen was closed. What was captured is still sent and decided, which
// may take as long as the service does.
func (d *fullScreen) quit() {
	d.closed.Store(true)
	d.waiting = time.AfterFunc(waitShown, func() {
		d.streams.notice("waiting for the last turns; ctrl+c ends the wait")
	})
}

func (d *fullScreen) staysOpen() bool { return true }

func (d *fullScreen) event(e protocol.Event) error {
	if text := faultText(e); text != "" {
		d.post(tui.Msg{Kind: tui.MsgError, Text: text})
	} else {
		d.post(tui.Msg{Kind: tui.MsgWake})
	}
	return nil
}

func (d *fullScreen) turn(protocol.Turn) error { return nil }

func (d *fullScreen) notice(text string, problem bool) error {
	if d.closed.Load() {
		d.streams.notice(text)
		return nil
	}
	m := tui.Msg{Kind: tui.MsgNotice, Text: text}
	if problem {
		m.Kind = tui.MsgError
	}
	d.post(m)
	return nil
}

func (d *fullScreen) statesGaps() bool { return false }

func (d *fullScreen) joinHint() string { return ": " + d.options.Keys.Key("join") + " joins them" }

// post never waits: the screen sees every turn in its next snapshot.
func (d *fullScreen) post(m tui.Msg) {
	select {
	case d.mailbox <- m:
	default:
	}
}

// finish writes the notices and the summary on the normal screen.
func (d *fullScreen) finish() error {
	if d.waiting != nil {
		d.waiting.Stop()
	}
	d.streams.notices(d.view.notices())
	if n := watchNotice(d.view.state()); n != "" {
		d.streams.notice(n)
	}
	return tui.Summary(d.streams.Stdout, d.view.state(), d.options)
}
