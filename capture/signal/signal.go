// Package signal processes samples: it changes their rate, reads a signal between them, and silences an echo. Nothing in it
// starts a goroutine.
package signal

import "hubbub/capture/audiofile"

// SampleRate is that of the tracks an EchoSuppressor and an Interpolator work on, in Hz.
const SampleRate = audiofile.SampleRate
