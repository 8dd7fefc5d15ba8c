// Package noquery keeps Bubble Tea from asking the terminal for its background while
// packages are initialised. That would happen before main, in every command: what was typed
// ahead would be lost, and a terminal that does not answer would be waited for for 5 s.
//
// Of the packages whose imports are initialised, Go initialises the one with the first path
// (https://go.dev/ref/spec#Program_initialization). This one needs syscall alone, so it comes
// before package os, without which Bubble Tea cannot be initialised.
package noquery

import "syscall"

// variable is set where nobody answers; then no terminal is asked.
const variable = "CI"

var value, found = syscall.Getenv(variable)

func init() { _ = syscall.Setenv(variable, "true") }

// End restores the environment, when Bubble Tea is initialised.
func End() {
	if found {
		_ = syscall.Setenv(variable, value)
	} else {
		_ = syscall.Unsetenv(variable)
	}
}
