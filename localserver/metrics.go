package localserver

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// engineMeter measures the engine, over all streams.
type engineMeter struct {
	push prometheus.Observer // seconds of one call, for 100 ms of audio
	lag  prometheus.Observer // seconds from a chunk's arrival to the engine's word on it
}

// metrics is what GET /metrics tells, in the form of Prometheus. Labels are
// routes, codes and names of calls: never an account, an id or an address.
type metrics struct {
	registry    *prometheus.Registry
	requests    *prometheus.CounterVec
	durations   *prometheus.HistogramVec
	storeErrors *prometheus.CounterVec
}

// newMetrics makes the metrics of a server, and its engine meter.
func newMetrics(s *Server) *metrics {
	m := &metrics{registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hubbub_requests_total",
			Help: "Requests that were answered."}, []string{"route", "method", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "hubbub_request_seconds",
			Help:    "Seconds until a request was answered; of a stream, until it was over.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 600}}, []string{"route"}),
		storeErrors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hubbub_store_errors_total",
			Help: "Calls of the store that failed."}, []string{"call"}),
	}
	push := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "hubbub_engine_chunk_seconds",
		Help:    "Seconds that the engine took for a chunk of 100 ms.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}})
	lag := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "hubbub_engine_lag_seconds",
		Help:    "Seconds from a chunk's arrival until the engine had taken it.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}})
	s.count.meter = engineMeter{push: push, lag: lag}

	m.registry.MustRegister(m.requests, m.durations, m.storeErrors, push, lag,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	counter := func(name, help string, labels prometheus.Labels, value func() int64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 { return float64(value()) }))
	}
	c := &s.count
	gauge("hubbub_streams_open", "Streams that are open.", func() float64 { return float64(s.streams.count()) })
	gauge("hubbub_streams_limit", "Streams that may be open at once.", func() float64 { return float64(s.streams.limit) })
	gauge("hubbub_engine_realtime_factor", "Seconds of engine time for a second of audio, since the start.", func() float64 {
		return c.realTimeFactor()
	})
	gauge("hubbub_outbox_streams", "Streams that are over and whose end the store does not know yet.", func() float64 {
		if s.outbox == nil {
			return 0
		}
		return float64(s.outbox.count())
	})
	counter("hubbub_streams_opened_total", "Streams that were opened.", nil, c.opened.Load)
	for outcome, value := range map[string]func() int64{"done": c.done.Load, "error": c.failed.Load} {
		counter("hubbub_streams_ended_total", "Streams that are over.", prometheus.Labels{"status": outcome}, value)
	}
	gauge("hubbub_watchers_open", "Watchers that follow streams now.", func() float64 { return float64(s.watchers.count()) })
	gauge("hubbub_watchers_limit", "Watchers that may be there at once.", func() float64 { return float64(s.watchers.limit) })
	counter("hubbub_watchers_total", "Watchers that came.", nil, c.watched.Load)
	counter("hubbub_watchers_slow_total", "Watchers that were closed because they did not read.", nil, c.slowWatchers.Load)
	counter("hubbub_audio_chunks_total", "Chunks of 100 ms that were given to engines.", nil, c.chunks.Load)
	counter("hubbub_events_total", "Starts and ends that were sent.", nil, c.events.Load)
	counter("hubbub_engine_panics_total", "Streams that the engine broke off.", nil, c.enginePanics.Load)
	const dropped = "What was thrown away: frames that were no chunk, events of the engine without meaning, events that the store had no room for."
	for what, value := range map[string]func() int64{"frame": c.frameErrors.Load, "event": c.dropped.Load, "journal": c.lost.Load} {
		counter("hubbub_dropped_total", dropped, prometheus.Labels{"what": what}, value)
	}
	counter("hubbub_events_moved_total", "Timestamps of the engine that had to be put right.", nil, c.moved.Load)
	return m
}

// watch counts the requests. It stands inside withAccessLog, whose writer
// knows what was answered.
func (m *metrics) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		defer func() {
			status := http.StatusOK
			if rec, ok := w.(*recordingWriter); ok && rec.status != 0 {
				status = rec.status
			}
			m.requests.WithLabelValues(route(r), known(r.Method), strconv.Itoa(status)).Inc()
			m.durations.WithLabelValues(route(r)).Observe(time.Since(began).Seconds())
		}()
		next.ServeHTTP(w, r)
	})
}

// route is the pattern that a request met: there are a dozen of them, whatever
// clients ask for.
func route(r *http.Request) string {
	if r.Pattern == "" {
		return "none"
	}
	return r.Pattern
}

// known bounds the number of methods.
func known(method string) string {
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

// missing is how many events are not in the store. It is the last word once
// run is over.
func (j *journal) missing() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lost + len(j.waiting)
}
