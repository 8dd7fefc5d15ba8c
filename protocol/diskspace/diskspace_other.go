//go:build !darwin && !freebsd && !linux && !windows

package diskspace

import "errors"

func of(string) (free, total int64, err error) { return 0, 0, errors.ErrUnsupported }
