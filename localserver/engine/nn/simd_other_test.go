//go:build (!amd64 && !arm64) || purego

package nn

import "testing"

func setKernels(_ testing.TB, name string) bool { return name == "go" }
