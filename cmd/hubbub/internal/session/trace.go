package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/protocol/hint"
	"hubbub/protocol/trace"
	"hubbub/tui/plain"
)

// traceQueue is how many records may wait for standard output before the
// connection waits for it: minutes of a stream in real time.
const traceQueue = 4096

// errTraceOutput ends a session whose trace cannot be printed any more.
var errTraceOutput = errors.New("the records of the connection cannot be printed")

// Tracer records what goes over the connection for a display. A nil *Tracer
// records nothing.
type Tracer struct {
	sink interface {
		trace.Tracer
		SetWaiting(func() int)
	}
	close func() error // nil = nothing to close
}

// Tracer is for the client's options.
func (t *Tracer) Tracer() trace.Tracer {
	if t == nil {
		return nil
	}
	return t.sink
}

// SetWaiting sets the function that reports how many chunks wait to be sent.
func (t *Tracer) SetWaiting(waiting func() int) {
	if t != nil {
		t.sink.SetWaiting(waiting)
	}
}

// Close is called when the connection has ended: it displays what is queued.
func (t *Tracer) Close() error {
	if t == nil || t.close == nil {
		return nil
	}
	return t.close()
}

// printTrace prints every record on a goroutine of its own, which the tracer's
// Close ends. When that fails, the context ends.
func printTrace(ctx context.Context, w io.Writer) (context.Context, *Tracer) {
	ctx, cancel := context.WithCancelCause(ctx)
	queue := trace.NewQueue(traceQueue)
	printed := make(chan error, 1)
	go func() {
		out := plain.NewPrinter(w, plain.FormatWire, "")
		var err error
		for r := range queue.Records() {
			if err = out.Wire(r); err != nil { // which the queued records repeat
				cancel(errTraceOutput)
				queue.Close()
			}
		}
		printed <- err
	}()
	return ctx, &Tracer{sink: queue, close: func() error {
		defer cancel(nil)
		queue.Close()
		return <-printed
	}}
}

// saveTrace writes records into a new file in the current folder and returns its
// name.
func saveTrace(ndjson []byte) (string, error) {
	var file *os.File
	name, err := recording.Numbered("hubbub-wire-"+time.Now().Format("20060102-150405"), ".ndjson", func(name string) (err error) {
		file, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		return err
	})
	if err != nil {
		return "", hint.Add(fmt.Errorf("cannot write the records: %w", err), "Start hubbub in a folder that can be written to.")
	}
	_, err = file.Write(ndjson)
	if err := errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(name)
		return "", hint.Add(fmt.Errorf("cannot write the records: %w", err), "Start hubbub in a folder with room.")
	}
	return "." + string(filepath.Separator) + name, nil
}
