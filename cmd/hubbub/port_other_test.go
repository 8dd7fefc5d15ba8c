//go:build !linux

package main

import "testing"

// reservePort returns an address for listeners that come and go. Here its port may be
// another's in between.
func reservePort(*testing.T) string { return "127.0.0.1:0" }
