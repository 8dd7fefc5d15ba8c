package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the CPU time of the calling thread, so that a busy machine
// does not make the engine look slow.
func threadTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
