//go:build cgo && !linux

package capture

func checkALSAConfig() error { return nil }
