package store

import (
	"errors"
	"testing"
)

// A health check that fails now and then, because the machine is busy, is no
// failure of the store; one that always fails is.
func TestHealthCheckThatFailsOnce(t *testing.T) {
	failed := errors.New("not ready after 1ms")
	checks := 0
	err := lasting(func() error {
		if checks++; checks%healthChecks != 0 {
			return failed
		}
		return nil
	})
	if err != nil {
		t.Errorf("%v after %d checks", err, checks)
	}
	if err := lasting(func() error { return failed }); err != failed {
		t.Error(err)
	}
}
