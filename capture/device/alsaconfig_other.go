//go:build cgo && !linux

package device

func checkALSAConfig() error { return nil }
