package session

import (
	"context"
	"fmt"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/trace"
	"hubbub/tui/display"
	"hubbub/tui/plain"
)

// textDisplay is the timeline as text: finished turns or messages on standard output,
// one per line; everything else on standard error.
type textDisplay struct {
	streams  Streams
	format   plain.Format
	progress func(text string) // nil = none

	view   view
	out    *plain.Printer
	faults faultReports
}

func (d *textDisplay) Properties() Properties { return Properties{} }

// Traced prints the records of the connection if that is the format.
func (d *textDisplay) Traced(ctx context.Context) (context.Context, trace.Tracer, func() error) {
	if d.format != plain.FormatWire {
		return ctx, nil, func() error { return nil }
	}
	return printTrace(ctx, d.streams.Stdout)
}

func (d *textDisplay) open(v view) error {
	d.view = v
	d.streams.notice(v.about().Notice, watchNotice(v.state()))
	d.out = plain.NewPrinter(d.streams.Stdout, d.format, v.about().Base)
	return nil
}

func (d *textDisplay) run(source, _ context.Context) error {
	if d.progress != nil {
		showProgress(source, d.progress, d.view)
	}
	<-source.Done()
	return nil
}

func (d *textDisplay) event(e protocol.Event) error {
	if d.format != plain.FormatEvents && d.format != plain.FormatWire && d.faults.due(e) {
		d.streams.notice(faultText(e))
	}
	return d.out.Event(e)
}

func (d *textDisplay) turn(t protocol.Turn) error { return d.out.Turn(t) }

func (d *textDisplay) notice(text string, _ bool) error {
	d.streams.notice(text)
	return nil
}

func (d *textDisplay) finish() error {
	d.streams.notice(d.view.notices()...)
	return nil
}

// showProgress passes on the progress, until ctx ends, while a file is processed faster than
// real time.
func showProgress(ctx context.Context, show func(text string), v view) {
	protocol.Every(ctx, 200*time.Millisecond, func() {
		st := v.state()
		line := display.Clock(st.Sent)
		if st.Length > 0 {
			line += fmt.Sprintf(" of %s, %.0f %%", display.Clock(st.Length), 100*min(1, st.Sent/st.Length))
		}
		if d := time.Since(st.Started).Seconds(); d > 0.5 {
			line += fmt.Sprintf(", %.0f times real time", st.Sent/d)
		}
		show(line)
	})
	show("")
}
