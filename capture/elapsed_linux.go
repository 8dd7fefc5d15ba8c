package capture

import "golang.org/x/sys/unix"

const sleepingClock = unix.CLOCK_BOOTTIME
