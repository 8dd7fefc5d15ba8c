//go:build unix

package capturetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"hubbub/protocol/testkit"
)

// Programs puts shell scripts in the place of all programs that PATH has.
func Programs(t *testing.T, scripts map[string]string) (dir string) {
	t.Helper()
	path := os.Getenv("PATH")
	dir = t.TempDir()
	for name, script := range scripts {
		testkit.Program(t, filepath.Join(dir, name), "#!/bin/sh\nPATH="+path+"\n"+script+"\n")
	}
	t.Setenv("PATH", dir)
	return dir
}

// Pactl lists a microphone, and a monitor that is none.
const Pactl = `case "$*" in
*sources*) printf 'Source #0\n\tName: out.monitor\n\tDescription: Monitor of Desk\n\tSample Specification: s16le 2ch 44100Hz\n\tMonitor of Sink: out\n\n'
  printf 'Source #7\n\tName: usb\n\tDescription: Desk \033[31mMicrophone: A = B #1\n\tSample Specification: s16le 1ch 48000Hz\n\tMonitor of Sink: n/a\n\tProperties:\n\t\tname = "other: #2"\n' ;;
*info*) printf 'Server Name: pulseaudio\nDefault Sink: out\nDefault Source: usb\n' ;;
esac`

// Endless delivers samples of 0.5.
const Endless = `while :; do printf '\000\100%.0s' $(seq 1600); sleep 0.01; done`

// NoGroup fails if a process of the group remains whose number is in a file.
func NoGroup(t *testing.T, file string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return // killed before it began
	}
	testkit.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	testkit.NoError(t, err)
	testkit.Eventually(t, fmt.Sprintf("the end of the processes of group %d", pid), func() bool { return syscall.Kill(-pid, 0) != nil })
}
