package program

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps ctrl+c of the console from a process.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
