package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// eventSubject is the subject of one stream's events: whoever may watch the
// stream subscribes to it.
func eventSubject(session string) string { return "hubbub.events." + session }

// Append adds messages to what is kept of a session. They travel as one entry,
// a line each, so that a batch costs one write. A batch given twice within two
// minutes is kept once.
func (s *Store) Append(ctx context.Context, session string, first int, messages [][]byte) error {
	if len(messages) == 0 {
		return nil
	}
	_, err := s.js.Publish(ctx, eventSubject(session), bytes.Join(messages, []byte("\n")),
		jetstream.WithMsgID(fmt.Sprint(session, "/", first)))
	return wrap("keep events", err)
}

// Messages returns everything that was appended.
func (s *Store) Messages(ctx context.Context, session string) ([][]byte, error) {
	var all [][]byte
	for next := uint64(1); ; {
		entry, err := s.events.GetMsg(ctx, next, jetstream.WithGetMsgSubject(eventSubject(session)))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		all = append(all, bytes.Split(entry.Data, []byte("\n"))...)
		next = entry.Sequence + 1
	}
}
