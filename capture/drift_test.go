package capture

import (
	"testing"
	"time"
)

// TestDrift: audio of a fast device stays within the lead that is allowed, none of a
// right or slow one is left out, and a clock that is far off is reported.
func TestDrift(t *testing.T) {
	for _, c := range []struct {
		name  string
		rate  float64 // chunks in 100 ms
		burst int     // chunks that were captured before
		late  time.Duration
		hours float64
		state int
	}{
		{"right", 1, 20, 4 * time.Second, 2, 0},
		{"200 ppm fast", 1.0002, 20, 0, 24, 0},
		{"6 % fast", 1.06, 0, 0, 0.2, 1},
		{"a flood", 1000, 0, 0, 0.05, 1},
		{"6 % slow", 0.94, 20, 0, 0.2, -1},
	} {
		most := 4500 * time.Millisecond
		if c.rate > 2 { // what it could have captured before is not known
			most += (maxCaptured - maxLead) * ChunkDuration
		}
		var d drift
		start, delivered, excess := time.Hour, 0, 0
		length := time.Duration(c.hours * float64(time.Hour))
		now := time.Duration(0)
		for n := 0; now < length; n++ {
			now = max(now, time.Duration(float64(n-c.burst)/c.rate*float64(ChunkDuration)))
			if at := now % (10 * time.Minute); now > settling && at < c.late { // the reader was late, and catches up
				now += c.late - at
			}
			if d.add(start + now) {
				excess++
			} else {
				delivered++
			}
			if lead := time.Duration(delivered-c.burst)*ChunkDuration - now; lead > most || c.rate > 1 && lead < -most {
				t.Fatalf("%s: %v ahead after %v", c.name, lead, now)
			}
		}
		if (excess > 0) != (c.rate > 1) || d.state() != c.state {
			t.Errorf("%s: %d excess chunks of %d, state %d, want %d", c.name, excess, delivered, d.state(), c.state)
		}
	}
}
