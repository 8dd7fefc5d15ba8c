//go:build linux || darwin

package datafolder

import "golang.org/x/sys/unix"

// Space returns the bytes that are free on the disk of a folder for this
// user, and the size of the disk.
func Space(dir string) (free, total int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize), nil
}
