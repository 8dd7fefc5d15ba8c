package program

import (
	"os/exec"
	"syscall"
)

// OwnProcess keeps ctrl+c of the console, and API keys, from a process.
func OwnProcess(cmd *exec.Cmd) {
	cmd.Env = withoutKeys(cmd.Environ())
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
