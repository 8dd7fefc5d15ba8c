//go:build !purego

package nn

import "testing"

// setKernels switches the kernels for the length of a test; false when this machine has no such ones.
func setKernels(t testing.TB, name string) bool {
	have := useNEON
	if name != "neon" && name != "go" || name == "neon" && !have {
		return false
	}
	t.Cleanup(func() { useNEON = have })
	useNEON = name == "neon"
	return true
}
