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

// atEnd removes what tests share.
var atEnd []func()

// After all tests no goroutine may be left, including those of the embedded
// store.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		childServer(dir)
		return
	}
	_ = flag.Set("test.parallel", parallelTests) // the command line may set another value
	// A connection that the proxy has reset can leave a sender in it.
	const proxy = "github.com/Shopify/toxiproxy/v2"
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(proxy+"/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction(proxy+".(*ToxicLink).read"),
		goleak.Cleanup(func(code int) {
			for _, f := range atEnd {
				f()
			}
			os.Exit(code)
		}))
}
