package store

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or, called again by the test of a crash, the
// process that is to be killed. Afterwards no goroutine may be left.
func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		victim(dir)
		return
	}
	goleak.VerifyTestMain(m)
}
