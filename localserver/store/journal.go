package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// eventTTL is how long events stay. Results of a stream are promised for 24 hours and
// removed within 48: a stream of 20 hours is complete for a day after its end.
const eventTTL = 47 * time.Hour

// eventSubject is the subject of one stream's events.
func eventSubject(stream string) string { return subject("hubbub", "events", stream) }

// tail is the end of a stream's events: their number, the sequence number of the last
// entry, and whether Amend has written that.
type tail struct {
	count int
	seq   uint64
	final bool
}

// finalHeader marks the entry of Amend, whatever it holds: the earlier writer may have the
// same events.
const finalHeader = "Hubbub-Final"

// Append adds messages, each one JSON text without a line break, to the events of a
// stream. first is the number of the first one, counted from 0 in its stream; messages
// whose outcome is unknown may be appended again, with others after them. They are stored
// as one entry, a line each, so that a batch costs one write.
//
// The write names the entry that it follows. So a message that is appended twice
// is stored once, however late it arrives, and of two concurrent writers one is
// refused: a node that was considered dead cannot append to a stream that another one
// has completed (Amend). That is ErrConflict.
func (s *Store) Append(ctx context.Context, stream string, first int, messages [][]byte) (err error) {
	defer func() { err = s.report("append events", err) }()
	var end tail
	if written, ok := s.tails.Load(stream); ok {
		end = written.(tail)
	}
	if end.count == first {
		err := s.publishEntry(ctx, stream, end, messages, false)
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
	// Another write came first, perhaps an earlier attempt of this one. Only
	// the stored events decide: a leader that was just elected refuses writes for a
	// while with the same error, and may not know the newest entries yet.
	_, end, err = s.read(ctx, stream)
	if err != nil {
		return err
	}
	known := min(end.count-first, len(messages))
	switch {
	case end.final:
		return ErrConflict
	case known < 0:
		return errRetry
	case known == len(messages):
		s.tails.Store(stream, end)
		return nil
	}
	if err = s.publishEntry(ctx, stream, end, messages[known:], false); errors.Is(err, ErrConflict) {
		err = errRetry
	}
	return err
}

// Amend completes the events of another node's stream, once: it reads them and appends
// what edit returns for them, as one step. After that the earlier writer can append no
// more, also if there was nothing to add.
func (s *Store) Amend(ctx context.Context, stream string, edit func(stored [][]byte) [][]byte) error {
	for {
		stored, end, err := s.read(ctx, stream)
		if err != nil || end.final {
			return wrap("amend events", err)
		}
		if err = s.publishEntry(ctx, stream, end, edit(stored), true); !errors.Is(err, ErrConflict) {
			s.tails.Delete(stream)
			return wrap("amend events", err)
		}
	}
}

// publishEntry writes one entry after end, or fails with ErrConflict.
func (s *Store) publishEntry(ctx context.Context, stream string, end tail, messages [][]byte, final bool) error {
	entry := &nats.Msg{Subject: eventSubject(stream), Data: bytes.Join(messages, []byte("\n"))}
	if final {
		entry.Header = nats.Header{finalHeader: {"1"}}
	}
	ack, err := s.js.PublishMsg(ctx, entry, jetstream.WithExpectLastSequencePerSubject(end.seq))
	if conflicts(err) {
		return ErrConflict
	}
	if err != nil {
		return err
	}
	s.tails.Store(stream, tail{end.count + len(messages), ack.Sequence, final})
	return nil
}

// Messages returns everything that was appended to the events of a stream.
func (s *Store) Messages(ctx context.Context, stream string) ([][]byte, error) {
	all, _, err := s.read(ctx, stream)
	return all, s.report("read events", err)
}

// read returns all messages of a stream and their tail.
func (s *Store) read(ctx context.Context, stream string) (all [][]byte, end tail, err error) {
	return s.readAfter(ctx, stream, 0, math.MaxInt)
}

// readAfter returns the messages of at most so many entries of a stream after an entry,
// and their tail. Those before an error are returned with it.
func (s *Store) readAfter(ctx context.Context, stream string, last uint64, most int) (messages [][]byte, end tail, err error) {
	end.seq = last
	for n := 0; err == nil && n < most; n++ {
		entry, failed := s.events.GetMsg(ctx, end.seq+1, jetstream.WithGetMsgSubject(eventSubject(stream)))
		if errors.Is(failed, jetstream.ErrMsgNotFound) {
			break
		}
		if err = failed; err == nil {
			if len(entry.Data) > 0 {
				messages = append(messages, bytes.Split(entry.Data, []byte("\n"))...)
			}
			end = tail{len(messages), entry.Sequence, entry.Header.Get(finalHeader) != ""}
		}
	}
	return messages, end, err
}

// sinceEntries bounds how many entries of a journal one call of Since reads.
const sinceEntries = 256

// Progress is how far a stream is, published by the node that runs it. It is not
// stored and may be lost: it tells watchers when to read the store, and only what is
// stored counts. While a cluster is updated, nodes of both builds read it: its names in
// JSON and its subject stay.
type Progress struct {
	// Stored is how many events are in the journal.
	Stored int `json:"kept"`
	// Received is how much audio has arrived.
	Received time.Duration `json:"heard"`
	// Errors are the error messages that were sent to the client since the
	// progress was last published.
	Errors []string `json:"errors,omitempty"`
	// Over says that the stream's record has its final status.
	Over bool `json:"over,omitempty"`
}

// progressSubject is not among the subjects that are stored.
func progressSubject(stream string) string { return subject("hubbub", "pulse", stream) }

// Since reads the events of a stream after an entry, 0 for all of them, and returns
// the entry that they reach to. It reads a bounded part; no messages and no error mean
// that there are no more so far.
func (s *Store) Since(ctx context.Context, stream string, after uint64) (messages [][]byte, last uint64, err error) {
	messages, end, err := s.readAfter(ctx, stream, after, sinceEntries)
	if len(messages) > 0 { // the next call returns the error
		err = nil
	}
	return messages, end.seq, s.report("follow events", err)
}

// PublishProgress sends the progress of a stream to all subscribers. It does not wait
// for them.
func (s *Store) PublishProgress(stream string, p Progress) error {
	return wrap("publish progress", s.conn.Publish(progressSubject(stream), encode(p)))
}

// SubscribeProgress calls f with all progress of a stream that arrives, one call at a
// time, until stop. f must not block.
func (s *Store) SubscribeProgress(stream string, f func(Progress)) (stop func(), err error) {
	sub, err := s.conn.Subscribe(progressSubject(stream), func(m *nats.Msg) {
		var p Progress
		if json.Unmarshal(m.Data, &p) == nil {
			f(p)
		}
	})
	if err != nil {
		return nil, wrap("subscribe to progress", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // fails only when the connection is closed
}
