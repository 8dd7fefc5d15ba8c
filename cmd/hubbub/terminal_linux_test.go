package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTerminalIsNotAsked runs a command without a screen on a terminal that answers nothing:
// the command asks it for nothing, and so takes nothing of what was typed ahead.
func TestTerminalIsNotAsked(t *testing.T) {
	t.Parallel()
	skipShort(t)
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudoterminals here: ", err)
	}
	defer terminal.Close()
	number, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	side, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testProgram(t), "version")
	cmd.Env = append(os.Environ(), programEnv("TERM=xterm-256color", "CI=")...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = side, side, side
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	side.Close()
	out, _ := io.ReadAll(terminal) // ends with EIO when no process has the terminal
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if text := string(out); !strings.HasPrefix(text, "hubbub ") || strings.Contains(text, "\x1b") {
		t.Errorf("the terminal received %q", text)
	}
}
