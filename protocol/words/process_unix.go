//go:build unix

package words

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps ctrl+c of the terminal from a process, which is killed with its
// children.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
