package localserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"hubbub/localserver/lease"
	"hubbub/localserver/store"
	"hubbub/localserver/stream"
	"hubbub/protocol"
)

const (
	// outboxFolder is in the data folder.
	outboxFolder = "outbox"
	// firstCheckTimeout bounds how long a node that starts tries to acquire its
	// lease.
	firstCheckTimeout = 20 * time.Second
	// reapTimeout bounds one attempt to end the streams of dead nodes.
	reapTimeout = 30 * time.Second
)

// causeNodeDied is the cause in the record of a dead node's stream.
const causeNodeDied = "the node that ran the stream died"

// joinCluster opens the outbox, exchanges API keys with the other nodes, and starts the lease
// monitor and the reaper. It returns when the node holds its lease.
func (s *Server) joinCluster(ctx context.Context) error {
	folder := ""
	if s.options.DataDir != "" {
		folder = filepath.Join(s.options.DataDir, outboxFolder)
	}
	s.outbox = stream.OpenOutbox(s.store, folder, true, &s.counters.Lost, s.log)
	if err := s.keys.Join(ctx, s.store); err != nil {
		return err
	}
	s.monitor = lease.New(s.node, s.store, s.log)
	// A cluster that is starting may need some attempts.
	first, cancel := context.WithTimeout(ctx, firstCheckTimeout)
	defer cancel()
	for err := s.monitor.Check(first); err != nil; err = s.monitor.Check(first) {
		if protocol.Sleep(first, lease.Interval/10) != nil {
			return fmt.Errorf("the lease of this node could not be acquired: %w", err)
		}
	}
	looked := false // for streams of nodes that died before this one started
	s.startTask("renewal of the lease", lease.Interval, s.monitor.Check)
	s.startTask("end of the streams of dead nodes", lease.Interval, func(ctx context.Context) error {
		if looked && len(s.monitor.DeadNodes()) == 0 {
			return nil
		}
		err := s.expireDeadNodes(ctx)
		looked = looked || err == nil
		return err
	})
	return nil
}

// leaveCluster releases the lease: a node that stops properly has ended its streams.
func (s *Server) leaveCluster() {
	if s.monitor == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lease.Timeout)
	defer cancel()
	if err := s.store.Release(ctx, s.node); err != nil {
		s.log.Info("the lease of this node could not be released", "error", err)
	}
}

// expireDeadNodes ends the streams of dead nodes.
func (s *Server) expireDeadNodes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reapTimeout)
	defer cancel()
	dead := s.monitor.DeadNodes()
	if err := s.expireRunning(ctx, s.monitor.Dead, causeNodeDied); err != nil {
		return err
	}
	// Their leases are released at the end; a node that comes back acquires a new one.
	for _, node := range dead {
		if err := s.store.Release(ctx, node); err != nil {
			return err
		}
		s.monitor.Forget(node)
	}
	return nil
}

// expireRunning ends the streams that run on the nodes for which dead is true.
func (s *Server) expireRunning(ctx context.Context, dead func(node string) bool, cause string) error {
	left, err := s.store.Running(ctx, dead)
	if err != nil {
		return err
	}
	for _, rec := range left {
		if err := s.expire(ctx, rec, cause); err != nil {
			return err
		}
		s.log.Info("stream of a dead node ended", "stream", rec.ID, "dead", rec.Node, "cause", cause)
	}
	return nil
}

// expireEarlier ends the streams that an earlier process on the same data folder has left
// running. The folder is locked, so that process is dead.
func (s *Server) expireEarlier(ctx context.Context) error {
	return s.expireRunning(ctx, func(string) bool { return true }, "the server ended while the stream was running")
}

// expire ends a running stream whose node is dead. Other nodes may do the same at the
// same time, and the stream may have ended by itself.
func (s *Server) expire(ctx context.Context, rec store.Stream, cause string) error {
	// The events come before the status: until the status is final, an attempt
	// that was interrupted is repeated.
	_, received, err := s.store.Snapshot(ctx, rec.ID)
	if err == nil || errors.Is(err, store.ErrNotFound) {
		err = s.store.Amend(ctx, rec.ID, func(stored [][]byte) [][]byte {
			ends, unread := endTurns(stored, received)
			if unread != nil {
				s.log.Error("an event of a stream is ignored", "stream", rec.ID, "error", unread)
			}
			return ends
		})
	}
	if err == nil {
		err = s.records.Finish(ctx, rec.ID, store.Failed, s.now().UTC(), cause)
	}
	if err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("stream %s: %w", rec.ID, err)
	}
	return nil
}

// endTurns returns an end for every turn that is open in the stored events of a
// stream: where its newest snapshot was taken, or at the newest timestamp if that is
// later, since nothing is known after it. It ignores events that cannot be read and returns
// the first error.
func endTurns(stored [][]byte, received time.Duration) (ends [][]byte, unread error) {
	last := received.Seconds()
	var open []protocol.Event // starts, in order
	for _, raw := range stored {
		e, err := protocol.ParseEvent(raw)
		if err != nil {
			unread = cmp.Or(unread, err)
			continue
		}
		last = max(last, e.Timestamp)
		switch e.Type {
		case protocol.TypeSpeakerStart:
			open = append(open, e)
		case protocol.TypeSpeakerEnd:
			open = slices.DeleteFunc(open, func(o protocol.Event) bool { return o.Speaker == e.Speaker })
		}
	}
	for _, o := range open {
		last = max(last, o.Timestamp+stream.Resolution.Seconds())
		ends = append(ends, protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, last, o.Speaker).Raw)
	}
	return ends, unread
}
