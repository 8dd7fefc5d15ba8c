package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/trace"
	"hubbub/tui"
	"hubbub/tui/display"
	"hubbub/tui/plain"
)

// Display is where a session is displayed: a full screen, text, or sentences for
// screen readers. All methods but run are called from one goroutine.
type Display interface {
	// Properties do not change, but for StaysOpen, once nobody can quit any more.
	Properties() Properties
	// Traced returns a tracer that records what goes over the connection for the display, nil
	// if it shows none of that, and a context that ends with ctx or when tracing fails. done is
	// called when the connection has ended: it displays what is queued.
	Traced(ctx context.Context) (traced context.Context, t trace.Tracer, done func() error)
	// open is called once, before everything else.
	open(v view) error
	// run displays the session until its user quits or screen ends, on a goroutine of
	// its own. A display that does not stay open returns when source ends, which the
	// session's source has before it.
	run(source, screen context.Context) error
	event(e protocol.Event) error
	turn(t protocol.Turn) error
	// notice reports something that happens to the session; problem says that it is
	// serious and that the state has it, too.
	notice(text string, problem bool) error
	// finish is called once, after everything else.
	finish() error
}

// Properties are what a session and its command need to know of a display.
type Properties struct {
	Attended   bool   // somebody is expected to look at it
	StaysOpen  bool   // it is quit by its user rather than by the end of the source
	StatesGaps bool   // it says of a state what gaps there are: notices need not
	JoinHint   string // how labels of one speaker are joined, to follow a text
}

// Streams are the standard streams of the program.
type Streams struct {
	Stdin  *os.File
	Stdout io.Writer
	Stderr io.Writer
	// Interrupted is called when the user interrupts the session on the screen.
	Interrupted func()
}

// notice prints lines on standard error; "" = none. As all displays do, it makes a text safe for a terminal.
func (s *Streams) notice(texts ...string) {
	for _, text := range texts {
		if text != "" {
			_, _ = fmt.Fprintf(s.Stderr, "hubbub: %s\n", display.TerminalSafe(text))
		}
	}
}

// DisplayOptions choose a display.
type DisplayOptions struct {
	// Output is tui, or a format of a plain.Printer; "" = tui on a terminal, else
	// lines. Allowed are those that the command offers, tui first.
	Output     string
	Allowed    []string
	Accessible bool
	// Progress, unless nil, gets the progress while only text is printed, and "" at its end.
	Progress func(text string)
	Screen   tui.Options // those that do not depend on the session
}

// NewDisplay returns the display of the options. The full screen needs a
// terminal.
func NewDisplay(s Streams, o DisplayOptions) (Display, error) {
	screen := IsTerminal(s.Stdout)
	output := o.Output
	if output == "" {
		output = "lines"
		if screen && IsTerminal(s.Stdin) {
			output = "tui"
		}
	}
	switch {
	case o.Accessible:
		return &accessible{streams: s}, nil
	case output != "tui":
		if screen { // which the progress would be between the lines of
			o.Progress = nil
		}
		return &textDisplay{streams: s, format: plain.Format(output), progress: o.Progress}, nil
	case !screen:
		return nil, hint.Add(errors.New("--output tui needs a terminal, and standard output is not one"),
			"Leave out --output, or choose "+OneOf(o.Allowed[1:])+".")
	}
	o.Screen.Output, o.Screen.NoSuspend = s.Stdout, !suspendable()
	return &fullScreen{streams: s, mailbox: make(chan tui.Msg, 64), options: o.Screen}, nil
}

// OneOf joins alternatives as a sentence has them: a, b or c.
func OneOf(list []string) string {
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	if s, ok := stream.(interface{ IsTerminal() bool }); ok {
		return s.IsTerminal()
	}
	f, ok := stream.(*os.File)
	return ok && f != nil && term.IsTerminal(int(f.Fd()))
}

// watchNotice says how others can watch the stream; "" where nobody can.
func watchNotice(s display.State) string {
	if s.Stream == "" || s.Watching {
		return ""
	}
	return "others can watch with: hubbub watch " + s.Stream + " --server " + s.Server + s.Trust
}
