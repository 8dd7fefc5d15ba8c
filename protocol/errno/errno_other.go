//go:build !windows

package errno

import "syscall"

// others are none here.
var others map[syscall.Errno][]syscall.Errno
