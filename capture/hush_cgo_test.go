//go:build cgo

package capture

import "runtime"

// hushIsExact: nothing but the native libraries' words is redirected.
var hushIsExact = runtime.GOOS == "linux" || runtime.GOOS == "darwin"
