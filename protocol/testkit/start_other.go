//go:build !linux

package testkit

import "os/exec"

// Start starts a program.
func Start(t T, cmd *exec.Cmd) {
	t.Helper()
	NoError(t, cmd.Start())
}

func killStarted() {}
