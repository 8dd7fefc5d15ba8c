package store

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubbub/protocol/testkit"
)

// skewed is a NATS stream whose entries were written at other times; 0 = now.
type skewed struct {
	jetstream.Stream
	ages map[uint64]time.Duration
}

func (s *skewed) Info(ctx context.Context, opts ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	info, err := s.Stream.Info(ctx, opts...)
	if err == nil {
		info.State.FirstTime = info.State.FirstTime.Add(-s.ages[info.State.FirstSeq])
	}
	return info, err
}

func (s *skewed) GetMsg(ctx context.Context, seq uint64, opts ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error) {
	msg, err := s.Stream.GetMsg(ctx, seq, opts...)
	if err == nil {
		msg.Time = msg.Time.Add(-s.ages[msg.Sequence])
	}
	return msg, err
}

// An entry of the future keeps nothing behind it for ever, and goes itself when it must have
// expired.
func TestSweepFuture(t *testing.T) {
	const year, old = -365 * 24 * time.Hour, streamTTL + time.Hour
	for _, c := range []struct {
		what string
		ages []time.Duration // of the entries
		left uint64          // the NATS server removes those that have expired
	}{
		{"all in order", []time.Duration{old, time.Hour, 0}, 3}, // the NATS server removes the first one
		{"nothing has expired", []time.Duration{year, year, time.Hour, 0}, 4},
		{"one has expired", []time.Duration{year, year, old, time.Hour, 0}, 3},
		{"many have", []time.Duration{year, old, old, old, old, old, 0}, 6},
		{"all have", []time.Duration{year, old, old}, 2},
		{"the clock was behind later", []time.Duration{year, time.Hour, old, old, 0}, 5},
		{"the clock is wrong now", []time.Duration{year, year, year}, 3},
	} {
		both(t, func(t *testing.T, s *Store) {
			stream := &skewed{s.streams.stream, map[uint64]time.Duration{}}
			for i, age := range c.ages {
				stream.ages[uint64(i+1)] = age
				testkit.NoError(t, s.Create(t.Context(), record(string(rune('a'+i))), "secret"))
			}
			s.streams.stream.Stream = stream
			testkit.NoError(t, s.SweepFuture(t.Context(), time.Now()))
			info := testkit.Must(stream.Stream.Info(t.Context()))(t)
			if info.State.Msgs != c.left {
				t.Errorf("%s: %d entries are left, want %d", c.what, info.State.Msgs, c.left)
			}
		})
	}
}
