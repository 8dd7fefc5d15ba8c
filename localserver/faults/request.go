package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hubbub/protocol"
)

// responseTimeout bounds the writing of a response that was delayed.
const responseTimeout = 30 * time.Second

// page is the response of a captive portal.
const page = "<!DOCTYPE html><html><head><title>Log in to this network</title></head><body>On purpose: --fault web-page</body></html>\n"

// Refuser writes an error response, as the server does.
type Refuser func(w http.ResponseWriter, r *http.Request, status int, message string)

// Wrap puts the faults of requests in front of next. Once stopping is closed,
// no response is delayed any more.
func (p *Plan) Wrap(next http.Handler, refuse Refuser, stopping <-chan struct{}) http.Handler {
	if p == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		op := operation(r)
		for _, f := range p.faults {
			if f.kind.place != atRequest || op == "" || f.on != op && f.on != opAll || !f.applies() {
				continue
			}
			if f.inject(w, r, refuse, stopping) {
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// operation returns the operation of a request, "" for those without faults:
// health, metrics, and unknown paths.
func operation(r *http.Request) string {
	switch p := r.URL.Path; {
	case p == "/v1/test":
		return opTest
	case p == "/v1/live":
		return opLive
	case p == "/v1/media" && r.Method == http.MethodDelete:
		return opMediaDelete
	case p == "/v1/media":
		return opMediaList
	case p == "/v1/media/input":
		return opMediaInput
	case p == "/v1/media/output":
		return opMediaOutput
	case strings.HasPrefix(p, "/v1/live/") && strings.HasSuffix(p, "/events"):
		return opWatch
	case strings.HasPrefix(p, "/v1/live/"):
		return opStatus
	case strings.HasPrefix(p, "/v1/stream/"):
		return opHandshake
	case strings.HasPrefix(p, "/v1/media/objects/"):
		return opTransfer
	case p == "/v1/diarize", p == "/v1/voiceprint", p == "/v1/identify":
		return opJobCreate
	case p == "/v2/jobs":
		return opJobList
	case strings.HasPrefix(p, "/v1/jobs/") && r.Method == http.MethodDelete:
		return opJobCancel
	case strings.HasPrefix(p, "/v1/jobs/"):
		return opJobStatus
	}
	return ""
}

// inject makes a request fail as the fault says, and reports whether the request must
// not reach the server.
func (f *planned) inject(w http.ResponseWriter, r *http.Request, refuse Refuser, stopping <-chan struct{}) bool {
	why := fmt.Sprintf("on purpose: --fault %s", f.spec)
	switch f.kind.name {
	case "slow", "slow-handshake":
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(f.wait + responseTimeout)) // not supported in some tests only
		t := time.NewTimer(f.wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		case <-stopping:
		}
		return false
	case "no-answer", "no-handshake":
		select {
		case <-r.Context().Done():
		case <-stopping:
		}
		panic(http.ErrAbortHandler)
	case "web-page":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(page))
	case "refuse-handshake":
		refuse(w, r, f.value, http.StatusText(f.value)+", "+why)
	default:
		f.refuse(w, r, refuse, why)
	}
	return true
}

// refuse responds with the status that is the fault's name, in the same form as
// the server.
func (f *planned) refuse(w http.ResponseWriter, r *http.Request, refuse Refuser, why string) {
	s, _ := strconv.Atoi(f.kind.name) // checked by Parse
	seconds := int((f.wait + time.Second - 1) / time.Second)
	if seconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	switch s {
	case http.StatusBadRequest:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(s)
		_ = json.NewEncoder(w).Encode(protocol.Invalid("", "is refused, %s", why))
		return
	case http.StatusTooManyRequests:
		w.Header().Set("X-RateLimit-Limit", "100")
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("X-RateLimit-Reset", strconv.Itoa(max(1, seconds)))
	}
	refuse(w, r, s, http.StatusText(s)+", "+why)
}
