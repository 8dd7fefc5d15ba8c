package protocol

import (
	"net/http"
	"testing"
	"time"

	"hubbub/protocol/testkit"
)

func TestRetryAfterDate(t *testing.T) {
	now := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC) // the service's clock is far behind
	header := http.Header{"Retry-After": {now.Add(30 * time.Second).Format(http.TimeFormat)}, "Date": {now.Format(http.TimeFormat)}}
	testkit.Equal(t, RetryAfter(header), 30*time.Second)
	header = http.Header{"Retry-After": {time.Now().UTC().Add(time.Hour).Format(http.TimeFormat)}}
	testkit.Equal(t, RetryAfter(header).Round(time.Minute), time.Hour, "without a date")
}

// No header asks for centuries.
func TestRetryAfterIsInRange(t *testing.T) {
	for _, after := range []string{"-1", "-10000000000", "-9223372036854775808"} {
		testkit.Equal(t, RetryAfter(http.Header{"Retry-After": {after}}), 0, after)
	}
}
