//go:build !cgo

package device

import "context"

// HasPortAudio reports whether this build uses PortAudio. Without cgo it cannot:
// recorders take its place.
const HasPortAudio = false

// Open opens a device with the first recorder that can.
func Open(ctx context.Context, want string, all bool) (Stream, error) {
	return OpenRecorder(ctx, want, all)
}

func portAudioDevices(context.Context) ([]Device, error) { return nil, nil }
