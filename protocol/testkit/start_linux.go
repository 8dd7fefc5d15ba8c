package testkit

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// starts are the calls of the thread that starts processes, and starting begins it. The
// kernel kills a process when the thread that has started it ends, and other threads may
// end before the tests do.
var (
	starts   = make(chan func())
	starting = sync.OnceFunc(func() {
		go func() {
			runtime.LockOSThread()
			for call := range starts {
				call()
			}
		}()
	})
)

// Start starts a program, which is killed at the latest when the tests end, also if they
// are killed.
func Start(t T, cmd *exec.Cmd) {
	t.Helper()
	starting()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error)
	starts <- func() { started <- cmd.Start() }
	NoError(t, <-started)
}

// killStarted kills what is still running of what Start has started.
func killStarted() { close(starts) }
