package client

import (
	"context"
	"time"

	"hubbub/protocol"
)

// streamSession is what a ResilientStream and a Watcher have in common: one sequence of updates
// over the streams or connections that replace each other. One goroutine delivers them.
type streamSession struct {
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

// newStreamSession bounds an outage by limit; hint is for the error at the limit.
func (c *Client) newStreamSession(words bool, limit time.Duration, hint string) streamSession {
	s := streamSession{client: c, words: words, merger: newEventMerger(), updates: make(chan Update, c.config.eventQueue), over: make(chan struct{}),
		reconnect: &reconnector{client: c, limit: limit, hint: hint}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// run is the goroutine of the session: it runs f, which sets info. doing says what it
// does, for the error of a panic.
func (s *streamSession) run(doing string, f func()) {
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
func (s *streamSession) Updates() <-chan Update { return s.updates }

// Words reports whether there is what was said.
func (s *streamSession) Words() bool { return s.words }

// Wait blocks until the session is over and says how it ended.
func (s *streamSession) Wait() CloseInfo {
	<-s.over
	return s.info
}

// deliver delivers an update; false when the session was closed.
func (s *streamSession) deliver(u Update) bool {
	select {
	case s.updates <- u:
		return true
	case <-s.ctx.Done():
		return false
	}
}

func (s *streamSession) deliverEvents(events []protocol.Event) bool {
	for _, e := range events {
		if !s.deliver(Update{Event: e}) {
			return false
		}
	}
	return true
}
