//go:build !cgo

package device

import "context"

// Without cgo, PortAudio is not available: recorders take its place.

const HasPortAudio = false

func Open(ctx context.Context, want string, all bool) (Stream, error) {
	return OpenRecorder(ctx, want, all)
}

func portAudioDevices(context.Context) ([]Device, error) { return nil, nil }
