package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"hubbub/protocol"
	"hubbub/tui"
)

// wireQueue is how many records wait for standard output before the wire waits
// for it: minutes of a stream in real time.
const wireQueue = 4096

// errWireOutput ends a session whose records cannot be printed any more.
var errWireOutput = errors.New("the records of the wire cannot be printed")

// wireLook is what a display gets to see of the wire. Without anything to look
// with, tap is nil.
type wireLook struct {
	tap      protocol.Tap
	setQueue func(func() int)
	close    func() error // after the wire's end: nothing is lost
}

// lookAtWire gives a display its eyes on the wire: a log to look into, or, for
// --output wire, everything in order on standard output. The context that it
// returns also ends when that fails.
func (a *App) lookAtWire(ctx context.Context, d display) (context.Context, *wireLook) {
	log := protocol.NewWireLog()
	look := &wireLook{tap: log, setQueue: log.SetQueue, close: func() error { return nil }}
	switch d := d.(type) {
	case *fullScreen:
		d.options.Wire, d.options.SaveWire = log.Snapshot, saveWire
		return ctx, look
	case *spoken:
		d.wire = log.Snapshot
		return ctx, look
	case *printed:
		if d.format == tui.FormatWire {
			return a.printWire(ctx)
		}
	}
	return ctx, &wireLook{setQueue: func(func() int) {}, close: look.close}
}

// printWire prints every record on a goroutine of its own, which close ends.
func (a *App) printWire(ctx context.Context) (context.Context, *wireLook) {
	ctx, cancel := context.WithCancelCause(ctx)
	feed := protocol.NewWireFeed(wireQueue)
	done := make(chan error, 1)
	go func() {
		out, err := tui.NewPrinter(a.Stdout, tui.FormatWire, "")
		for r := range feed.Records() {
			if err == nil {
				err = out.Wire(r)
			}
			if err != nil { // what waits is of no use to anybody
				cancel(errWireOutput)
				feed.Close()
			}
		}
		done <- err
	}()
	return ctx, &wireLook{tap: feed, setQueue: feed.SetQueue, close: func() error {
		defer cancel(nil)
		feed.Close()
		return <-done
	}}
}

// saveWire writes records into a new file of the current folder.
func saveWire(ndjson []byte) (string, error) {
	base := "hubbub-wire-" + time.Now().Format("20060102-150405")
	for i := 1; ; i++ {
		name := base + ".ndjson"
		if i > 1 {
			name = fmt.Sprintf("%s-%d.ndjson", base, i)
		}
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) && i < 100 {
			continue
		}
		if err != nil {
			return "", &failure{fmt.Errorf("cannot write the wire: %w", err), "start hubbub in a folder that can be written to"}
		}
		_, err = file.Write(ndjson)
		if err := errors.Join(err, file.Close()); err != nil {
			return "", &failure{fmt.Errorf("cannot write the wire: %w", err), "start hubbub in a folder with room"}
		}
		return "." + string(filepath.Separator) + name, nil
	}
}
