package protocol

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter parses the header Retry-After: seconds, or an HTTP date. Anything
// else is 0, a time in the past one second.
func RetryAfter(header string, now time.Time) time.Duration {
	header = strings.TrimSpace(header)
	if s, err := strconv.ParseUint(header, 10, 64); err == nil {
		if s > uint64(math.MaxInt64/time.Second) {
			return math.MaxInt64
		}
		return max(time.Second, time.Duration(s)*time.Second)
	}
	if t, err := http.ParseTime(header); err == nil {
		return max(time.Second, t.Sub(now))
	}
	return 0
}
