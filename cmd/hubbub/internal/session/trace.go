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
)

// traceQueue is how many records may wait for standard output before the
// connection waits for it: minutes of a stream in real time.
const traceQueue = 4096

// printTrace prints every record on a goroutine of its own, which done ends. When that
// fails, the context ends.
func printTrace(ctx context.Context, w io.Writer) (printing context.Context, t trace.Tracer, done func() error) {
	ctx, cancel := context.WithCancelCause(ctx)
	queue := trace.NewQueue(traceQueue)
	printed := make(chan error, 1)
	go func() {
		var err error
		for r := range queue.Records() {
			if _, err = io.WriteString(w, r.Line()+"\n"); err != nil {
				cancel(errors.New("the records of the connection cannot be printed"))
				queue.Close()
				break
			}
		}
		printed <- err
	}()
	return ctx, queue, func() error {
		defer cancel(nil)
		queue.Close()
		return <-printed
	}
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
