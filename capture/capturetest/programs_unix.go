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
*list*) echo '[{"name":"out.monitor","description":"Monitor of Desk","sample_specification":"s16le 2ch 44100Hz","monitor_source":"out","properties":{"device.class":"monitor"}},
 {"name":"usb","description":"Desk \u001b[31mMicrophone","sample_specification":"s16le 1ch 48000Hz","monitor_source":""}]' ;;
*) echo usb ;;
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
