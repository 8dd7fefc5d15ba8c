package traces

import (
	"log/slog"
	"strings"
	"testing"
)

// Without an endpoint nothing is recorded, and a protocol that is not supported
// is an error.
func TestTracesFromTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		name, value   string
		active, fails bool
	}{
		{"OTEL_SERVICE_NAME", "x", false, false},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", true, false},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1", true, false},
		{"OTEL_SDK_DISABLED", "true", false, false},
		{"OTEL_TRACES_EXPORTER", "none", false, false},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.active && c.name != "OTEL_SERVICE_NAME" {
				t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			}
			t.Setenv(c.name, c.value)
			provider, stop, err := Start(t.Context(), "test", slog.New(slog.DiscardHandler))
			if (provider != nil) != c.active || (err != nil) != c.fails {
				t.Errorf("provider %v, error %v", provider, err)
			}
			stop()
		})
	}
}

// An address of a collector that cannot be used is an error, and not displayed
// with its password.
func TestTracesNeedAnAddress(t *testing.T) {
	for _, address := range []string{"http://user:%hunter2@127.0.0.1:1", "http://user:hunter2/x@127.0.0.1:1", "user:hunter2@127.0.0.1:1", "ftp://user:hunter2@127.0.0.1:1"} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
		if _, _, err := Start(t.Context(), "test", slog.New(slog.DiscardHandler)); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
