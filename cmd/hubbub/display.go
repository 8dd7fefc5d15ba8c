package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/muesli/cancelreader"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"hubbub/capture"
	"hubbub/protocol"
	"hubbub/tui"
)

// show is what a display shows: a session, or a recording that is played again.
type show interface {
	about() capture.Info
	state() tui.State
	// notices are what people should know when it is over.
	notices() []string
	annotations() *protocol.AnnotationsStore
	// export writes all of it into files and says in one line where they are.
	export(protocol.Annotations) (string, error)
	// player is nil for what cannot be paused.
	player() tui.Player
}

// display is where a session shows what it learns. All but run are called from
// the session's goroutine.
type display interface {
	// open is called once, before everything else.
	open(s show) error
	// run shows the session until its user leaves or ctx ends, on a goroutine
	// of its own; a display that nobody can leave returns when ctx ends.
	run(ctx context.Context) error
	// stays tells a display that is left by its user, not by the input's end.
	stays() bool
	event(e protocol.Event) error
	turn(t protocol.Turn) error
	// notice tells of something that happens to the session.
	notice(text string, bad bool) error
	// joinHint says how labels of one person are joined, to follow a text.
	joinHint() string
	// finish is called once, after everything else.
	finish() error
}

// displayFlags say how a session is shown.
type displayFlags struct {
	output     choice
	accessible bool
	ascii      bool
	theme      choice
	mouse      bool
	progress   bool // not a flag: the session may run faster than people listen
}

func (f *displayFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.VarP(&f.output, "output", "o", "`FORMAT`: "+words(f.output.allowed)+" (default: tui on a terminal, else lines)")
	flags.BoolVar(&f.accessible, "accessible", false, "no full-screen display: appended lines for a screen reader")
	flags.BoolVar(&f.ascii, "ascii", false, "no glyphs beyond ASCII")
	f.theme = choice{"auto", []string{"auto", "dark", "light"}}
	flags.Var(&f.theme, "theme", "`COLOURS`: auto (asks the terminal), dark or light")
	flags.BoolVar(&f.mouse, "mouse", true, "click and scroll on the screen; --mouse=false leaves the mouse to the terminal")
	completeChoices(cmd, "output", f.output.allowed)
	completeChoices(cmd, "theme", f.theme.allowed)
}

func (f *displayFlags) check(cmd *cobra.Command) error {
	if f.accessible && f.output.value != "" && f.output.value != "tui" {
		return &usageError{"--accessible and --output " + f.output.value + " exclude each other", fmt.Sprintf("Run '%s --help' for the flags.", cmd.CommandPath())}
	}
	return nil
}

// chooseDisplay takes the screen only where there is one.
func (a *App) chooseDisplay(f displayFlags) (display, error) {
	screen := isTerminal(a.Stdout)
	format := f.output.value
	if format == "" && !f.accessible {
		format = "lines"
		if screen && isTerminal(a.Stdin) {
			format = "tui"
		}
	}
	switch {
	case f.accessible:
		return &spoken{app: a, out: tui.NewAccessible(a.Stdout)}, nil
	case format != "tui":
		return &printed{app: a, format: tui.Format(format), progress: f.progress && !screen && isTerminal(a.Stderr)}, nil
	case !screen:
		return nil, &failure{errors.New("--output tui needs a terminal, and standard output is none"),
			"Leave out --output, or choose " + words(f.output.allowed[1:]) + "."}
	}
	return &fullScreen{app: a, mailbox: make(chan tui.Msg, 64), options: tui.Options{
		ASCII: f.ascii, Output: a.Stdout, Mouse: f.mouse,
		Theme: map[string]tui.Theme{"dark": tui.ThemeDark, "light": tui.ThemeLight}[f.theme.value],
	}}, nil
}

// words is a list as a sentence has it: a, b or c.
func words(list []string) string {
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && f != nil && term.IsTerminal(int(f.Fd()))
}

