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
			if to := subject("hubbub", name); to != "hubbub."+hashOf(name) {
				t.Errorf("%.20q is part of the subject %.40q", name, to)
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

// Records that this program has not written, perhaps of a backup that was changed, end no
// server, and cost no other record.
func TestOddRecords(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		for _, odd := range []string{"", "a.b", "a b", "a/b", "*", ">", "é", strings.Repeat("A", 129)} {
			put(t, s, "a", "x", []byte("content"), noon)
			for _, name := range []string{"read", "expired"} {
				rec := mediaRecord{MediaInfo: MediaInfo{Name: name, Size: 4, Written: noon}, Blob: odd}
				if name == "expired" {
					rec.Written = noon.Add(-MediaTTL)
				}
				testkit.NoError(t, s.media.names.Put(ctx, mediaKey("a", name), encode(rec)))
			}
			testkit.NoError(t, s.media.names.Put(ctx, entryKey(mediaKey("a", "x"), "b"), encode(unreferenced{Name: odd, Until: noon})))
			stream := Stream{ID: odd, Status: Running}
			testkit.NoError(t, s.streams.Put(ctx, "s1", encode(stream)))
			for _, key := range []string{"n.é", "l.a.a/b", "l.a.é"} {
				_, err := s.js.Publish(ctx, s.media.names.prefix+key, encode(unreferenced{Until: noon}))
				testkit.NoError(t, err)
			}

			r, err := s.OpenMedia(ctx, "a", "read", noon)
			testkit.NoError(t, err)
			r.ctx = ended(t)
			if _, err = r.Read(make([]byte, 1)); err == nil {
				t.Errorf("%.20q: a blob", odd)
			}
			_, _, err = s.ListMedia(ctx, "a", noon)
			testkit.NoError(t, err)
			testkit.NoError(t, s.DeleteMedia(ctx, "a", "read", noon))
			_, err = s.SweepMedia(ctx, noon)
			testkit.NoError(t, err)
			if keys, err := s.media.names.keys(ctx, "n.>"); err != nil || len(keys) != 3 { // a marker, x, and what cannot be read
				t.Errorf("%.20q: %q %v", odd, keys, err)
			}
			if got := get(t, s, "a", "x", noon); string(got) != "content" {
				t.Errorf("%.20q: %q", odd, got)
			}

			if found, err := s.Running(ctx, func(string) bool { return true }); len(found) != 1 || err != nil {
				t.Errorf("%.20q: %v %v", odd, found, err)
			}
			if _, _, err = s.Snapshot(ctx, odd); !errors.Is(err, ErrNotFound) {
				t.Errorf("%.20q: %v", odd, err)
			}
			testkit.NoError(t, s.Amend(ctx, odd, func([][]byte) [][]byte { return nil }))
			if err := s.Finish(ctx, odd, Done, noon, ""); !errors.Is(err, ErrNotFound) {
				t.Errorf("%.20q: %v", odd, err)
			}
		}
	})
}

// ended is a context that has ended.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
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
