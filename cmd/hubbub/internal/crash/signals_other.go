//go:build !unix

package crash

import (
	"os"
	"os/signal"
)

// ignoreSignals makes the monitor survive an interrupt.
func ignoreSignals() { signal.Ignore(os.Interrupt) }
