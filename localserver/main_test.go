package localserver

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// parallelTests is how many tests run at once: most of them wait for timeouts or
// sockets.
const parallelTests = "4"

// After all tests no goroutine may be left, including those of the embedded
// store.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		childServer(dir)
		return
	}
	_ = flag.Set("test.parallel", parallelTests) // the command line may set another value
	goleak.VerifyTestMain(m)
}
