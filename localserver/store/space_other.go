//go:build !linux && !darwin

package store

import "errors"

// diskSpace is not known here. The NATS server then limits itself to three
// quarters of what was free at its start.
func diskSpace(string) (free, total int64, err error) {
	return 0, 0, errors.ErrUnsupported
}
