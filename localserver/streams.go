package localserver

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

var (
	errFull     = errors.New("too many streams")
	errStopping = errors.New("the server is stopping")
)

// streams counts the streams that are open on this node and knows when there
// are to be no new ones.
type streams struct {
	limit int

	mu       sync.Mutex
	open     int
	draining bool
	drain    chan struct{} // closed when the open streams are to finish
	empty    chan struct{} // closed when they have
}

func newStreams(limit int) *streams {
	return &streams{limit: limit, drain: make(chan struct{}), empty: make(chan struct{})}
}

// room tells whether one more stream could be opened now.
func (s *streams) room() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.roomLocked()
}

func (s *streams) roomLocked() error {
	switch {
	case s.draining:
		return errStopping
	case s.open >= s.limit:
		return errFull
	}
	return nil
}

// enter takes the place of one stream; leave gives it back.
func (s *streams) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.roomLocked(); err != nil {
		return err
	}
	s.open++
	return nil
}

func (s *streams) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.draining && s.open == 0 {
		close(s.empty)
	}
}

// stop asks the open streams to finish and lets no new one in.
func (s *streams) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return
	}
	s.draining = true
	close(s.drain)
	if s.open == 0 {
		close(s.empty)
	}
}

func (s *streams) stopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

func (s *streams) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// wait blocks until every stream has left after stop, or ctx ends.
func (s *streams) wait(ctx context.Context) error {
	select {
	case <-s.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leaveTimeout bounds how long giving back an account's place waits for the
// store. One that is not given back is found out when it is needed.
const leaveTimeout = 2 * time.Second

// takePlace takes one of the places that an account has for open streams over
// all nodes that share the store; errFull says that there is none. A place is
// its session's: whoever else tries to open the same one takes no other, and
// only who ran it gives it back.
func (s *Server) takePlace(ctx context.Context, account, id string, now time.Time) error {
	if !s.store.Shared() {
		return nil
	}
	got, err := s.places.TakePlace(ctx, account, id, now, s.options.MaxAccountStreams)
	if err == nil && !got {
		err = errFull
	}
	return err
}

func (s *Server) leavePlace(account, id string) {
	if !s.store.Shared() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := s.places.LeavePlace(ctx, account, id); err != nil {
		s.log.Warn("the place of a stream could not be given back yet", "stream", id, "error", err)
	}
}

// placesLeft tells whether an account could open one more stream now.
func (s *Server) placesLeft(ctx context.Context, account string, now time.Time) error {
	left := s.owned.room(account)
	var err error
	if left && s.store.Shared() {
		left, err = s.places.PlacesLeft(ctx, account, now, s.options.MaxAccountStreams)
	}
	if err == nil && !left {
		err = errFull
	}
	return err
}

// refuseStream answers a request for which there is no place.
func (s *Server) refuseStream(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errStopping) {
		refuse(w, r, http.StatusServiceUnavailable, "The server is stopping and takes no new streams")
		return
	}
	refuse(w, r, http.StatusTooManyRequests, "Too many streams at once; try again later")
}
