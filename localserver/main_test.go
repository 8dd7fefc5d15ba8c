package localserver

import (
	"os"
	"testing"

	"hubbub/protocol/testkit"
)

// atEnd removes what tests share.
var atEnd []func()

// After all tests no goroutine may be left, including those of the embedded
// store.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		childServer(dir)
		return
	}
	testkit.Parallel(4)
	code := testkit.Run(m)
	for _, f := range atEnd {
		f()
	}
	os.Exit(code)
}
