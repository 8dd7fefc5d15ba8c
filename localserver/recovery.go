package localserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol"
)

// journalOf is what ending a stream needs of its events.
type journalOf interface {
	store.Journal
	store.Amender
}

// cleanUp ends what a server that died on the same data folder has left
// behind: streams that were running read error from now on, and so do those
// that nobody opened in time. The folder is locked, so whoever began them is
// dead.
func cleanUp(ctx context.Context, sessions store.Sessions, events journalOf, node string, now time.Time, log *slog.Logger) error {
	left, err := sessions.Orphans(ctx, node, now)
	if err != nil {
		return err
	}
	for _, rec := range left {
		cause := "never opened"
		if rec.Status == store.Running {
			cause = "the server ended while the stream was running"
		}
		if err := bury(ctx, sessions, events, rec, now, cause); err != nil {
			return err
		}
		log.Info("stream of an earlier run ended", "stream", rec.ID, "cause", cause)
	}
	return nil
}

// bury ends a stream whose node is dead. Others may do the same at the same
// time, and the stream may have ended by itself.
func bury(ctx context.Context, sessions store.Sessions, events store.Amender, rec store.Session, now time.Time, cause string) error {
	if rec.Status == store.Running {
		// The events first: should this be cut off, it begins anew.
		if err := events.Amend(ctx, rec.ID, endTurns); err != nil {
			return fmt.Errorf("stream %s: %w", rec.ID, err)
		}
	}
	err := sessions.Finish(ctx, rec.ID, store.Failed, now, cause)
	if err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("stream %s: %w", rec.ID, err)
	}
	return nil
}

// endTurns returns an end for every turn that is open in what is kept of a
// stream: at the newest timestamp, for how much more was said is not known.
func endTurns(kept [][]byte) ([][]byte, error) {
	var last float64
	var open []protocol.Event // starts, in order
	for _, raw := range kept {
		e, err := protocol.ParseEvent(raw)
		if err != nil {
			return nil, err
		}
		last = max(last, e.Timestamp)
		for i, o := range open {
			if e.Type == protocol.TypeSpeakerEnd && o.Speaker == e.Speaker {
				open = append(open[:i], open[i+1:]...)
				break
			}
		}
		if e.Type == protocol.TypeSpeakerStart {
			open = append(open, e)
		}
	}
	var ends [][]byte
	for _, o := range open {
		last = max(last, o.Timestamp+resolution.Seconds())
		ends = append(ends, protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, last, o.Speaker).Raw)
	}
	return ends, nil
}
