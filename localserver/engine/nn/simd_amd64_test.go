//go:build amd64 && !purego

package nn

import "testing"

// setSIMD switches the kernels for the length of a test; false when this machine has none.
func setSIMD(t *testing.T, on bool) bool {
	have := useAVX2
	if on && !have {
		return false
	}
	t.Cleanup(func() { useAVX2 = have })
	useAVX2 = on
	return true
}
