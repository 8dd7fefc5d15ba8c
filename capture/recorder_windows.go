package capture

import (
	"os/exec"
	"syscall"
)

// ownProcess keeps ctrl+c of the console from a process.
func ownProcess(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
