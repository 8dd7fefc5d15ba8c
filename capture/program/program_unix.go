//go:build unix

package program

import (
	"os/exec"
	"syscall"
)

// OwnProcess keeps ctrl+c and ctrl+z of the terminal from a process, which ends
// with its children, and API keys.
func OwnProcess(cmd *exec.Cmd) {
	cmd.Env = withoutKeys(cmd.Environ())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
