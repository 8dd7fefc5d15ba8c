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
	operation := func(pattern string, h http.Handler) {
		mux.Handle(pattern, s.limiter.limited(pattern, s.keys, h))
	}
	operation("GET /v1/test", http.HandlerFunc(s.test))
	operation("POST /v1/live", subscribers(limitBody(s.createStream)))
	operation("GET /v1/live/{id}", subscribers(http.HandlerFunc(s.streamStatus)))
	operation("POST /v1/media/input", subscribers(limitBody(s.mediaInput)))
	operation("POST /v1/media/output", subscribers(limitBody(s.mediaOutput)))
	mux.HandleFunc("PUT "+mediaPath+"{sealed}", s.upload)
	mux.HandleFunc("GET "+mediaPath+"{sealed}", s.download)
	mux.HandleFunc("GET "+streamPath+"{id}", s.openStream)
	mux.HandleFunc("GET /healthz", s.alive)
	mux.HandleFunc("GET /readyz", s.ready)

	var h http.Handler = jsonErrors(mux)
	for _, wrap := range []middleware{withRecovery(s.log), withAccessLog(s.log), withRequestID} {
		h = wrap(h)
	}
	return h
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
