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
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%.20q is part of a subject", name)
					}
				}()
				subject("hubbub", name)
			}()
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
		testkit.Must(s.Get(ctx, id))(t)
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
