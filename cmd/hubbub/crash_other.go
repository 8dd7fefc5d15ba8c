//go:build !unix

package main

import (
	"os"
	"os/signal"
)

// ignoreSignals keeps a watcher alive through an interrupt.
func ignoreSignals() { signal.Ignore(os.Interrupt) }
