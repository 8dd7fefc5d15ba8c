package protocol

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
)

// What is tried again, and why. A stream that worked and was lost is worth a
// new one wherever time may mend the cause; it is not where the same thing
// would be refused again, or where going on would be our fault.
//
//	how the stream ended                     again?
//	connection broke, no close               yes   networks do that
//	service silent, or takes no audio        yes   so does a machine that froze
//	1001, 1012, 1013                         yes   it restarts, or asks to come back
//	1011, no code with a meaning             yes   its fault, and most pass
//	1000 before end_of_stream                yes   a stream may have a longest life
//	1008 after 50 s without audio from us    yes   we know which rule: the source paused
//	1008 otherwise                           no    we broke a rule, and would again
//	1002, 1003, 1007, 1009, 1010             no    it does not understand us
//	3000 to 4999                             no    the service's own; nobody knows the meaning
//	what came is no WebSocket                no    nor will it be
//	no close after end_of_stream             no    it has everything and said what it had to say
//	closed by this side                      no    it was meant
//	a fault of our own                       no    it is to be reported, not repeated
//
//	answer to the request for a new one      again?
//	none: refused, no route, name, TLS       yes   it worked before: the network, or a log-in page in between
//	400 to one that names the old stream     yes   once without: the field is not in the specification
//	400, 401, 402, 403, other 4xx            no    key, subscription, request: they stay what they are
//	404, 408, 409, 421, 425, 429             yes   a service being restarted, or busy
//	3xx, and answers that are not its JSON   yes   a log-in page in between
//	501, 505                                 no    it cannot
//	other 5xx                                yes   its trouble
//
//	answer to the handshake                  again?
//	as above, but 401, 404 and 410           yes   the token's, not the key's: a new stream has a new one
//
// A Retry-After is obeyed; one that reaches beyond the limit is the end.

// idleLoss is how long this side must have sent nothing for a 1008 to be about
// that: services close after 60 s.
const idleLoss = 50 * time.Second

// lossIsWorthRetrying decides on a stream that ended; idle is how long this
// side had sent nothing.
func lossIsWorthRetrying(info CloseInfo, ended bool, idle time.Duration) bool {
	if own := (*defect)(nil); errors.As(info.Err, &own) {
		return false
	}
	switch info.Reason {
	case Lost, GoingAway, ServerError, EndedEarly:
		return true
	case TimedOut:
		return !ended
	case Policy:
		return info.Code == websocket.ClosePolicyViolation && idle >= idleLoss
	}
	return false
}

// step is what a new stream needs: a request, then a handshake.
type step int

const (
	creating step = iota
	opening
)

// refusalIsWorthRetrying decides on an error of CreateStream or OpenStream.
func refusalIsWorthRetrying(at step, err error) bool {
	var answer *APIError
	if !errors.As(err, &answer) {
		return true
	}
	switch s := answer.Status; s {
	case http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusMisdirectedRequest,
		http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusUnauthorized, http.StatusGone:
		return at == opening
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	default:
		return s/100 != 4
	}
}

const (
	backOffFirst = 500 * time.Millisecond
	backOffMost  = 15 * time.Second
)

// backOff is how long to wait before the n-th try, counted from 1: twice as
// long each time, and half of it by chance, so that the clients of a service
// that restarts do not all come at once. What the service asks for counts more.
func backOff(n int, err error) time.Duration {
	d := backOffMost
	if n < 6 {
		d = min(backOffFirst<<(n-1), backOffMost)
	}
	d = d/2 + rand.N(d/2)
	var answer *APIError
	if errors.As(err, &answer) && answer.RetryAfter > d {
		return answer.RetryAfter
	}
	return d
}
