//go:build unix

package crash

import (
	"os/signal"
	"syscall"
)

// ignoreSignals makes the monitor survive every signal that the terminal sends
// to the program in the foreground. Without SIGTTOU it could not restore the
// terminal from the background.
func ignoreSignals() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGTTOU, syscall.SIGTTIN, syscall.SIGPIPE)
}
