package store

import (
	"os"
	"testing"

	"hubbub/protocol/testkit"
)

// TestMain runs the tests or, in the child of the crash test, the process to be
// killed. Afterwards no goroutine may be left.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		writer(dir)
		return
	}
	os.Exit(testkit.Run(m))
}
