package protocol

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter is the wait that a response asks for in its header Retry-After: seconds, or
// an HTTP date, which is relative to that of the response: the clocks may differ. Anything
// else is 0, a time in the past one second.
func RetryAfter(header http.Header) time.Duration {
	after := strings.TrimSpace(header.Get("Retry-After"))
	if s, err := strconv.ParseUint(after, 10, 64); err == nil {
		if s > uint64(math.MaxInt64/time.Second) {
			return math.MaxInt64
		}
		return max(time.Second, time.Duration(s)*time.Second)
	}
	t, err := http.ParseTime(after)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(time.Second, t.Sub(now))
}
