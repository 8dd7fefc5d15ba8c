package secondpass

import (
	"testing"
	"time"
)

func TestProgressText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p       *Progress
		elapsed time.Duration
		want    string
	}{
		{&Progress{files: 1}, 0, "0s processed"},
		{&Progress{files: 1, begun: 1, unknown: true, processed: time.Minute}, time.Second, "1m0s processed"},
		{&Progress{files: 1, begun: 1, total: time.Hour, processed: 15 * time.Minute}, 10 * time.Second, "15m0s of 1h0m0s, 25 %, 30s left"},
		{&Progress{files: 4, begun: 2, total: time.Hour, processed: time.Hour}, 10 * time.Second, "1h0m0s of 2h0m0s, 50 %, 10s left"},
		{&Progress{files: 1, begun: 1, total: time.Hour, processed: time.Hour}, 10 * time.Second, "1h0m0s of 1h0m0s, 100 %, comparing the speakers"},
		{&Progress{files: 2000, begun: 2000, total: 2000 * time.Hour, processed: 1000 * time.Hour}, 10 * time.Second, "1000h0m0s of 2000h0m0s, 50 %, 10s left"},
	} {
		if got := c.p.text(c.elapsed); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
