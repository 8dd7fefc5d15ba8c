// Package errno recognises errors of the system by the numbers that Unix has for them. Windows has
// numbers of its own, which errors.Is does not compare with these.
package errno

import (
	"errors"
	"slices"
	"syscall"
)

// Is reports whether err is one of these errors.
func Is(err error, numbers ...syscall.Errno) bool {
	return slices.ContainsFunc(numbers, func(n syscall.Errno) bool {
		return errors.Is(err, n) || slices.ContainsFunc(others[n], func(other syscall.Errno) bool { return errors.Is(err, other) })
	})
}
