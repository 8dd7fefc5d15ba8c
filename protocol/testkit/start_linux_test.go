package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// What tests have started ends with them, also if they are killed.
func TestStart(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	const asChild = "HUBBUB_TESTKIT_CHILD"
	if os.Getenv(asChild) != "" {
		started := exec.Command("sleep", "1000")
		Start(t, started)
		fmt.Println(started.Process.Pid)
		time.Sleep(Timeout)
	}
	tests := exec.Command(os.Args[0], "-test.run=^TestStart$")
	tests.Env = append(os.Environ(), asChild+"=1")
	out, err := tests.StdoutPipe()
	NoError(t, err)
	Start(t, tests)
	var pid int
	_, err = fmt.Fscan(out, &pid)
	NoError(t, err)
	NoError(t, tests.Process.Kill())
	_ = tests.Wait()
	Eventually(t, "the end of the process", func() bool {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // of a zombie it is empty
		return len(command) == 0
	})
}
