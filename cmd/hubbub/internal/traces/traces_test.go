package traces

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hubbub/protocol/testkit"
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

// A collector cannot fill the memory of the server with its response.
func TestResponseOfACollectorIsBounded(t *testing.T) {
	const endless = 64 << 20
	sent := make(chan int, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n, block := 0, make([]byte, 64<<10)
		for n < endless {
			if _, err := w.Write(block); err != nil {
				break
			}
			n += len(block)
		}
		sent <- n
	}))
	t.Cleanup(collector.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	provider, stop, err := Start(t.Context(), "test", slog.New(slog.DiscardHandler))
	testkit.NoError(t, err)
	_, span := provider.Tracer("test").Start(t.Context(), "span")
	span.End()
	stop()
	if n := <-sent; n == endless {
		t.Errorf("%d bytes of the response were read", n)
	}
}
