package program

import (
	"os/exec"
	"syscall"
)

// OwnProcess keeps ctrl+c of the console from a process.
func OwnProcess(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
