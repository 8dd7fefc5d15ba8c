package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubbub/protocol/testkit"
)

// Of all writes that are bound to one permit one is committed.
func TestPermitIsUsedOnce(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		write := func() (*MediaWriter, error) {
			w, err := s.CreateMedia(ctx, "a", "x", at(noon))
			if err != nil {
				return nil, err
			}
			w.Bind("permit")
			_, err = w.Write(noise(1000, 1))
			return w, err
		}
		abandoned := testkit.Must(write())(t)
		abandoned.Abort()
		if used, err := s.MediaUsed(ctx, "permit"); used || err != nil {
			t.Errorf("used up by an abandoned write: %v %v", used, err)
		}
		var committed atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				w, err := write()
				if err != nil {
					t.Error(err)
					return
				}
				defer w.Abort()
				switch _, err := w.Commit(nil); {
				case err == nil:
					committed.Add(1)
				case !errors.Is(err, ErrUsed):
					t.Error(err)
				}
			})
		}
		all.Wait()
		if used, err := s.MediaUsed(ctx, "permit"); !used || err != nil || committed.Load() != 1 {
			t.Errorf("used %v, %v; %d writes committed", used, err, committed.Load())
		}
		testkit.Equal(t, s.chunkCount(t), 1, "chunks are left")
	})
}

// A permit that another write has claimed, and may still use up, cannot be claimed.
func TestClaimedPermit(t *testing.T) {
	s := open(t, "")
	claimed := fmt.Appendf(nil, `{"blob":"of another","at":%q}`, time.Now().Format(time.RFC3339))
	testkit.NoError(t, s.media.names.Put(t.Context(), permitPrefix+"permit", claimed))
	w := testkit.Must(s.CreateMedia(t.Context(), "a", "x", at(noon)))(t)
	defer w.Abort()
	w.Bind("permit")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := w.claim(ctx); !Unknown(err) {
		t.Errorf("the claim of another: %v", err)
	}
}

// A permit that cannot be read may be used up.
func TestUnreadablePermit(t *testing.T) {
	s := open(t, "")
	testkit.NoError(t, s.media.names.Put(t.Context(), permitPrefix+"permit", []byte("{")))
	if used, err := s.MediaUsed(t.Context(), "permit"); !used || err != nil {
		t.Errorf("used %v, %v", used, err)
	}
}

// A claim that was neither used nor given back, because its server has died, is taken over.
func TestAbandonedClaimOfAPermit(t *testing.T) {
	s := open(t, "")
	ctx := context.Background()
	testkit.NoError(t, s.media.names.Put(ctx, permitPrefix+"permit", []byte(`{"blob":"of another","at":"2026-01-01T00:00:00Z"}`)))
	w := testkit.Must(s.CreateMedia(ctx, "a", "x", at(noon)))(t)
	w.Bind("permit")
	if _, err := w.Commit(nil); err != nil {
		t.Error(err)
	}
	if used, err := s.MediaUsed(ctx, "permit"); !used || err != nil {
		t.Errorf("used %v, %v", used, err)
	}
}

// A permit is looked up, and a record replaced, also during an election.
func TestMediaDuringAnElection(t *testing.T) {
	s := open(t, "")
	names := s.media.names.kv
	s.media.names.kv = &hooked{KeyValue: names, read: once("", noResponse)}
	if used, err := s.MediaUsed(t.Context(), "permit"); used || err != nil {
		t.Errorf("used %v, %v", used, err)
	}
	w := testkit.Must(s.CreateMedia(t.Context(), "a", "x", at(noon)))(t)
	s.media.names.kv = &hooked{KeyValue: names, read: once("", noResponse)}
	testkit.Must(w.Commit(nil))(t)
}
