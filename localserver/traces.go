package localserver

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// withTraces records a span for each request; that of a stream lasts until the
// stream ends. It continues the trace that a header traceparent names. It
// records the route, not the address, because addresses contain tokens.
func withTraces(provider trace.TracerProvider) middleware {
	tracer := provider.Tracer("hubbub/localserver")
	var parent propagation.TraceContext
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx := parent.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
			ctx, span := tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
			r = r.WithContext(ctx)
			rec := &responseRecorder{ResponseWriter: w}
			defer func() {
				span.SetName(route(r))
				span.SetAttributes(attribute.String("http.request.method", methodLabel(r.Method)), attribute.String("http.route", route(r)),
					attribute.Int("http.response.status_code", rec.status), attribute.String("hubbub.request_id", requestID(ctx)))
				if id := r.PathValue("id"); id != "" && rec.status < http.StatusBadRequest {
					span.SetAttributes(attribute.String("hubbub.stream_id", id))
				}
				if rec.status >= http.StatusInternalServerError {
					span.SetStatus(codes.Error, "")
				}
				span.End()
			}()
			next.ServeHTTP(rec, r)
		})
	}
}
