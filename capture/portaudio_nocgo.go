//go:build !cgo

package capture

import "context"

// Without cgo, PortAudio is not available: recorders take its place.

const hasPortAudio = false

func openNative(ctx context.Context, want string, all bool) (nativeStream, error) {
	return openAnyRecorder(ctx, want, all)
}

func nativeDevices(context.Context) ([]Device, error) { return nil, nil }
