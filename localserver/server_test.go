package localserver

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/protocol/testkit"
)

// A task that fails or panics goes on, and ends with its context.
func TestTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logBuffer{}
		logger := slog.New(slog.NewTextHandler(log, nil))
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		go repeat(ctx, "some task", time.Second, logger, func(context.Context) error {
			switch n++; n {
			case 2, 3:
				return errors.New("no response")
			case 4:
				panic("broken")
			}
			return nil
		})
		time.Sleep(10*time.Second + time.Millisecond)
		cancel()
		synctest.Wait()
		time.Sleep(time.Minute)
		testkit.Equal(t, n, 11, "times")
		if got := log.count("a background task fails"); got != 1 || log.count("works again") != 1 {
			t.Errorf("the log: %s", log)
		}
	})
}
