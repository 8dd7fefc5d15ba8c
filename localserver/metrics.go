package localserver

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"hubbub/localserver/store"
)

// metrics are the Prometheus metrics of GET /metrics. Labels are routes, status
// codes and names of calls: never an account, an id or an address.
type metrics struct {
	registry    *prometheus.Registry
	requests    *prometheus.CounterVec
	durations   *prometheus.HistogramVec
	storeErrors *prometheus.CounterVec
}

// newMetrics registers the metrics of a server.
func newMetrics(s *Server) *metrics {
	m := &metrics{registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hubbub_requests_total",
			Help: "Requests served, by the code of the response; 0 = there was none."}, []string{"route", "method", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "hubbub_request_seconds",
			Help:    "Seconds until a request was served; for a stream, until it ended.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 600}}, []string{"route"}),
		storeErrors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hubbub_store_errors_total",
			Help: "Calls of the store that failed."}, []string{"call"}),
	}
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "hubbub_engine_chunk_seconds",
		Help:    "Seconds the engine took for a chunk of 100 ms.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}})
	lag := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "hubbub_engine_lag_seconds",
		Help:    "Seconds from the arrival of a chunk until the engine had processed it.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}})
	c := &s.counters
	c.OnChunk = func(t, l time.Duration) {
		took.Observe(t.Seconds())
		lag.Observe(l.Seconds())
		s.overload.Observe(l)
	}

	m.registry.MustRegister(m.requests, m.durations, m.storeErrors, took, lag,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge(m, "hubbub_streams_open", "Open streams.", s.streams.Count)
	gauge(m, "hubbub_streams_limit", "Maximum number of open streams.", s.streams.Limit)
	gauge(m, "hubbub_engine_overloaded", "1 while the open streams are late, so that no new ones are accepted, otherwise 0.", func() int {
		if s.overloaded() {
			return 1
		}
		return 0
	})
	gauge(m, "hubbub_outbox_streams", "Streams that have ended and whose end is not in the store yet.", func() int { return s.outbox.Len() })
	gauge(m, "hubbub_store_damaged_bytes", "Bytes of records that were not intact when the store was opened.", func() int64 { return s.store.Damaged() })
	m.counter("hubbub_streams_opened_total", "Streams opened.", nil, c.Opened.Load)
	m.counters("hubbub_streams_ended_total", "Streams ended.", "status", map[string]func() int64{"done": c.Done.Load, "error": c.Failed.Load})
	gauge(m, "hubbub_watchers_open", "Connected watchers.", s.watchers.Count)
	gauge(m, "hubbub_watchers_limit", "Maximum number of connected watchers.", s.watchers.Limit)
	m.counter("hubbub_watchers_total", "Watchers that connected.", nil, c.Watchers.Load)
	m.counter("hubbub_watchers_slow_total", "Watchers disconnected because they did not read.", nil, c.SlowWatchers.Load)
	m.counter("hubbub_audio_chunks_total", "Chunks of 100 ms given to engines.", nil, c.Chunks.Load)
	m.counter("hubbub_events_total", "Starts and ends sent.", nil, c.Events.Load)
	m.counter("hubbub_engine_panics_total", "Streams ended by a panic of the engine.", nil, c.EnginePanics.Load)
	m.counters("hubbub_dropped_total",
		"Dropped: frames that are not chunks, events of the engine without a counterpart, events the store had no room for, error messages for watchers.",
		"what", map[string]func() int64{"frame": c.FrameErrors.Load, "event": c.Dropped.Load, "journal": c.Lost.Load, "watch": c.WatchErrors.Load})
	m.registerJobs(s)
	m.counters("hubbub_words_total", "Turns of streams that asked for words: recognised, failed, or dropped because too many waited.",
		"result", map[string]func() int64{"recognised": c.Words.Recognised.Load, "failed": c.Words.Failed.Load, "dropped": c.Words.Dropped.Load})
	m.counter("hubbub_events_moved_total", "Timestamps of the engine that were corrected.", nil, c.Moved.Load)
	return m
}

// gauge registers a number that goes up and down.
func gauge[N int | int64 | float64](m *metrics, name, help string, value func() N) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) }))
}

// counter registers a number that only goes up.
func (m *metrics) counter(name, help string, labels prometheus.Labels, value func() int64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels},
		func() float64 { return float64(value()) }))
}

// counters registers such a number for each value of a label.
func (m *metrics) counters(name, help, label string, values map[string]func() int64) {
	for text, value := range values {
		m.counter(name, help, prometheus.Labels{label: text}, value)
	}
}

// metricTimeout bounds the call of the store for a metric.
const metricTimeout = time.Second

// registerJobs registers the metrics of jobs.
func (m *metrics) registerJobs(s *Server) {
	gauge(m, "hubbub_jobs_queued", "Jobs that wait or run, of all nodes.", func() float64 {
		ctx, cancel := context.WithTimeout(s.ctx, metricTimeout)
		defer cancel()
		n, err := s.store.Queued(ctx, store.RunQueue)
		if err != nil {
			return math.NaN()
		}
		return float64(n)
	})
	c := &s.jobCounters
	gauge(m, "hubbub_jobs_running", "Jobs that this node runs.", c.Running.Load)
	m.counters("hubbub_jobs_ended_total", "Attempts at jobs that this node has ended; returned ones have no result.", "status", map[string]func() int64{
		"succeeded": c.Succeeded.Load, "failed": c.Failed.Load, "canceled": c.Canceled.Load, "returned": c.Returned.Load,
	})
	m.counters("hubbub_webhooks_total", "Requests of webhooks that this node made.", "outcome",
		map[string]func() int64{"delivered": c.HooksDelivered.Load, "failed": c.HooksFailed.Load})
}

// storeFailed counts a call of the store that failed.
func (m *metrics) storeFailed(call string) { m.storeErrors.WithLabelValues(call).Inc() }

// observe counts a request that is over; the status 0 stands for no response.
func (m *metrics) observe(r *http.Request, status int, took time.Duration) {
	m.requests.WithLabelValues(route(r), methodLabel(r.Method), strconv.Itoa(status)).Inc()
	m.durations.WithLabelValues(route(r)).Observe(took.Seconds())
}

// methodLabel bounds the number of methods in the metrics.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch:
		return method
	}
	return "other"
}

// handler is GET /metrics.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// startSpan begins the span of a request; that of a stream lasts until the
// stream ends. It continues the trace that a header traceparent names.
func (s *Server) startSpan(r *http.Request) (context.Context, trace.Span) {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	return s.options.Traces.Tracer("hubbub/localserver").Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
}

// endSpan ends the span of a request.
func endSpan(span trace.Span, r *http.Request, status int) {
	span.SetName(route(r))
	span.SetAttributes(attribute.String("http.request.method", methodLabel(r.Method)), attribute.String("http.route", route(r)),
		attribute.Int("http.response.status_code", status), attribute.String("hubbub.request_id", requestID(r.Context())))
	if id := pathID(r); id != "" && status < http.StatusBadRequest {
		name := "hubbub.stream_id"
		if strings.Contains(route(r), "/jobs/") {
			name = "hubbub.job_id"
		}
		span.SetAttributes(attribute.String(name, id))
	}
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}
