//go:build unix

package program

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps ctrl+c and ctrl+z of the terminal from a process, which ends
// with its children.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
