package recording

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// asChild is the environment variable that makes the test binary record until it
// is killed, in place of the tests.
const asChild = "HUBBUB_RECORDING_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		recorderChild()
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
