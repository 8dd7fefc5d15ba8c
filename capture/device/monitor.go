package device

import (
	"context"
	"errors"
	"runtime"
	"time"

	"hubbub/protocol/hint"
)

// monitorRecorders record what an output plays.
var monitorRecorders = []string{"pw-record", "parec"}

// OpenMonitor opens the monitor of an output with the first recorder that can.
func OpenMonitor(ctx context.Context, want string, all bool) (Stream, error) {
	var first error
	for _, name := range monitorRecorders {
		r := FindRecorder(name)
		if !r.available() {
			continue
		}
		s, err := r.openWithin(ctx, want, true, all, firstMonitorAudio)
		if err == nil {
			return s, nil
		}
		if first == nil || errors.Is(first, ErrNone) {
			first = err
		}
	}
	if first == nil {
		return nil, hint.Errorf(speakersHint(), "what the machine plays cannot be captured here")
	}
	if errors.Is(first, ErrNoMatch) { // its hint has the outputs
		return nil, first
	}
	return nil, hint.Add(first, speakersHint())
}

// firstMonitorAudio is firstAudio for a monitor, which may have to wake its output.
const firstMonitorAudio = 4 * time.Second

// speakersHint says how the sound of a call can be captured on this system.
func speakersHint() string {
	switch runtime.GOOS {
	case "darwin":
		return "Install ffmpeg and a loopback device such as BlackHole, let the machine play to it, and give --input ffmpeg:BlackHole."
	case "windows":
		return "Install ffmpeg and a loopback device such as VB-CABLE, let the machine play to it, and give --input ffmpeg:CABLE."
	}
	return "It takes PulseAudio with parec (Debian: pulseaudio-utils), or PipeWire with pw-record (pipewire-bin)."
}
