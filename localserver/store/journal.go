package store

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// eventSubject is the subject of one stream's events: whoever may watch the
// stream subscribes to it.
func eventSubject(session string) string { return "hubbub.events." + session }

// head is the end of what is kept of a session: how many messages, and the
// sequence number of the last entry.
type head struct {
	count int
	seq   uint64
}

// Append adds messages to what is kept of a session. They travel as one entry,
// a line each, so that a batch costs one write.
//
// The write names the entry that it follows. So a batch that is given twice is
// kept once, however late it comes, and of two who write one is refused: a
// node that was thought dead cannot write behind what the others have put
// under its stream (Amend). That is ErrConflict.
func (s *Store) Append(ctx context.Context, session string, first int, messages [][]byte) error {
	if len(messages) == 0 {
		return nil
	}
	at, known := s.head(session)
	if known && at.count == first || !known && first == 0 {
		err := s.append(ctx, session, at, messages)
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
	// Somebody has written; it may have been us. Only what is there tells: a
	// leader that was just chosen refuses writes for a while in the same words,
	// and may not know the newest entries yet.
	kept, at, err := s.read(ctx, session)
	if err != nil {
		return err
	}
	if at.count > first {
		if at.count >= first+len(messages) && slices.EqualFunc(kept[first:first+len(messages)], messages, bytes.Equal) {
			s.setHead(session, at)
			return nil
		}
		return ErrConflict
	}
	if at.count == first {
		if err = s.append(ctx, session, at, messages); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return wrap("keep events", errUnsettled)
}

// Amend reads everything that is kept of a session and appends what edit makes
// of it. Nothing comes in between.
func (s *Store) Amend(ctx context.Context, session string, edit func(kept [][]byte) ([][]byte, error)) error {
	for {
		kept, at, err := s.read(ctx, session)
		if err != nil {
			return err
		}
		more, err := edit(kept)
		if err != nil || len(more) == 0 {
			return err
		}
		if err = s.append(ctx, session, at, more); !errors.Is(err, ErrConflict) {
			s.forgetHead(session)
			return err
		}
	}
}

// append writes one entry behind at, or fails with ErrConflict.
func (s *Store) append(ctx context.Context, session string, at head, messages [][]byte) error {
	ack, err := s.js.Publish(ctx, eventSubject(session), bytes.Join(messages, []byte("\n")),
		jetstream.WithExpectLastSequencePerSubject(at.seq))
	if s.noted(err); conflicts(err) {
		return ErrConflict
	}
	if err != nil {
		return wrap("keep events", err)
	}
	s.setHead(session, head{at.count + len(messages), ack.Sequence})
	return nil
}

// Messages returns everything that was appended.
func (s *Store) Messages(ctx context.Context, session string) ([][]byte, error) {
	all, _, err := s.read(ctx, session)
	return all, err
}

func (s *Store) read(ctx context.Context, session string) (all [][]byte, at head, err error) {
	for next := uint64(1); ; {
		entry, err := s.events.GetMsg(ctx, next, jetstream.WithGetMsgSubject(eventSubject(session)))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return all, at, nil
		}
		if err != nil {
			return nil, head{}, wrap("read events", err)
		}
		all = append(all, splitEntry(entry.Data)...)
		at = head{len(all), entry.Sequence}
		next = entry.Sequence + 1
	}
}

// splitEntry takes an entry apart into its messages.
func splitEntry(data []byte) [][]byte { return bytes.Split(data, []byte("\n")) }

// The heads of the sessions that this process writes; Finish forgets them.

func (s *Store) head(session string) (head, bool) {
	at, ok := s.heads.Load(session)
	if !ok {
		return head{}, false
	}
	return at.(head), true
}

func (s *Store) setHead(session string, at head) { s.heads.Store(session, at) }
func (s *Store) forgetHead(session string)       { s.heads.Delete(session) }
