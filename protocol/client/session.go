package client

import (
	"context"
	"time"

	"hubbub/protocol"
)

// session is what a ResilientStream and a Watcher have in common: one sequence of updates
// over the streams or connections that replace each other. One goroutine delivers them.
type session struct {
	client    *Client
	words     bool
	reconnect *reconnector
	merger    *eventMerger // of the goroutine
	updates   chan Update
	ctx       context.Context // ended by Close
	cancel    context.CancelFunc
	over      chan struct{} // closed by the goroutine at its very end
	info      CloseInfo     // set before over is closed
}

// newSession bounds an outage by limit; hint is for the error at the limit.
func (c *Client) newSession(words bool, limit time.Duration, hint string) session {
	s := session{client: c, words: words, merger: newEventMerger(), updates: make(chan Update, c.config.eventQueue), over: make(chan struct{}),
		reconnect: &reconnector{client: c, limit: limit, hint: hint}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// run is the goroutine of the session: it runs f, which sets info. doing says what it
// does, for the error of a panic.
func (s *session) run(doing string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			s.info = internalError(doing, p)
		}
		s.cancel()
		close(s.over)
		close(s.updates)
	}()
	f()
	if s.ctx.Err() != nil && s.info.Err != nil { // also in the middle of a back-off
		s.info = CloseInfo{Reason: Cancelled, Err: errClosedHere}
	}
}

// Updates delivers events and changes in order. It is closed when the session is over.
func (s *session) Updates() <-chan Update { return s.updates }

// Words reports whether there is what was said.
func (s *session) Words() bool { return s.words }

// Track is 0: there is one track.
func (s *session) Track(string) int { return 0 }

// Wait blocks until the session is over and says how it ended.
func (s *session) Wait() CloseInfo {
	<-s.over
	return s.info
}

// deliver delivers an update; false when the session was closed.
func (s *session) deliver(u Update) bool {
	select {
	case s.updates <- u:
		return true
	case <-s.ctx.Done():
		return false
	}
}

func (s *session) deliverEvents(events []protocol.Event) bool {
	for _, e := range events {
		if !s.deliver(Update{Event: e}) {
			return false
		}
	}
	return true
}
