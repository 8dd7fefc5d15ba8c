package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"hubbub/protocol"
)

// responseTimeout bounds the writing of a response that was delayed.
const responseTimeout = 30 * time.Second

// page is the response of a captive portal.
const page = "<!DOCTYPE html><html><head><title>Log in to this network</title></head><body>On purpose: --fault web-page</body></html>\n"

// Refuser writes an error response, as the server does.
type Refuser func(w http.ResponseWriter, r *http.Request, status int, message string)

// Wrap puts the faults of a route in front of next. Once stopping is closed, no response
// is delayed any more.
func (p Plan) Wrap(route string, next http.Handler, refuse Refuser, stopping <-chan struct{}) http.Handler {
	op := operation(route)
	others := func(f Fault) bool {
		return f.kind.place != atRequest || op == "" || f.on != op && f.on != everyOperation
	}
	faults := slices.DeleteFunc(slices.Clone(p), others)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, f := range faults {
			if f.applies() && f.inject(w, r, refuse, stopping) {
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// operation is the operation of a route, "" for those without faults.
func operation(route string) string {
	for _, o := range operations {
		if slices.Contains(o.routes, route) {
			return o.name
		}
	}
	return ""
}

// inject makes a request fail as the fault says, and reports whether the request must
// not reach the server.
func (f Fault) inject(w http.ResponseWriter, r *http.Request, refuse Refuser, stopping <-chan struct{}) bool {
	why := fmt.Sprintf("on purpose: --fault %s", f.spec)
	switch f.kind.name {
	case "slow":
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
	case "no-answer":
		select {
		case <-r.Context().Done():
		case <-stopping:
		}
		panic(http.ErrAbortHandler)
	case "web-page":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(page))
	default:
		f.refuse(w, r, refuse, why)
	}
	return true
}

// refuse responds with the status that is the fault's name, in the same form as
// the server.
func (f Fault) refuse(w http.ResponseWriter, r *http.Request, refuse Refuser, why string) {
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
