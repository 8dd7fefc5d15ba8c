package localserver

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// After all tests no goroutine may be left, including those of the embedded
// store.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		childServer(dir)
		return
	}
	goleak.VerifyTestMain(m)
}
