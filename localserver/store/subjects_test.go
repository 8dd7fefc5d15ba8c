package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hubbub/protocol/testkit"
)

// No name that could break the connection becomes part of a subject, and the
// store responds afterwards.
func TestOddNamesReachNoSubject(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		for _, name := range []string{"", ".", "*", ">", "a.b", "a b", "a\r\nPING", "a\x00", "é", "$JS", "a..b", "a.", strings.Repeat("A", 129), strings.Repeat("A", 4020), strings.Repeat("A", 1<<21)} {
			_, err := s.Get(ctx, name)
			errs := map[string]error{"get": err}
			err = s.Begin(ctx, name, "t", Claim{}, time.Now())
			errs["begin"] = err
			errs["withdraw"] = s.Withdraw(ctx, name, "a")
			errs["finish"] = s.Finish(ctx, name, Done, time.Now(), "")
			errs["renew"] = s.Renew(ctx, name)
			errs["append"] = s.Append(ctx, name, 0, [][]byte{[]byte("1")})
			errs["amend"] = s.Amend(ctx, name, func([][]byte) [][]byte { return [][]byte{[]byte("1")} })
			_, err = s.Messages(ctx, name)
			errs["messages"] = err
			_, _, err = s.Since(ctx, name, 0)
			errs["since"] = err
			errs["publish progress"] = s.PublishProgress(name, Progress{})
			_, err = s.SubscribeProgress(name, func(Progress) {})
			errs["subscribe to progress"] = err
			_, _, err = s.Snapshot(ctx, name)
			errs["snapshot"] = err
			for call, err := range errs {
				if !errors.Is(err, ErrNotFound) {
					t.Errorf("%s of %.20q: %v", call, name, err)
				}
			}
			if name != "a.b" { // a key may have several elements
				if err := s.Create(ctx, Stream{ID: name}, "t"); err == nil {
					t.Errorf("stream %.20q was created", name)
				}
				if err := s.PutSnapshot(ctx, name, nil, 0); !errors.Is(err, ErrNotFound) {
					t.Errorf("put snapshot of %.20q: %v", name, err)
				}
				if _, err := s.Secret(ctx, name); err == nil {
					t.Errorf("there is a secret %.20q", name)
				}
			}
			// Accounts, counters and media have names of any kind.
			if _, err := s.Take(ctx, name, time.Now(), 10, time.Minute); err != nil {
				t.Errorf("count %.20q: %v", name, err)
			}
			if _, err := s.StatMedia(ctx, name, name, time.Now()); !errors.Is(err, ErrNotFound) {
				t.Errorf("media %.20q: %v", name, err)
			}
			if err := s.Ping(ctx); err != nil || s.Err() != nil {
				t.Fatalf("after %.20q: %v %v", name, err, s.Err())
			}
		}
	})
}

// A connection that breaks is made again, also to the embedded server.
func TestBrokenConnectionIsMadeAgain(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := context.Background()
	for _, id := range []string{"a", "b"} {
		testkit.NoError(t, s.Create(ctx, record(id), "secret"))
		testkit.NoError(t, s.conn.ForceReconnect())
		if _, err := s.Get(ctx, id); err != nil {
			t.Fatal(err)
		}
		testkit.NoError(t, s.Append(ctx, id, 0, [][]byte{[]byte("1")}))
	}
	if s.Err() != nil {
		t.Error(s.Err())
	}
}

// A connection that is closed by anything but Close is reported.
func TestLostConnectionIsReported(t *testing.T) {
	s := open(t, "")
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	s.conn.Close()
	select {
	case <-s.Lost():
	case <-time.After(10 * time.Second):
		t.Fatal("the loss is not reported")
	}
	if s.Err() == nil {
		t.Error("a store without connection has no error")
	}
	s = open(t, "")
	testkit.NoError(t, s.Close())
	select {
	case <-s.Lost():
		t.Error("a store that was closed is lost")
	case <-time.After(50 * time.Millisecond):
	}
}
