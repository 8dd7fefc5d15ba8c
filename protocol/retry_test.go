package protocol

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfterDate(t *testing.T) {
	now := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC) // the service's clock is far behind
	header := http.Header{"Retry-After": {now.Add(30 * time.Second).Format(http.TimeFormat)}, "Date": {now.Format(http.TimeFormat)}}
	if got := RetryAfter(header); got != 30*time.Second {
		t.Error(got)
	}
	header = http.Header{"Retry-After": {time.Now().UTC().Add(time.Hour).Format(http.TimeFormat)}}
	if got := RetryAfter(header).Round(time.Minute); got != time.Hour {
		t.Errorf("without a date: %v", got)
	}
}

// No header asks for centuries.
func TestRetryAfterIsInRange(t *testing.T) {
	for _, after := range []string{"-1", "-10000000000", "-9223372036854775808"} {
		if got := RetryAfter(http.Header{"Retry-After": {after}}); got != 0 {
			t.Errorf("%s: %v", after, got)
		}
	}
}
