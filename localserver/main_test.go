package localserver

import (
	"os"
	"testing"

	"go.uber.org/goleak"

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
	// A connection that the proxy has reset can leave a sender in it.
	const proxy = "github.com/Shopify/toxiproxy/v2"
	code := testkit.Run(m, goleak.IgnoreAnyFunction(proxy+"/toxics.(*ToxicStub).Run"), goleak.IgnoreAnyFunction(proxy+".(*ToxicLink).read"))
	for _, f := range atEnd {
		f()
	}
	os.Exit(code)
}
