package session

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"sync"
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
	streams  Streams
	writer   *accessibleWriter // that of out
	view     view
	out      *plain.Accessible
	commands *plain.CommandLine
	trace    func() trace.Snapshot // nil = there is no connection
	faults   faultReports
}

func (d *accessible) Attended() bool { return true }

func (d *accessible) Traced(ctx context.Context) (context.Context, *Tracer) {
	log := trace.NewLog()
	d.trace = log.Snapshot
	return ctx, &Tracer{sink: log}
}

func (d *accessible) open(v view) error {
	d.view = v
	c := v.controls()
	d.commands = plain.NewCommandLine(d.out, plain.CommandOptions{
		Snapshot: v.state, Annotations: v.annotations(), Export: v.export, Player: c.player, Memory: c.memory, Record: c.record, Microphones: c.mics, Wire: d.trace,
	})
	if err := d.out.State(v.state()); err != nil || !IsTerminal(d.streams.Stdin) || v.about().Kind == capture.Stdin {
		return err
	}
	return d.out.Notice("Type help and enter for the commands.")
}

func (d *accessible) run(ctx context.Context) error {
	lines, stop := d.readLines(ctx)
	defer stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case line, more := <-lines:
			if !more { // the end of standard input is not the end of the session
				lines = nil
				continue
			}
			switch err := d.commands.Run(line); {
			case errors.Is(err, plain.ErrQuit):
				return nil
			case err != nil:
				return err
			}
		case <-tick.C:
			if err := d.out.State(d.view.state()); err != nil {
				return err
			}
		}
	}
}

// readLines reads lines from standard input on a goroutine that stop ends.
func (d *accessible) readLines(ctx context.Context) (lines <-chan string, stop func()) {
	if d.streams.Stdin == nil || d.view.about().Kind == capture.Stdin {
		return nil, func() {}
	}
	reader, err := cancelreader.NewReader(d.streams.Stdin)
	if err != nil { // standard input is closed
		return nil, func() {}
	}
	next, restore := scanLines(reader), func() {}
	if screen, ok := d.streams.Stdout.(*os.File); ok && IsTerminal(d.streams.Stdin) && IsTerminal(screen) {
		if e := editLines(d.streams.Stdin, reader, screen); e != nil {
			d.writer.use(e.terminal)
			next = e.terminal.ReadLine
			restore = sync.OnceFunc(func() {
				d.writer.use(screen)
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

// accessibleWriter is where the sentences go: standard output, or the terminal
// that edits the line being typed. Any goroutine may use it.
type accessibleWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (a *accessibleWriter) use(w io.Writer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.w = w
}

func (a *accessibleWriter) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.w.Write(p)
}

func (d *accessible) staysOpen() bool { return false }

func (d *accessible) event(e protocol.Event) error {
	if !d.faults.due(e) {
		return nil
	}
	return d.out.Error(faultText(e))
}

func (d *accessible) turn(t protocol.Turn) error { return d.out.Turn(t) }

func (d *accessible) notice(text string, problem bool) error {
	if problem { // the state of the connection says it
		return nil
	}
	return d.out.Notice(text)
}

func (d *accessible) statesGaps() bool { return true }

func (d *accessible) joinHint() string { return ": merge joins them" }

func (d *accessible) finish() error {
	if err := d.out.State(d.view.state()); err != nil {
		return err
	}
	for _, n := range d.view.notices() {
		if err := d.out.Notice(n); err != nil {
			return err
		}
	}
	return d.out.Summary(d.view.state())
}
