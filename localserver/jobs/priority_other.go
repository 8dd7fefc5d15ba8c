//go:build !linux

package jobs

// atLowPriority calls f. Threads have no priority of their own here.
func atLowPriority(f func()) { f() }
