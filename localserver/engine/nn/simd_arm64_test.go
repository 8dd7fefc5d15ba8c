//go:build !purego

package nn

import "testing"

// setKernels switches the kernels during a test; false when this machine does not
// have them.
func setKernels(t testing.TB, name string) bool {
	have := useNEON
	if name != "neon" && name != "go" || name == "neon" && !have {
		return false
	}
	t.Cleanup(func() { useNEON = have })
	useNEON = name == "neon"
	return true
}
