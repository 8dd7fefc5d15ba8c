//go:build !purego

package nn

import "testing"

// setSIMD switches the kernels for the length of a test; false when this machine has none.
func setSIMD(t *testing.T, on bool) bool {
	have := useNEON
	if on && !have {
		return false
	}
	t.Cleanup(func() { useNEON = have })
	useNEON = on
	return true
}
