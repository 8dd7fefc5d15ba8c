package localserver

import (
	"net/http"
	"path"
	"strings"
)

type middleware func(http.Handler) http.Handler

// routes is everything that the server answers, and around it what is done for
// every request, the outermost first.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range s.patterns() {
		mux.Handle(pattern, h)
	}
	h := s.faults.Wrap(jsonErrors(mux), refuse, s.streams.drain)
	for _, wrap := range []middleware{withRecovery(s.log), s.metrics.watch, withAccessLog(s.log), withRequestID} {
		h = wrap(h)
	}
	return h
}

// patterns are the routes, each of them described in openapi.json.
func (s *Server) patterns() map[string]http.Handler {
	do := func(f http.HandlerFunc) http.Handler { return f }
	routes := map[string]http.Handler{
		"PUT " + mediaPath + "{sealed}": do(s.upload),
		"GET " + mediaPath + "{sealed}": do(s.download),
		"GET " + streamPath + "{id}":    do(s.openStream),
		"GET /healthz":                  do(s.alive),
		"GET /readyz":                   do(s.ready),
		"GET /metrics":                  s.metrics.handler(),
		"GET /openapi.json":             do(s.describe),
	}
	// The operations: they need a key, and are counted.
	for pattern, h := range map[string]http.Handler{
		"GET /v1/test":          do(s.test),
		"POST /v1/live":         subscribers(limitBody(s.createStream)),
		"GET /v1/live/{id}":     subscribers(do(s.streamStatus)),
		"GET " + watchPath:      subscribers(do(s.watchStream)),
		"POST /v1/media/input":  subscribers(limitBody(s.mediaInput)),
		"POST /v1/media/output": subscribers(limitBody(s.mediaOutput)),
	} {
		routes[pattern] = s.limiter.limited(pattern, s.keys, h)
	}
	return routes
}

// jsonErrors answers in JSON what a ServeMux answers in plain text: unknown
// paths and wrong methods. Nor does it redirect: a path that is not in its
// shortest form is unknown.
func jsonErrors(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		switch {
		case pattern != "" && shortest(r.URL.Path):
			mux.ServeHTTP(w, r)
			return
		case pattern == "":
			// The ServeMux alone knows which methods a path has.
			p := probe{header: http.Header{}}
			h.ServeHTTP(&p, r)
			if p.status == http.StatusMethodNotAllowed {
				w.Header()["Allow"] = p.header["Allow"]
				refuse(w, r, http.StatusMethodNotAllowed, "This path does not have the method "+method(r))
				return
			}
		}
		refuse(w, r, http.StatusNotFound, "There is nothing under this path")
	})
}

// shortest tells whether a ServeMux would take the path as it is.
func shortest(p string) bool {
	clean := path.Clean(p)
	return p == clean || p == clean+"/"
}

// method is the method of a request, fit for a message.
func method(r *http.Request) string {
	const longest = 16
	return strings.ToUpper(r.Method[:min(len(r.Method), longest)])
}

// probe takes an answer and keeps its head.
type probe struct {
	header http.Header
	status int
}

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) WriteHeader(status int)      { p.status = status }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
