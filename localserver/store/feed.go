package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// sinceEntries bounds how many entries of a journal one call of Since reads.
const sinceEntries = 256

// Pulse is what the node that runs a session tells whoever follows it. Pulses
// are kept nowhere and may be lost: they say when to look, what is kept says
// what is true.
type Pulse struct {
	// Kept is how many events are in the journal.
	Kept int `json:"kept"`
	// Heard is how much audio was received.
	Heard time.Duration `json:"heard"`
	// Over says that the session's record has its last word.
	Over bool `json:"over,omitempty"`
}

// Feed lets any node follow what one of them writes.
type Feed interface {
	// Since reads what is kept of a session behind an entry, 0 for all of it:
	// the messages, and the entry that they reach to. It reads a bounded part;
	// no messages and no error mean that there are no more by now.
	Since(ctx context.Context, session string, after uint64) (messages [][]byte, last uint64, err error)
	// Announce sends a pulse to all who listen. It does not wait for them.
	Announce(session string, p Pulse) error
	// Listen calls heard with every pulse that comes, one at a time, until
	// stop. heard must not wait.
	Listen(session string, heard func(Pulse)) (stop func(), err error)
}

var _ Feed = (*Store)(nil)

// pulseSubject is outside of what the streams keep.
func pulseSubject(session string) string { return "hubbub.pulse." + session }

// Since reads what was appended behind an entry.
func (s *Store) Since(ctx context.Context, session string, after uint64) (messages [][]byte, last uint64, err error) {
	last = after
	for range sinceEntries {
		entry, err := s.events.GetMsg(ctx, last+1, jetstream.WithGetMsgSubject(eventSubject(session)))
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return messages, last, nil
		case err != nil && len(messages) > 0: // the next call meets it again
			return messages, last, nil
		case err != nil:
			return nil, after, wrap("read events", err)
		}
		messages = append(messages, splitEntry(entry.Data)...)
		last = entry.Sequence
	}
	return messages, last, nil
}

// Announce sends a pulse.
func (s *Store) Announce(session string, p Pulse) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return wrap("announce", s.conn.Publish(pulseSubject(session), raw))
}

// Listen hears the pulses of a session.
func (s *Store) Listen(session string, heard func(Pulse)) (stop func(), err error) {
	sub, err := s.conn.Subscribe(pulseSubject(session), func(m *nats.Msg) {
		var p Pulse
		if json.Unmarshal(m.Data, &p) == nil {
			heard(p)
		}
	})
	if err != nil {
		return nil, wrap("listen", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // fails only when the connection is closed
}
