package recovered

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func panics() error { panic("made for a test") }

func TestGuard(t *testing.T) {
	plain := errors.New("plain")
	if err := Guard(func() error { return plain }); err != plain || Caught(err) {
		t.Errorf("an error became %v", err)
	}
	err := fmt.Errorf("wrapped: %w", Guard(panics))
	if !Caught(err) || err.Error() != "wrapped: internal error: panic: made for a test" {
		t.Errorf("a panic became %v", err)
	}
	var with interface{ Stack() []byte }
	if !errors.As(err, &with) || !strings.Contains(string(with.Stack()), "recovered.panics") {
		t.Errorf("%v has no stack of the panic", err)
	}
}

func TestTheLogHasTheStack(t *testing.T) {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	logger.Error("failed", Attr(fmt.Errorf("wrapped: %w", Guard(panics))))
	if !strings.Contains(log.String(), "wrapped: internal error") || !strings.Contains(log.String(), "recovered.panics") {
		t.Error(log.String())
	}
	log.Reset()
	logger.Error("failed", "error", Guard(panics))
	if !strings.Contains(log.String(), "made for a test") || !strings.Contains(log.String(), "recovered.panics") {
		t.Error(log.String())
	}
}
