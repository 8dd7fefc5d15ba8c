package protocol

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfterDate(t *testing.T) {
	now := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	if got := RetryAfter(now.Add(30*time.Second).Format(http.TimeFormat), now); got != 30*time.Second {
		t.Error(got)
	}
}

// No header asks for centuries.
func TestRetryAfterIsInRange(t *testing.T) {
	for _, header := range []string{"-1", "-10000000000", "-9223372036854775808"} {
		if got := RetryAfter(header, time.Now()); got != 0 {
			t.Errorf("%s: %v", header, got)
		}
	}
}
