//go:build cgo && !linux

package capture

func checkSoundSystem() error { return nil }
