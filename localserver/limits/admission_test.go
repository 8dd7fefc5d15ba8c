package limits

import (
	"context"
	"errors"
	"testing"

	"hubbub/protocol/testkit"
)

// The limits apply to what is open now, whatever was opened and released before.
func TestAdmission(t *testing.T) {
	a := NewAdmission(3, 2)
	for i, s := range []struct {
		account string // is admitted, or releases one
		release bool
		want    error
		open    int
	}{
		{"a", false, nil, 1}, {"a", false, nil, 2}, {"a", false, ErrFull, 2},
		{"a", true, nil, 1}, {"a", false, nil, 2}, {"a", false, ErrFull, 2}, // as before
		{"b", false, nil, 3}, {"b", false, ErrFull, 3}, {"c", false, ErrFull, 3}, // all together
		{"a", true, nil, 2}, {"a", true, nil, 1}, {"c", false, nil, 2}, {"b", true, nil, 1},
		{"c", true, nil, 0}, {"c", false, nil, 1}, {"c", false, nil, 2}, // an idle node goes on
	} {
		var err error
		available := a.Available(s.account)
		if s.release {
			a.Release(s.account)
		} else if err = a.Acquire(s.account); available != err {
			t.Errorf("step %d: available %v, admitted %v", i, available, err)
		}
		if err != s.want || a.Count() != s.open {
			t.Errorf("step %d: %v and %d are open, want %v and %d", i, err, a.Count(), s.want, s.open)
		}
	}
	testkit.Equal(t, len(a.of), 1, "accounts that are kept", a.of)
	a.Stop()
	<-a.Drain()
	testkit.Equal(t, a.Acquire("d"), ErrStopping, "after the stop")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Wait(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for what is open: %v", err)
	}
	a.Release("c")
	if err := a.Wait(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for the last one: %v", err)
	}
	a.Release("c")
	if err := a.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	a.Close()
}
