// Command hubbub shows who is talking, live, in a terminal.
package main

import (
	"os"

	"hubbub/cmd/hubbub/internal/crash"
)

func main() {
	if crash.IsMonitor() {
		os.Exit(crash.RunMonitor(versionAndCommit()))
	}
	app := &App{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	os.Exit(app.Main())
}
