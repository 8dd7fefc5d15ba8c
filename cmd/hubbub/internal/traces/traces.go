// Package traces exports the spans of a server to a collector of OpenTelemetry.
package traces

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/protocol"
	"hubbub/protocol/hint"
)

// flushTime bounds the sending of the last spans when a server stops.
const flushTime = 5 * time.Second

// Start starts the export of spans that the environment variables of OpenTelemetry
// ask for. Without an endpoint in them the provider is nil, and nothing is recorded
// or sent. stop sends what is left.
func Start(ctx context.Context, version string, log *slog.Logger) (p trace.TracerProvider, stop func(), err error) {
	stop = func() {}
	endpoints := []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}
	if os.Getenv(endpoints[0])+os.Getenv(endpoints[1]) == "" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, stop, nil
	}
	for _, name := range endpoints {
		// The library would use another address, and print this one with its password.
		address := os.Getenv(name)
		if u, err := url.Parse(address); address != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			return nil, stop, usage.Error(fmt.Sprintf("%s is not the address of a collector: %s", name, protocol.ShownAddress(address)),
				"Give the address at which the collector accepts OTLP over HTTP, such as http://127.0.0.1:4318.")
		}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if p := os.Getenv(name); p != "" && p != "http/protobuf" {
			return nil, stop, usage.Error(fmt.Sprintf("%s is %q, but only http/protobuf is supported", name, p),
				"Unset it, and give the address at which the collector accepts OTLP over HTTP, usually port 4318.")
		}
	}
	// Without this, the library would print errors by itself.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces could not be exported", "error", err) }))
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, stop, hint.Add(fmt.Errorf("traces cannot be exported: %w", err), "Check the environment variables OTEL_*.")
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("hubbub"), semconv.ServiceVersion(version)), resource.WithFromEnv())
	if err != nil {
		return nil, stop, hint.Add(fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES cannot be used: %w", err), "Its form is NAME=VALUE,NAME=VALUE.")
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return provider, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.Warn("the last traces could not be exported", "error", err)
		}
	}, nil
}
