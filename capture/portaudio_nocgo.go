//go:build !cgo

package capture

import "context"

// Without cgo, PortAudio is not available: everything but the microphone works.

var errNoCgo = fail("Build with `make build`, which installs PortAudio and enables cgo, or give --input FILE.",
	"%w: this build of hubbub has no microphone support (built without cgo)", errNoDevice)

func openNative(context.Context, string) (nativeStream, error) { return nil, errNoCgo }

func nativeDevices(context.Context) ([]Device, error) { return nil, errNoCgo }
