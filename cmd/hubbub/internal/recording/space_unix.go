//go:build unix && !solaris && !illumos && !aix && !netbsd

package recording

import "golang.org/x/sys/unix"

// freeSpace is how many bytes can be written on the disk of dir; 0 = unknown.
func freeSpace(dir string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0
	}
	return int64(uint64(st.Bavail) * uint64(st.Bsize))
}
