package localserver

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// After all tests no goroutine may be left, of ours or of the embedded store.
func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		victim(dir)
		return
	}
	goleak.VerifyTestMain(m)
}
