package session

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muesli/cancelreader"

	"hubbub/capture"
	"hubbub/protocol"
	"hubbub/protocol/trace"
	"hubbub/tui/plain"
)

// accessible is the display for screen readers: appended sentences, and commands
// typed as words where standard input is not the audio.
type accessible struct {
	streams Streams
	view    view
	out     *plain.Accessible
	trace   func() trace.Snapshot // nil = there is no connection
	faults  faultReports
	seeks   atomic.Bool // a recording is replayed on a terminal, whose user can type, also to go back from its end
}

func (a *accessible) Properties() Properties {
	return Properties{Attended: true, StaysOpen: a.seeks.Load(), StatesGaps: true, JoinHint: ": merge joins them"}
}

func (a *accessible) Traced(ctx context.Context) (context.Context, trace.Tracer, func() error) {
	log := trace.NewLog()
	a.trace = log.Snapshot
	return ctx, log, func() error { return nil }
}

func (a *accessible) open(v view) error {
	a.view = v
	a.seeks.Store(v.state().Playback != nil && IsTerminal(a.streams.Stdin) && IsTerminal(a.streams.Stdout))
	a.out = plain.NewAccessible(a.streams.Stdout, controlsOf(v, a.trace))
	if !IsTerminal(a.streams.Stdout) || !IsTerminal(a.streams.Stderr) { // else the state, on the same terminal, has it
		a.streams.notice(v.about().Notice)
	}
	if err := a.out.State(v.state()); err != nil || !IsTerminal(a.streams.Stdin) || v.about().Kind == capture.Stdin {
		return err
	}
	return a.out.Notice("Type help and enter for the commands.")
}

// run also stays open while names would be lost and their user can still type what to do.
func (a *accessible) run(source, screen context.Context) error {
	lines, stop := a.readLines(screen)
	defer stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	ended := source.Done()
	for screen.Err() == nil && (ended != nil || lines != nil && a.out.Unsaved()) {
		var err error
		select {
		case <-screen.Done():
		case <-ended:
			ended = nil
			if err = a.out.State(a.view.state()); err == nil && screen.Err() == nil && lines != nil && a.out.Unsaved() {
				err = a.out.AskToSave("Quit")
			}
		case line, more := <-lines:
			if more {
				err = a.out.Run(line)
			} else { // the end of standard input is not the end of the session
				lines = nil
				a.seeks.Store(false)
			}
		case <-tick.C:
			err = a.out.State(a.view.state())
		}
		if errors.Is(err, plain.ErrQuit) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readLines reads lines from standard input on a goroutine that stop ends.
func (a *accessible) readLines(ctx context.Context) (lines <-chan string, stop func()) {
	if a.streams.Stdin == nil || a.view.about().Kind == capture.Stdin {
		return nil, func() {}
	}
	reader, err := cancelreader.NewReader(lineInput(a.streams.Stdin))
	if err != nil { // standard input is closed
		return nil, func() {}
	}
	next, restore := scanLines(reader), func() {}
	if screen, ok := a.streams.Stdout.(*os.File); ok && IsTerminal(a.streams.Stdin) && IsTerminal(screen) {
		if e := editLines(a.streams.Stdin, reader, screen); e != nil {
			a.out.Redirect(e.terminal)
			next = e.terminal.ReadLine
			restore = sync.OnceFunc(func() {
				a.out.Redirect(screen)
				e.close()
			})
		}
	}
	read, done := make(chan string), make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(done)
		defer close(read)
		defer restore() // after ctrl+d nothing reads ctrl+c: it must be a signal again
		for {
			line, err := next()
			if err != nil {
				return
			}
			select {
			case read <- line:
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
		restore()
		_ = reader.Close()
	}
}

// scanLines returns a function that reads the next line.
func scanLines(r io.Reader) func() (string, error) {
	scan := bufio.NewScanner(r)
	return func() (string, error) {
		if scan.Scan() {
			return scan.Text(), nil
		}
		return "", cmp.Or(scan.Err(), io.EOF)
	}
}

func (a *accessible) event(e protocol.Event) error {
	if !a.faults.due(e) {
		return nil
	}
	return a.out.Error(faultText(e))
}

func (a *accessible) turn(t protocol.Turn) error { return a.out.Turn(t) }

func (a *accessible) notice(text string, problem bool) error {
	if problem { // the state of the connection says it
		return nil
	}
	return a.out.Notice(text)
}

func (a *accessible) finish() error {
	st := a.view.state()
	_ = a.out.State(st) // the output keeps its first error
	for _, n := range a.view.notices() {
		if !strings.Contains(st.SourceNotice, n) { // else said with the state
			_ = a.out.Notice(n)
		}
	}
	if a.out.Unsaved() {
		_ = a.out.Notice("Names and bookmarks were not saved.")
	}
	return a.out.Summary(st)
}
