//go:build linux || darwin

package capture

import (
	"time"

	"golang.org/x/sys/unix"
)

// elapsed is a clock without steps that also runs while the machine is asleep,
// which Go's monotonic clock does not.
func elapsed() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(sleepingClock, &t); err != nil {
		return time.Since(processStart)
	}
	return time.Duration(t.Nano())
}
