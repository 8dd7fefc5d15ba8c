package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// An attempt whose outcome is not known is made again or withdrawn. Neither
// burns the token, and neither lets two in.
func TestAttemptWhoseOutcomeIsNotKnown(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		if err := s.Create(ctx, record("s1"), "secret"); err != nil {
			t.Fatal(err)
		}
		begin := func(attempt string, want error) {
			t.Helper()
			if _, err := s.Begin(ctx, "s1", "secret", Opening{"n", attempt}, noon); !errors.Is(err, want) {
				t.Errorf("attempt %s: %v, want %v", attempt, err, want)
			}
		}
		begin("first", nil)
		begin("first", nil) // its answer was lost
		begin("second", ErrToken)
		if _, err := s.Begin(ctx, "s1", "wrong", Opening{"n", "first"}, noon); !errors.Is(err, ErrToken) {
			t.Errorf("a wrong token: %v", err)
		}
		if err := s.Withdraw(ctx, "s1", "second"); err != nil {
			t.Fatal(err)
		}
		if rec, err := s.Get(ctx, "s1"); err != nil || rec.Status != Running {
			t.Errorf("another attempt's withdrawal ended it: %+v %v", rec, err)
		}
		if err := s.Withdraw(ctx, "s1", "first"); err != nil {
			t.Fatal(err)
		}
		if rec, err := s.Get(ctx, "s1"); err != nil || rec.Status != Created || rec.Started != nil {
			t.Errorf("%+v %v", rec, err)
		}
		// What an attempt still has on the way comes too late.
		_, revision, err := s.get(ctx, "s1")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Withdraw(ctx, "s1", "third"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.sessions.Update(ctx, "s1", []byte("{}"), revision); !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			t.Errorf("a late write: %v", err)
		}
		begin("fourth", nil)
		begin("fifth", ErrToken)
	})
}

// A call is made again as long as its outcome is open, and no longer.
func TestInsist(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, c := range []struct {
		name    string
		answers []error
		want    error
	}{
		{"at once", []error{nil}, nil},
		{"no answer, then one", []error{context.DeadlineExceeded, nats.ErrNoResponders, errUnsettled, nil}, nil},
		{"what is certain", []error{nats.ErrTimeout, ErrConflict, nil}, ErrConflict},
		{"full", []error{&jetstream.APIError{Code: 503, ErrorCode: codeNoRoom}, nil}, &jetstream.APIError{ErrorCode: codeNoRoom}},
		{"no leader", []error{&jetstream.APIError{Code: 503, ErrorCode: 10008}, nil}, nil},
	} {
		left := c.answers
		err := insist(ctx, func(context.Context) error {
			err := left[0]
			left = left[1:]
			return err
		})
		if !errors.Is(err, c.want) || Unknown(err) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	cancel()
	err := insist(ctx, func(context.Context) error { return nats.ErrTimeout })
	if !Unknown(err) || !errors.Is(err, nats.ErrTimeout) {
		t.Errorf("without an answer: %v", err)
	}
}

// The places of an account are as many as they are, whoever asks; those of
// sessions that are over are free.
func TestPlaces(t *testing.T) {
	s := open(t, "")
	ctx := context.Background()
	if err := s.layOutPlaces(ctx, jetstream.MemoryStorage); err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		if err := s.Create(ctx, record(fmt.Sprint("s", i)), "secret"); err != nil {
			t.Fatal(err)
		}
	}
	var got atomic.Int64
	var all sync.WaitGroup
	for i := range 9 {
		all.Go(func() {
			for range 2 { // the second time changes nothing
				if ok, err := s.TakePlace(ctx, "a", fmt.Sprint("s", i), noon, 4); err != nil {
					t.Error(err)
				} else if ok {
					got.Add(1)
				}
			}
		})
	}
	all.Wait()
	if got.Load() != 8 {
		t.Errorf("%d places, want 4 for 4", got.Load())
	}
	left := func(account string, at time.Time, want bool) {
		t.Helper()
		if ok, err := s.PlacesLeft(ctx, account, at, 4); err != nil || ok != want {
			t.Errorf("room for %s: %v %v", account, ok, err)
		}
	}
	left("a", noon, false)
	left("b", noon, true)
	one := ""
	for i := range 9 { // they are opened, as far as they have a place
		id := fmt.Sprint("s", i)
		if ok, err := s.TakePlace(ctx, "a", id, noon, 4); err != nil || !ok {
			continue
		}
		if _, err := s.Begin(ctx, id, "secret", Opening{"n", id}, noon); err != nil {
			t.Fatal(err)
		}
		one = id
	}
	left("a", noon.Add(time.Hour), false) // however long they run
	if err := s.LeavePlace(ctx, "a", one); err != nil {
		t.Fatal(err)
	}
	left("a", noon, true)
	if ok, err := s.TakePlace(ctx, "a", one, noon, 4); err != nil || !ok {
		t.Errorf("%v %v", ok, err)
	}
	left("a", noon, false)
	if err := s.Finish(ctx, one, Failed, noon, "its node died"); err != nil {
		t.Fatal(err)
	}
	left("a", noon, true)
}

// Keys are known to all until they are withdrawn.
func TestSharedKeys(t *testing.T) {
	s := open(t, "")
	ctx := context.Background()
	if err := s.layOutKeys(ctx, jetstream.MemoryStorage); err != nil {
		t.Fatal(err)
	}
	var seen uint64
	check := func(want string) {
		t.Helper()
		keys, version, err := s.PublishedKeys(ctx, seen)
		if err != nil || version == seen {
			t.Fatalf("version %d, %v", version, err)
		}
		var have []string
		for _, k := range keys {
			have = append(have, k.Origin+"/"+k.ID+"="+string(k.Raw))
		}
		slices.Sort(have)
		if got := strings.Join(have, " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if keys, again, err := s.PublishedKeys(ctx, version); err != nil || again != version || keys != nil {
			t.Errorf("unchanged: %v %d %v", keys, again, err)
		}
		seen = version
	}
	check("")
	one, two := SharedKey{"a", "k1", []byte("x")}, SharedKey{"b", "k1", []byte("y")}
	if err := errors.Join(s.PublishKey(ctx, one), s.PublishKey(ctx, two)); err != nil {
		t.Fatal(err)
	}
	check("a/k1=x b/k1=y")
	if err := s.WithdrawKey(ctx, one); err != nil {
		t.Fatal(err)
	}
	check("b/k1=y")
}
