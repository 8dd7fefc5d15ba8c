package main

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"

	"hubbub/protocol/testkit"
)

// A log that nobody reads holds nobody up. Who reads it again gets the lines that were
// queued, and how many were not.
func TestLogThatNobodyReads(t *testing.T) {
	t.Parallel()
	flags := serveFlags{logFormat: choice{value: "json"}, logLevel: choice{value: "info"}}
	r, w := io.Pipe()
	log, end := startLog(w, flags.logHandler)
	const dropped = 10
	for range queuedLines + dropped + 1 { // one is being written, or still queued
		log.Info("line")
	}
	log.Debug("below the level")
	lines := bufio.NewScanner(r)
	for n, reported := 0, false; !reported; n++ {
		if !lines.Scan() {
			t.Fatalf("after %d lines: %v", n, lines.Err())
		}
		switch text := lines.Text(); {
		case strings.Contains(text, `"msg":"line"`):
		case strings.Contains(text, `"lines":10}`), strings.Contains(text, `"lines":11}`):
			reported = true
		default:
			t.Errorf("%s", text)
		}
	}
	if !lines.Scan() { // and so there is room for another one
		t.Fatal(lines.Err())
	}
	log.Info("last")
	go func() {
		end()
		testkit.NoError(t, w.Close())
	}()
	n, last := 0, ""
	for lines.Scan() {
		n, last = n+1, lines.Text()
	}
	if n < queuedLines-1 || !strings.Contains(last, `"msg":"last"`) {
		t.Errorf("%d lines after the report, the last one %s", n, last)
	}
}

// A server that fails ends, also when nobody reads its log.
func TestServeFailsWithAnUnreadLog(t *testing.T) {
	used := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = used.Close() }()
	r, w := io.Pipe() // a write waits for its reader
	defer func() { _ = r.Close() }()
	a := &App{Args: []string{"serve", "--api-key", "x", "--listen", used.Addr().String()}, Stdout: io.Discard, Stderr: w}
	testkit.Equal(t, a.Main(), exitFailed, "exit code")
}
