//go:build !linux && !darwin

package capture

import "time"

func elapsed() time.Duration { return time.Since(processStart) }
