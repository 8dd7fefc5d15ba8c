//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

// ignoreSignals keeps a watcher alive through everything that the terminal
// sends to the program in front of it. Without SIGTTOU it may put the terminal
// right from the background.
func ignoreSignals() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGTTOU, syscall.SIGTTIN, syscall.SIGPIPE)
}
