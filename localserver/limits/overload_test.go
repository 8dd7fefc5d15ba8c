package limits

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"hubbub/protocol/testkit"
)

// Chunks that are late for seconds are an overload; a pause of the machine and a
// stream that is slow by itself are not. It ends when nearly all are in time.
func TestOverload(t *testing.T) {
	t.Parallel()
	const slow, quick = time.Second, 20 * time.Millisecond
	now := time.Unix(1_000_000, 0)
	var log bytes.Buffer
	o := NewOverload(func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil)))
	second := func(late, inTime int) bool {
		for range late {
			o.Observe(slow)
		}
		for range inTime {
			o.Observe(quick)
		}
		on := o.Current()
		now = now.Add(time.Second)
		return on
	}
	for i, s := range []struct {
		late, inTime int
		want         bool
	}{
		{0, 0, false}, {0, 300, false}, {0, 300, false}, {0, 300, false}, {0, 300, false},
		{240, 60, false}, {0, 300, false}, {0, 300, false}, {0, 300, false}, {0, 300, false}, // a pause
		{20, 280, false}, {20, 280, false}, {20, 280, false}, {20, 280, false}, {20, 280, false}, // one slow stream
		{300, 0, false}, {300, 0, false}, {300, 0, true}, {300, 0, true}, {300, 0, true},
		{0, 300, true}, {0, 300, true}, {0, 300, true}, {0, 300, true}, {0, 300, false},
		{300, 0, false}, {300, 0, false}, {300, 0, true}, {0, 0, true}, {0, 0, true}, {0, 0, true}, {0, 0, true}, {0, 0, false}, // its streams end
	} {
		testkit.Equal(t, second(s.late, s.inTime), s.want, "second", i)
	}
	for range 3 {
		second(300, 0)
	}
	now = now.Add(-time.Hour)
	if o.Current() {
		t.Error("overloaded for as long as the clock was set back")
	}
	if strings.Count(log.String(), "no new ones are accepted") != 3 || strings.Count(log.String(), "accepted again") != 3 {
		t.Error(log.String())
	}
}
