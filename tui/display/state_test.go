package display

import (
	"testing"
	"time"

	"hubbub/protocol/testkit"
	"hubbub/protocol/trace"
)

// TestDecidedUntil: what was sent while an event was on its way is not decided, also at 100 times real time.
func TestDecidedUntil(t *testing.T) {
	for _, c := range []struct {
		sent, want              float64
		unconfirmed, lag, ahead time.Duration
	}{
		{1000, 999, 100 * time.Millisecond, time.Second, 0},
		{1000, 997, 2 * time.Second, time.Second, 0},
		{1000, 992, 0, 8 * time.Second, 3 * time.Second},
		{1000, 930, 0, 700 * time.Millisecond, 990 * time.Second},
		{1000, 909, 900 * time.Millisecond, 0, 990 * time.Second},
	} {
		s := State{Position: c.sent, Sent: c.sent, Conn: Open, Ahead: c.ahead, Health: trace.Health{Unconfirmed: c.unconfirmed, Lag: c.lag}}
		if got := s.DecidedUntil(); got < c.want-0.01 || got > c.want+0.01 {
			t.Errorf("%+v: %.2f", c, got)
		}
	}
}

// The connection of a watcher that hangs is no problem of the sender.
func TestSilentServiceOfAWatcher(t *testing.T) {
	for reply, want := range map[time.Duration]string{2 * time.Second: "no audio", 4 * time.Second: ""} {
		s := State{Watching: true, InputProblem: "no audio"}
		s.SetHealth(trace.Health{Reply: reply})
		testkit.Equal(t, s.InputProblem, want, reply)
	}
}

func TestHistory(t *testing.T) {
	var h History
	for _, seq := range []int64{0, 1, 4, 3, 5, 9, maxHistory} {
		h.Add(seq, Level{RMS: float32(seq) + 1})
	}
	if got := h.Levels(); len(got) != 10 || got[3].RMS != 0 || got[4].RMS != 5 || got[5].RMS != 6 || got[9].RMS != 10 {
		t.Errorf("levels %v", got)
	}
}
