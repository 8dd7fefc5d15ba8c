//go:build !linux && !darwin

package datafolder

import "errors"

// Space is not known here. The NATS server then limits itself to three
// quarters of what was free at its start.
func Space(string) (free, total int64, err error) {
	return 0, 0, errors.ErrUnsupported
}
