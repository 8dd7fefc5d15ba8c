//go:build amd64 && !purego

package nn

import "testing"

// setKernels switches the kernels during a test; false when this machine does not
// have them.
func setKernels(t testing.TB, name string) bool {
	avx2, avx512 := useAVX2, useAVX512
	switch name {
	case "avx512":
		if !avx512 {
			return false
		}
	case "avx2":
		if !avx2 {
			return false
		}
	case "go":
	default:
		return false
	}
	t.Cleanup(func() { useAVX2, useAVX512 = avx2, avx512 })
	useAVX2, useAVX512 = name != "go", name == "avx512"
	return true
}
