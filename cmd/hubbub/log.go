package main

import (
	"bytes"
	"io"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// queuedLines bounds the lines of a log that wait to be written.
	queuedLines = 4096
	// logFlushTime bounds the writing of the last lines.
	logFlushTime = time.Second
)

// logQueue is the writer of a log. A log that nobody reads, as at a full pipe, must not
// hold up who writes to it: with a full queue lines are dropped and counted.
type logQueue struct {
	lines   chan []byte
	dropped atomic.Int64
}

func (q *logQueue) Write(line []byte) (int, error) {
	select {
	case q.lines <- bytes.Clone(line):
	default:
		q.dropped.Add(1)
	}
	return len(line), nil
}

// startLog starts a log whose lines wait in a queue until they are written to w. When that
// takes lines again, the log says how many were dropped. end writes what is left, for a
// while, and reports whether it could: a write to a log that nobody reads lasts until the
// program ends.
func startLog(w io.Writer, handler func(io.Writer) slog.Handler) (log *slog.Logger, end func() bool) {
	q := &logQueue{lines: make(chan []byte, queuedLines)}
	direct := slog.New(handler(w))
	ending, done := make(chan struct{}), make(chan struct{})
	write := func(line []byte) {
		_, _ = w.Write(line) // there is no other place to report to
		if n := q.dropped.Swap(0); n > 0 {
			direct.Warn("lines of the log were dropped, because it was not read", "lines", n)
		}
	}
	go func() {
		defer close(done)
		for {
			select {
			case line := <-q.lines:
				write(line)
			case <-ending:
				for len(q.lines) > 0 {
					write(<-q.lines)
				}
				return
			}
		}
	}()
	return slog.New(handler(q)), func() bool {
		close(ending)
		select {
		case <-done:
			return true
		case <-time.After(logFlushTime):
			return false
		}
	}
}