// fullScreen is the timeline on the alternate screen.
type fullScreen struct {
	app     *App
	show    show
	mailbox chan tui.Msg
	options tui.Options
}

func (d *fullScreen) open(s show) error {
	d.show = s
	d.options.Snapshot = func() tui.State {
		provoke("display")
		return s.state()
	}
	d.options.Messages = d.mailbox
	d.options.Annotations = s.annotations()
	d.options.Export = s.export
	d.options.Player = s.player()
	if n := watchNotice(s.state()); n != "" {
		d.post(tui.Msg{Kind: tui.MsgNotice, Text: n})
	}
	return nil
}

func (d *fullScreen) run(ctx context.Context) error {
	// Libraries that write to the standard logger must not write on the screen.
	log.SetOutput(io.Discard)
	defer log.SetOutput(d.app.Stderr)
	if screen, ok := d.app.Stdout.(*os.File); ok {
		defer watchScreen(screen)()
	}
	err := tui.Run(ctx, d.options)
	switch {
	case errors.Is(err, tui.ErrInterrupted):
		d.app.interrupted.Store(true)
		return nil
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return nil // the session ended it
	}
	return err
}

func (d *fullScreen) stays() bool { return true }

func (d *fullScreen) event(e protocol.Event) error {
	if e.Type == protocol.TypeError {
		d.post(tui.Msg{Kind: tui.MsgError, Text: e.Message})
	} else {
		d.post(tui.Msg{Kind: tui.MsgWake})
	}
	return nil
}

func (d *fullScreen) turn(protocol.Turn) error { return nil }

func (d *fullScreen) notice(text string, bad bool) error {
	d.post(tui.Msg{Kind: map[bool]tui.MsgKind{false: tui.MsgNotice, true: tui.MsgError}[bad], Text: text})
	return nil
}

func (d *fullScreen) joinHint() string { return ": J joins them" }

// post never waits: the screen sees every turn in the next snapshot anyway.
func (d *fullScreen) post(m tui.Msg) {
	select {
	case d.mailbox <- m:
	default:
	}
}

func (d *fullScreen) finish() error {
	for _, n := range d.show.notices() {
		d.app.notice("%s", n)
	}
	if n := watchNotice(d.show.state()); n != "" {
		d.app.notice("%s", n)
	}
	return tui.Summary(d.app.Stdout, d.show.state(), d.options)
}

// printed is the timeline without a screen: finished turns or raw events on
// standard output, one a line; everything else on standard error.
type printed struct {
	app      *App
	format   tui.Format
	progress bool

	show show
	out  *tui.Printer
}

func (d *printed) open(s show) (err error) {
	d.show = s
	about := s.about()
	if about.Notice != "" {
		d.app.notice("%s", about.Notice)
	}
	if n := watchNotice(s.state()); n != "" {
		d.app.notice("%s", n)
	}
	d.out, err = tui.NewPrinter(d.app.Stdout, d.format, about.Base)
	return err
}

func (d *printed) run(ctx context.Context) error {
	if !d.progress {
		<-ctx.Done()
		return nil
	}
	return showProgress(ctx, d.app.Stderr, d.show)
}

func (d *printed) stays() bool { return false }

func (d *printed) event(e protocol.Event) error {
	if e.Type == protocol.TypeError && d.format != tui.FormatEvents && d.format != tui.FormatWire {
		d.app.notice("the service says: %s", tui.Clean(e.Message))
	}
	return d.out.Event(e)
}

func (d *printed) turn(t protocol.Turn) error { return d.out.Turn(t) }

func (d *printed) notice(text string, _ bool) error {
	d.app.notice("%s", text)
	return nil
}

func (d *printed) joinHint() string { return "" }

func (d *printed) finish() error {
	for _, n := range d.show.notices() {
		d.app.notice("%s", n)
	}
	return d.out.Flush()
}

