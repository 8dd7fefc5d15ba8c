package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"hubbub/protocol/testkit"
)

func TestJournalOrder(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		for i := range 20 {
			for _, stream := range []string{"s1", "s2"} {
				batch := [][]byte{fmt.Appendf(nil, `{"of":%q,"n":%d}`, stream, 2*i), fmt.Appendf(nil, `{"of":%q,"n":%d}`, stream, 2*i+1)}
				if i%2 == 0 { // the outcome may be unknown: what is stored is appended again
					testkit.NoError(t, s.Append(ctx, stream, 2*i, batch[:1+i/2%2]))
				}
				testkit.NoError(t, s.Append(ctx, stream, 2*i, batch))
			}
		}
		got, err := s.Messages(ctx, "s2")
		if err != nil || len(got) != 40 {
			t.Fatalf("%d messages, %v", len(got), err)
		}
		for i, m := range got {
			if want := fmt.Sprintf(`{"of":"s2","n":%d}`, i); string(m) != want {
				t.Fatalf("message %d is %s", i, m)
			}
		}
		if got, err := s.Messages(ctx, "s3"); err != nil || len(got) != 0 {
			t.Fatalf("unknown stream: %d messages, %v", len(got), err)
		}
	})
}

// Events after an entry are read in parts. Progress reaches all subscribers, and
// nobody after they stop.
func TestFeed(t *testing.T) {
	s := testkit.Must(Open(context.Background(), Options{}))(t)
	defer s.Close()
	ctx := context.Background()
	const entries = 2*sinceEntries + 10
	for i := range entries {
		testkit.NoError(t, s.Append(ctx, "a", 2*i, [][]byte{fmt.Appendf(nil, "%d", 2*i), fmt.Appendf(nil, "%d", 2*i+1)}))
		testkit.NoError(t, s.Append(ctx, "b", i, [][]byte{[]byte("other")}))
	}
	at, n, calls := uint64(0), 0, 0
	for {
		messages, last, err := s.Since(ctx, "a", at)
		testkit.NoError(t, err)
		if len(messages) == 0 {
			if last != at {
				t.Errorf("nothing reaches from %d to %d", at, last)
			}
			break
		}
		for _, m := range messages {
			if string(m) != fmt.Sprint(n) {
				t.Fatalf("message %d is %q", n, m)
			}
			n++
		}
		at = last
		calls++
	}
	if n != 2*entries || calls != 3 {
		t.Errorf("%d messages in %d calls", n, calls)
	}
	if m, _, err := s.Since(ctx, "nobody", 0); len(m) != 0 || err != nil {
		t.Errorf("%q %v", m, err)
	}

	first, second := make(chan Progress, 10), make(chan Progress, 10)
	stop := testkit.Must(s.SubscribeProgress("a", func(p Progress) { first <- p }))(t)
	stopSecond := testkit.Must(s.SubscribeProgress("a", func(p Progress) { second <- p }))(t)
	testkit.NoError(t, errors.Join(s.PublishProgress("b", Progress{Stored: 1}), s.PublishProgress("a", Progress{Stored: 7, Received: time.Second, Errors: []string{"e"}, Over: true})))
	for _, c := range []chan Progress{first, second} {
		if p := <-c; !reflect.DeepEqual(p, Progress{Stored: 7, Received: time.Second, Errors: []string{"e"}, Over: true}) {
			t.Errorf("%+v", p)
		}
	}
	stop()
	testkit.NoError(t, s.PublishProgress("a", Progress{Stored: 8}))
	if p := <-second; p.Stored != 8 || len(first) != 0 {
		t.Errorf("%+v, %d received after stop", p, len(first))
	}
	stopSecond()
}
