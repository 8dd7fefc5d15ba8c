//go:build !linux

package main

import "time"

var began = time.Now()

// threadTime is the wall clock where a thread's CPU time is not to be had.
func threadTime() time.Duration { return time.Since(began) }
