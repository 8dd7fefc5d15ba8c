package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol/hint"
	"hubbub/protocol/recovered"
)

// Senders and watchers replace a lost connection by the same policy. An attempt
// is worthwhile when time may remove the cause, and pointless when the same
// thing would be refused again.
//
//	how the stream ended                      retry
//	connection broke without a close          yes   networks do that
//	service silent, or accepts no audio       yes   so does a machine that froze
//	1001, 1012, 1013                          yes   it restarts, or asks to come back
//	1011, code without a meaning              yes   a failure of the service; most pass
//	1000 before end_of_stream                 yes   a stream may have a maximum length
//	1008 after 50 s without audio from us     yes   the rule is known: the source paused
//	1008 otherwise                            no    we broke a rule, and would again
//	1002, 1003, 1007, 1009, 1010              no    the service does not understand us
//	3000 to 4999                              no    defined by the service, meaning unknown
//	not WebSocket                             no    nor will it be
//	no close after end_of_stream              no    the service has all audio and sent what it had
//	closed by this side                       no    on purpose
//	internal error of hubbub                  no    to be reported, not repeated
//
//	response to the request for a new stream  retry
//	none: refused, no route, name, TLS        yes   it worked before: the network, or a log-in page
//	400 to a request with the field resume    yes   once without the field: it is an extension
//	400 to a request with voiceprints         yes   once without them: the service may have another engine now
//	400, 401, 402, 403, other 4xx             no    key, subscription, request: they do not change
//	404, 408, 409, 421, 425, 429              yes   a service that restarts, or is busy
//	3xx, and bodies that are not its JSON     yes   a log-in page in between
//	4xx with a web page                       yes   a proxy whose service restarts
//	501, 505                                  no    not supported
//	other 5xx                                 yes   a failure of the service
//
//	response to a sender's handshake          retry
//	as above, but 401, 404 and 410            yes   about the token, not the key: a new stream has a new one
//
//	response to a watcher's handshake         retry
//	as above, but 404                         no    the stream is unknown to this account
//
// A Retry-After is obeyed; one beyond the limit is the end.

// DefaultReconnect is how long reconnecting is tried unless told otherwise.
const DefaultReconnect = 2 * time.Minute

const (
	// minUptime is how long a stream must have been open for its loss to start a
	// new outage, with a new limit and a new back-off.
	minUptime = 10 * time.Second
	// minProgress is how much audio a sender's stream must have decided for that, in seconds:
	// a service could lose each stream for ever, also after the input has ended.
	minProgress = 1
	// idleTimeout is how long this side must have sent nothing for a 1008 to be
	// about that: services close after 60 s.
	idleTimeout = 50 * time.Second
	// attemptTimeout bounds one attempt, request and handshake.
	attemptTimeout = 20 * time.Second

	firstBackOff = 500 * time.Millisecond
	maxBackOff   = 15 * time.Second
)

// errNotResumed is in the error of a stream that was lost and not replaced.
var errNotResumed = errors.New("the connection was lost and not replaced")

// retryAfterLoss decides about a stream that ended; idle is how long this side
// had sent nothing.
func retryAfterLoss(info CloseInfo, endSent bool, idle time.Duration) bool {
	if recovered.Caught(info.Err) {
		return false
	}
	switch info.Reason {
	case Lost, GoingAway, ServerError, EndedEarly:
		return true
	case TimedOut:
		return !endSent
	case Policy:
		return info.Code == websocket.ClosePolicyViolation && idle >= idleTimeout
	}
	return false
}

// attemptStep is a step of an attempt. A sender creates a stream and opens it, a
// watcher opens a connection to an existing stream.
type attemptStep int

const (
	creating attemptStep = iota
	opening
	watching
)

// retryAfterRefusal decides about the error of a step.
func retryAfterRefusal(at attemptStep, err error) bool {
	response, ok := errors.AsType[*ResponseError](err)
	if !ok {
		return true
	}
	if response.page && response.Status/100 == 4 {
		return true
	}
	switch s := response.Status; s {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusMisdirectedRequest,
		http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotFound:
		return at != watching
	case http.StatusUnauthorized, http.StatusGone:
		return at == opening
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	default:
		return s/100 != 4
	}
}

// backOff is the wait before the n-th attempt, counted from 1: doubled each
// time, and half of it random, so that the clients of a service that restarts
// do not all return at once. A longer Retry-After counts instead.
func backOff(n int, err error) time.Duration {
	d := min(firstBackOff<<min(n-1, 5), maxBackOff)
	d = d/2 + rand.N(d/2)
	if response, ok := errors.AsType[*ResponseError](err); ok && response.RetryAfter > d {
		return response.RetryAfter
	}
	return d
}

