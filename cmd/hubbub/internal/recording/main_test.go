package recording

import (
	"os"
	"testing"

	"hubbub/protocol/testkit"
)

// asChild is the environment variable that makes the test binary record until it
// is killed, in place of the tests.
const asChild = "HUBBUB_RECORDING_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		recorderChild()
		os.Exit(1)
	}
	os.Exit(testkit.Run(m))
}
