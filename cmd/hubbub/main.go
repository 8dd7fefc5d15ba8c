// Command hubbub shows who is talking, live, in a terminal.
package main

import (
	"io"
	"log"
	"os"
	"os/signal"

	"hubbub/cmd/hubbub/internal/crash"
)

func main() {
	enableEscapes(os.Stdout)
	enableEscapes(os.Stderr)
	if crash.IsMonitor() {
		os.Exit(crash.RunMonitor(versionAndCommit()))
	}
	// Libraries print with the standard logger, that of FLAC a line for every frame
	// of some rates.
	log.SetOutput(io.Discard)
	// One more signal while the program exits does not change its exit code.
	signal.Notify(make(chan os.Signal, 1), endSignals()...)
	app := &App{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	os.Exit(app.Main())
}
