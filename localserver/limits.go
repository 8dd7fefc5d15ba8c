package localserver

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"hubbub/localserver/limits"
	"hubbub/localserver/store"
)

// DefaultRatePerMinute is the value of Options.RatePerMinute unless given.
const DefaultRatePerMinute = 100

// jobStatusFactor is how many times the requests of another operation may ask for
// the status of a job: clients poll it.
const jobStatusFactor = 3

// requestLimit is the limit of an operation, in requests a minute.
func (s *Server) requestLimit(operation string) int {
	if operation == jobStatusRoute {
		return min(jobStatusFactor*s.options.RatePerMinute, MaxRatePerMinute)
	}
	return s.options.RatePerMinute
}

// count counts a request to an operation, and refuses it above the limit. All responses
// under /v1 and /v2 have the same three headers, but those of streams and transfers;
// requests with an invalid key and those that no operation takes are not counted.
func (s *Server) count(w http.ResponseWriter, r *http.Request, operation string, limit int) error {
	if limit < 0 {
		return nil
	}
	c, err := s.rate.Take(r.Context(), operation, caller(r.Context()).Account, limit)
	reset := max(1, int((c.Reset.Sub(s.now())+time.Second-1)/time.Second))
	setRateHeaders(w.Header(), limit, max(0, limit-c.Used), reset)
	switch {
	case c.Taken:
		return nil
	case err != nil:
		return refused(http.StatusServiceUnavailable, "The request could not be counted; try again")
	}
	w.Header().Set("Retry-After", strconv.Itoa(reset))
	return refused(http.StatusTooManyRequests, "Too many requests; try again later")
}

// setUncounted sets the headers of a response to a request that is not counted, unless
// there is no limit.
func setUncounted(h http.Header, limit int) {
	if limit >= 0 {
		setRateHeaders(h, limit, limit, int(limits.RateWindow/time.Second))
	}
}

// setRateHeaders sets the headers: the requests per minute, how many are left, and
// after how many seconds one more is available.
func setRateHeaders(h http.Header, limit, left, reset int) {
	h.Set("X-RateLimit-Limit", strconv.Itoa(limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(left))
	h.Set("X-RateLimit-Reset", strconv.Itoa(reset))
}

// errOverloaded says that the engines do not keep up with the open streams.
var errOverloaded = errors.New("the streams are late")

// overloadStreams is how many streams must be open before a node counts as overloaded.
// With fewer, it is not their number that makes them late.
const overloadStreams = streamsPerCore / 3

// overloaded reports whether the engines do not keep up with the open streams.
func (s *Server) overloaded() bool {
	late := s.overload.Current() // always asked, because it also logs
	return late && s.streams.Count() >= overloadStreams
}

// admitStream returns limits.ErrFull, limits.ErrStopping or errOverloaded, or nil if
// this node takes one more stream of an account now.
func (s *Server) admitStream(account string) error {
	overloaded := s.overloaded()
	err := s.streams.Available(account)
	if err == nil && overloaded {
		err = errOverloaded
	}
	return err
}

// releaseTimeout bounds how long releasing a stream waits for the store. A
// stream that is not released no longer counts once it is over.
const releaseTimeout = 2 * time.Second

func (s *Server) releaseStream(account, id string) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	if err := s.store.ReleaseStream(ctx, account, id); err != nil {
		s.log.Warn("a stream could not be released from its account's quota yet", "stream", id, "error", err)
	}
}

// overloadedRetry is the Retry-After of an overloaded node, in seconds: it assesses its
// load again within this time.
const overloadedRetry = "5"

// notAdmitted is what a request for a stream fails with that is not admitted; message is for
// errors of the store.
func notAdmitted(w http.ResponseWriter, err error, message string) error {
	switch {
	case errors.Is(err, limits.ErrStopping):
		return refused(http.StatusServiceUnavailable, "The server is stopping and takes no new streams")
	case errors.Is(err, errOverloaded):
		w.Header().Set("Retry-After", overloadedRetry)
		return refused(http.StatusTooManyRequests, "The server does not keep up with its streams; try again later")
	case errors.Is(err, limits.ErrFull), errors.Is(err, store.ErrQuota):
		return refused(http.StatusTooManyRequests, "Too many streams at once; try again later")
	}
	return unavailable(message, err)
}
