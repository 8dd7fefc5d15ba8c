//go:build !cgo

package capture

const hushIsExact = true