// watchNotice tells how others watch this stream; "" where nobody can.
func watchNotice(s tui.State) string {
	if s.Stream == "" || s.Watching {
		return ""
	}
	return "others watch this with: hubbub watch " + s.Stream + " --server " + withoutCredentials(s.Server)
}

// spoken is the display for a screen reader: appended sentences, and commands
// typed as words where standard input is not the audio.
type spoken struct {
	app     *App
	show    show
	out     *tui.Accessible
	console *tui.Console
	wire    func() protocol.WireSnapshot // nil = there is none to look at
}

func (d *spoken) open(s show) error {
	d.show = s
	d.console = tui.NewConsole(d.out, tui.ConsoleOptions{
		Snapshot: s.state, Annotations: s.annotations(), Export: s.export, Player: s.player(), Wire: d.wire,
	})
	if err := d.out.State(s.state()); err != nil || !isTerminal(d.app.Stdin) || s.about().Kind == capture.Stdin {
		return err
	}
	return d.out.Notice("Type help and enter for the commands.")
}

func (d *spoken) run(ctx context.Context) error {
	lines, stop := d.commands(ctx)
	defer stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case line, more := <-lines:
			if !more { // standard input ended; the session goes on
				lines = nil
				continue
			}
			switch err := d.console.Do(line); {
			case errors.Is(err, tui.ErrQuit):
				return nil
			case err != nil:
				return err
			}
		case <-tick.C:
			if err := d.out.State(d.show.state()); err != nil {
				return err
			}
		}
	}
}

// commands reads lines from standard input on a goroutine that stop ends.
func (d *spoken) commands(ctx context.Context) (lines <-chan string, stop func()) {
	if d.app.Stdin == nil || d.show.about().Kind == capture.Stdin {
		return nil, func() {}
	}
	reader, err := cancelreader.NewReader(d.app.Stdin)
	if err != nil { // standard input is closed
		return nil, func() {}
	}
	read, done := make(chan string), make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(done)
		defer close(read)
		for scan := bufio.NewScanner(reader); scan.Scan(); {
			select {
			case read <- scan.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return read, func() {
		cancel()
		if reader.Cancel() {
			<-done
		}
		_ = reader.Close()
	}
}

func (d *spoken) stays() bool { return false }

func (d *spoken) event(e protocol.Event) error {
	if e.Type != protocol.TypeError {
		return nil
	}
	return d.out.Error(e.Message)
}

func (d *spoken) turn(t protocol.Turn) error { return d.out.Turn(t) }

func (d *spoken) notice(text string, bad bool) error {
	if bad { // the state of the connection is said anyway
		return nil
	}
	return d.out.Notice(text)
}

func (d *spoken) joinHint() string { return ": merge joins them" }

func (d *spoken) finish() error {
	if err := d.out.State(d.show.state()); err != nil {
		return err
	}
	for _, n := range d.show.notices() {
		if err := d.out.Notice(n); err != nil {
			return err
		}
	}
	return d.out.Summary(d.show.state())
}

// showProgress keeps one line on a terminal up to date while a file runs
// faster than people listen.
func showProgress(ctx context.Context, w io.Writer, s show) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	defer fmt.Fprint(w, "\r\x1b[K")
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		st := s.state()
		line := clock(st.Sent)
		if st.Length > 0 {
			line += fmt.Sprintf(" of %s, %.0f %%", clock(st.Length), 100*min(1, st.Sent/st.Length))
		}
		if d := time.Since(st.Started).Seconds(); d > 0.5 {
			line += fmt.Sprintf(", %.0f times real time", st.Sent/d)
		}
		fmt.Fprintf(w, "\r\x1b[K%s", line)
	}
}

// clock writes seconds as m:ss or h:mm:ss.
func clock(seconds float64) string {
	d := int(seconds)
	if d >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", d/3600, d/60%60, d%60)
	}
	return fmt.Sprintf("%d:%02d", d/60, d%60)
}
