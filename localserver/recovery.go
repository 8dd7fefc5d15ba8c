package localserver

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol"
)

// cleanUp ends what a server that died on the same data folder has left
// behind: streams that were running read error from now on, and so do those
// that nobody opened in time. The folder is locked, so whoever began them is
// dead.
func cleanUp(ctx context.Context, sessions store.Sessions, events store.Journal, node string, now time.Time, log *slog.Logger) error {
	left, err := sessions.Orphans(ctx, node, now)
	if err != nil {
		return err
	}
	for _, rec := range left {
		cause := "never opened"
		if rec.Status == store.Running {
			cause = "the server ended while the stream was running"
			// The events first: should this be cut off, it begins anew.
			if err := endKeptTurns(ctx, events, rec.ID); err != nil {
				return fmt.Errorf("stream %s: %w", rec.ID, err)
			}
		}
		if err := sessions.Finish(ctx, rec.ID, store.Failed, now, cause); err != nil {
			return fmt.Errorf("stream %s: %w", rec.ID, err)
		}
		log.Info("stream of an earlier run ended", "stream", rec.ID, "cause", cause)
	}
	return nil
}

// endKeptTurns appends an end for every turn that is open in what is kept of a
// stream: at the newest timestamp, for how much more was said is not known.
func endKeptTurns(ctx context.Context, events store.Journal, id string) error {
	kept, err := events.Messages(ctx, id)
	if err != nil {
		return err
	}
	var last float64
	var open []protocol.Event // starts, in order
	for _, raw := range kept {
		e, err := protocol.ParseEvent(raw)
		if err != nil {
			return err
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
	return events.Append(ctx, id, len(kept), ends)
}