// ConnectionStatus is the state of a connection that is replaced when it is
// lost.
type ConnectionStatus struct {
	// Lost is why there is no connection; nil while there is one.
	Lost error
	// LastError is why the last attempt failed; nil before that.
	LastError error
	// Attempts counts the attempts since the loss. NextAttempt is when the next
	// one begins; zero during one.
	Attempts    int
	NextAttempt time.Time
	// Losses counts the connections that were lost.
	Losses int
	// Sender says that the stream itself was lost, and not the connection of this
	// watcher: it waits for the sender to resume.
	Sender bool
}

// reconnector makes the attempts to replace a lost connection. One goroutine
// calls its methods; any may call state.
type reconnector struct {
	client *Client
	limit  time.Duration // of one outage
	// ending is closed when the user ends the session: one more attempt is made.
	ending <-chan struct{}
	hint   string // of the error when the limit is reached

	began    time.Time // of the outage; zero before the first
	attempts int       // of the outage
	last     bool      // the one more attempt of the outage was made

	mu     sync.Mutex
	status ConnectionStatus
}

// state is the status now.
func (r *reconnector) state() ConnectionStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// lost notes the loss of a stream that was opened at a time. An outage includes
// connections that are lost within minUptime, or without progress.
func (r *reconnector) lost(opened time.Time, progressed bool, why error) {
	if time.Since(opened) >= r.client.config.minUptime && progressed {
		r.renew()
	}
	r.begin(why, false)
}

// renew makes the loss that was noted the first of a new outage.
func (r *reconnector) renew() { r.began, r.attempts, r.last = time.Time{}, 0, false }

// awaitSender notes that the sender of a watched stream has lost it.
func (r *reconnector) awaitSender(why error) {
	r.renew()
	r.begin(why, true)
}

func (r *reconnector) begin(why error, sender bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = ConnectionStatus{Lost: why, Losses: r.status.Losses, Sender: sender}
	if !sender {
		r.status.Losses++
	}
}

// connected notes that the connection was replaced.
func (r *reconnector) connected() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = ConnectionStatus{Losses: r.status.Losses}
}

// run attempts to connect until an attempt succeeds, the service refuses, or the
// limit is reached. connect makes one attempt and names the step that failed.
func (r *reconnector) run(ctx context.Context, connect func(context.Context) (attemptStep, error)) error {
	lost := r.state().Lost
	if r.began.IsZero() {
		r.began = time.Now()
	}
	if r.last { // its connection was lost at once
		return hint.Errorf(hint.Of(lost), "%w: %w", errNotResumed, lost)
	}
	var failed error
	for {
		r.attempts++
		wait, left := r.client.config.backOff(r.attempts, failed), r.limit-time.Since(r.began)
		response, refused := errors.AsType[*ResponseError](failed)
		switch {
		case left <= 0:
			return r.limitReached(lost, failed)
		case refused && response.RetryAfter > left:
			return hint.Errorf(r.hint, "%w: %w; the service asks to wait %s and %s are left: %w",
				errNotResumed, lost, response.RetryAfter.Round(time.Second), left.Round(time.Second), failed)
		}
		wait = min(wait, left) // so that the last attempt is at the limit
		r.last = r.wait(ctx, failed, wait) || r.last
		var at attemptStep
		if ctx.Err() == nil {
			r.client.Close() // what broke the connection may have broken those that wait for requests
			attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
			at, failed = connect(attempt)
			if cancel(); failed == nil {
				return nil
			}
		}
		switch {
		case ctx.Err() != nil:
			return errClosedHere
		case !retryAfterRefusal(at, failed):
			return hint.Errorf(hint.Of(failed), "%w: %w; the service refuses a new one: %w", errNotResumed, lost, failed)
		case r.last:
			return hint.Errorf(hint.Of(failed), "%w: %w; the last attempt failed: %w", errNotResumed, lost, failed)
		}
	}
}

// limitReached is the error when there is no time for another attempt.
func (r *reconnector) limitReached(lost, failed error) error {
	switch {
	case failed == nil && r.attempts > 1: // the one before succeeded
		return hint.Errorf(r.hint+" Each new stream was lost soon, too: tell the operator of the service, or of a proxy in between.", "%w: %w", errNotResumed, lost)
	case failed == nil:
		return hint.Errorf(r.hint, "%w: %w", errNotResumed, lost)
	}
	return hint.Errorf(strings.TrimSpace(r.hint+" "+hint.Of(failed)), "%w within %s: %w; the last attempt failed: %w", errNotResumed, r.limit, lost, failed)
}

// wait waits before an attempt. It reports whether that is the last one.
func (r *reconnector) wait(ctx context.Context, failed error, wait time.Duration) (last bool) {
	r.mu.Lock()
	r.status.Attempts, r.status.LastError, r.status.NextAttempt = r.attempts, failed, time.Now().Add(wait)
	r.mu.Unlock()
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.ending:
		last = true
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.NextAttempt = time.Time{}
	return last
}
