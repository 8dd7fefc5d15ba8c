//go:build !unix || solaris || illumos || aix || netbsd

package recording

// freeSpace is not known on this system.
func freeSpace(string) int64 { return 0 }
