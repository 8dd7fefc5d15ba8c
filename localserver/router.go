package localserver

import (
	_ "embed"
	"fmt"
	"net/http"
	"path"
	"strings"

	"hubbub/localserver/httpconn"
	"hubbub/protocol"
)

// maxTarget bounds the path and query of a request, in bytes. The longest that
// the service issues is a media address of less than 1,700.
const maxTarget = 2048

// openAPI describes the service, in OpenAPI 3.1. A test compares it with the
// responses of a running server.
//
//go:embed openapi.json
var openAPI []byte

// describe is GET /openapi.json.
func describe(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(openAPI) // fails only if the client is gone
}

// routes is the handler of the service.
func (s *Server) routes() http.Handler { return s.newHandler(s.patterns()) }

// newHandler is the handler of some routes, inside what is done for every
// request.
func (s *Server) newHandler(patterns map[string]http.Handler) http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range patterns {
		mux.Handle(pattern, s.faults.Wrap(pattern, completed(h), refuse, s.streams.Drain()))
	}
	return httpconn.Handled(s.wrap(s.jsonErrors(mux)))
}

// wrap adds to a handler what is done for every request.
func (s *Server) wrap(h http.Handler) http.Handler { return s.observed(s.withRecovery(h)) }

const (
	// metricsRoute is served at Options.MetricsAddr, if given, or with the others.
	metricsRoute = "GET /metrics"
	testRoute    = "GET /v1/test"
)

// patterns are the routes. Each of them is described in openapi.json.
func (s *Server) patterns() map[string]http.Handler {
	routes := map[string]http.Handler{
		"PUT " + mediaPath + "{sealed}": s.handle(s.upload),
		"GET " + mediaPath + "{sealed}": s.handle(s.download),
		"GET " + streamPath + "{id}":    s.handle(s.openStream),
		"GET /healthz":                  s.handle(s.alive),
		"GET /readyz":                   s.handle(s.ready),
		"GET /openapi.json":             http.HandlerFunc(describe),
	}
	if s.options.MetricsAddr == "" {
		routes[metricsRoute] = s.ofKnownHost(s.metrics.handler())
	}
	for pattern, do := range map[string]handler{
		testRoute:               s.test,
		"POST /v1/live":         s.createStream,
		"GET /v1/live/{id}":     s.streamStatus,
		"GET " + watchPath:      queried(s.watchStream),
		"GET /v1/media":         queried(s.listMedia),
		"DELETE /v1/media":      queried(s.deleteMedia),
		"POST /v1/media/input":  s.mediaInput,
		"POST /v1/media/output": s.mediaOutput,
		"POST /v1/diarize":      s.createJob(protocol.JobDiarize, maxBody),
		"POST /v1/voiceprint":   s.createJob(protocol.JobVoiceprint, maxBody),
		"POST /v1/identify":     s.createJob(protocol.JobIdentify, maxLiveBody),
		jobStatusRoute:          s.jobStatus,
		"DELETE /v1/jobs/{id}":  s.cancelJob,
		"GET /v2/jobs":          queried(s.listJobs),
	} {
		routes[pattern] = s.operation(pattern, do)
	}
	return routes
}

// jsonErrors responds in JSON to what a ServeMux refuses in plain text: unknown paths
// and wrong methods. It refuses headers and addresses that are too long.
// It does not redirect: a path that is not clean is unknown.
func (s *Server) jsonErrors(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, message := http.StatusNotFound, "There is nothing under this path"
		switch h, pattern := mux.Handler(r); {
		case headerSize(r.Header) > maxHeader:
			w.Header().Set("Connection", "close")
			status, message = http.StatusRequestHeaderFieldsTooLarge, "The request headers are too large"
		case len(r.RequestURI) > maxTarget:
			status, message = http.StatusRequestURITooLong, fmt.Sprintf("The address is longer than %d bytes", maxTarget)
		case pattern != "" && isClean(r.URL.Path):
			mux.ServeHTTP(w, r)
			return
		case pattern == "":
			// Only the ServeMux knows which methods a path has.
			p := bufferedResponse{header: http.Header{}}
			if h.ServeHTTP(&p, r); p.status == http.StatusMethodNotAllowed {
				w.Header()["Allow"] = p.header["Allow"]
				status, message = http.StatusMethodNotAllowed, "This path does not have the method "+method(r)
			}
		}
		if strings.HasPrefix(r.URL.Path, "/v") {
			setUncounted(w.Header(), s.options.RatePerMinute)
		}
		refuse(w, r, status, message)
	})
}

// headerSize is the size of the headers in HTTP/1.1, in bytes.
func headerSize(h http.Header) (size int) {
	for name, values := range h {
		for _, v := range values {
			size += len(name) + len(": ") + len(v) + len("\r\n")
		}
	}
	return size
}

// isClean reports whether a ServeMux would serve the path without a redirect.
func isClean(p string) bool {
	clean := path.Clean(p)
	return p == clean || p == clean+"/"
}

// method is the method of a request, shortened for messages and the log.
func method(r *http.Request) string {
	const longest = 16
	return r.Method[:min(len(r.Method), longest)]
}
