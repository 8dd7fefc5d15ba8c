package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubbub/protocol/testkit"
)

// shared gives a store the buckets that only nodes of a cluster have.
func shared(t testing.TB, s *Store) *Store {
	t.Helper()
	for _, k := range s.sharedKinds(jetstream.MemoryStorage) {
		testkit.NoError(t, s.setUpKind(t.Context(), k))
	}
	return s
}

// An attempt whose outcome is unknown is made again or withdrawn. Neither
// wastes the token, and neither opens two streams.
func TestAttemptWithUnknownOutcome(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		testkit.NoError(t, s.Create(ctx, record("s1"), "secret"))
		begin := func(attempt string, want error) {
			t.Helper()
			if err := s.Begin(ctx, "s1", "secret", Claim{"n", attempt}, noon); !errors.Is(err, want) {
				t.Errorf("attempt %s: %v, want %v", attempt, err, want)
			}
		}
		begin("first", nil)
		begin("first", nil) // its response was lost
		begin("second", ErrToken)
		if err := s.Begin(ctx, "s1", "wrong", Claim{"n", "first"}, noon); !errors.Is(err, ErrToken) {
			t.Errorf("a wrong token: %v", err)
		}
		testkit.NoError(t, s.Withdraw(ctx, "s1", "second"))
		if rec, err := s.Get(ctx, "s1"); err != nil || rec.Status != Running {
			t.Errorf("another attempt's withdrawal ended it: %+v %v", rec, err)
		}
		testkit.NoError(t, s.Withdraw(ctx, "s1", "first"))
		if rec, err := s.Get(ctx, "s1"); err != nil || rec.Status != Created || rec.Started != nil {
			t.Errorf("%+v %v", rec, err)
		}
		// A write of an earlier attempt that is still in flight fails.
		_, revision, err := read[Stream](ctx, s.streams, "s1")
		testkit.NoError(t, err)
		testkit.NoError(t, s.Withdraw(ctx, "s1", "third"))
		if _, err := s.streams.Update(ctx, "s1", []byte("{}"), revision); !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			t.Errorf("a late write: %v", err)
		}
		begin("fourth", nil)
		begin("fifth", ErrToken)
	})
}

// A call is made again as long as its outcome is unknown, and no longer.
func TestRetry(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, c := range []struct {
		name    string
		results []error
		want    error
	}{
		{"at once", []error{nil}, nil},
		{"no response, then one", []error{context.DeadlineExceeded, nats.ErrNoResponders, errRetry, nil}, nil},
		{"a known outcome", []error{nats.ErrTimeout, ErrConflict, nil}, ErrConflict},
		{"full", []error{&jetstream.APIError{Code: 503, ErrorCode: codeNoRoom}, nil}, &jetstream.APIError{ErrorCode: codeNoRoom}},
		{"the first attempt is in process", []error{nats.ErrTimeout, &jetstream.APIError{Code: 409, ErrorCode: codeInProcess}, nil}, nil},
		{"no leader", []error{&jetstream.APIError{Code: 503, ErrorCode: 10008}, nil}, nil},
	} {
		left := c.results
		err := retry(ctx, func(context.Context) error {
			err := left[0]
			left = left[1:]
			return err
		})
		if !errors.Is(err, c.want) || Unknown(err) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	cancel()
	err := retry(ctx, func(context.Context) error { return nats.ErrTimeout })
	if !Unknown(err) || !errors.Is(err, nats.ErrTimeout) {
		t.Errorf("without a response: %v", err)
	}
}

// No more streams of an account are open than its quota allows, whichever node
// asks; streams that are over do not count.
func TestQuotas(t *testing.T) {
	s := shared(t, open(t, ""))
	ctx := context.Background()
	for i := range 9 {
		testkit.NoError(t, s.Create(ctx, record(fmt.Sprint("s", i)), "secret"))
	}
	var got atomic.Int64
	var all sync.WaitGroup
	for i := range 9 {
		all.Go(func() {
			for range 2 { // the second call changes nothing
				if err := s.AcquireStream(ctx, "a", fmt.Sprint("s", i), noon, 4); err == nil {
					got.Add(1)
				} else if !errors.Is(err, ErrQuota) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	testkit.Equal(t, got.Load(), 8, "acquired")
	left := func(account string, at time.Time, want bool) {
		t.Helper()
		if err := s.StreamAvailable(ctx, account, at, 4); want && err != nil || !want && !errors.Is(err, ErrQuota) {
			t.Errorf("quota left for %s: %v", account, err)
		}
	}
	left("a", noon, false)
	left("b", noon, true)
	one := ""
	for i := range 9 { // those that have acquired are opened
		id := fmt.Sprint("s", i)
		if s.AcquireStream(ctx, "a", id, noon, 4) != nil {
			continue
		}
		testkit.NoError(t, s.Begin(ctx, id, "secret", Claim{"n", id}, noon))
		one = id
	}
	left("a", noon.Add(time.Hour), false) // however long they run
	testkit.NoError(t, s.ReleaseStream(ctx, "a", one))
	left("a", noon, true)
	testkit.NoError(t, s.AcquireStream(ctx, "a", one, noon, 4))
	left("a", noon, false)
	testkit.NoError(t, s.Finish(ctx, one, Failed, noon, "its node died"))
	left("a", noon, true)
}

// Keys are known to all until they are withdrawn.
func TestSharedKeys(t *testing.T) {
	s := shared(t, open(t, ""))
	ctx := context.Background()
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
		testkit.Equal(t, strings.Join(have, " "), want)
		if keys, again, err := s.PublishedKeys(ctx, version); err != nil || again != version || keys != nil {
			t.Errorf("unchanged: %v %d %v", keys, again, err)
		}
		seen = version
	}
	check("")
	one, two := SharedKey{"a", "k1", []byte("x")}, SharedKey{"b", "k1", []byte("y")}
	testkit.NoError(t, errors.Join(s.PublishKey(ctx, one), s.PublishKey(ctx, two)))
	check("a/k1=x b/k1=y")
	testkit.NoError(t, s.WithdrawKey(ctx, one))
	check("b/k1=y")
}

// A node that was considered dead cannot append to the events that others have
// completed, also if it has the same events or nothing was missing.
func TestAmendedJournalIsClosedToItsWriter(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		for stream, end := range map[string][]string{"another": {"end"}, "same": {"3"}, "both": {"3", "4"}, "nothing": nil} {
			for _, restarted := range []bool{false, true} {
				stream := fmt.Sprint(stream, restarted)
				stored, rest := [][]byte{[]byte("1"), []byte("2")}, [][]byte{[]byte("3"), []byte("4")}
				testkit.NoError(t, s.Append(ctx, stream, 0, stored))
				before, _ := s.tails.Load(stream)
				for range 2 { // the second time there is nothing to do
					testkit.NoError(t, s.Amend(ctx, stream, func([][]byte) (added [][]byte) {
						for _, e := range end {
							added = append(added, []byte(e))
						}
						return added
					}))
				}
				if !restarted { // the earlier writer is another process, which knows only its own writes
					s.tails.Store(stream, before)
				}
				for n := 1; n <= 2; n++ {
					if err := s.Append(ctx, stream, 2, rest[:n]); !errors.Is(err, ErrConflict) {
						t.Errorf("%s: %d more: %v", stream, n, err)
					}
				}
				got, err := s.Messages(ctx, stream)
				if want := append([]string{"1", "2"}, end...); err != nil || string(bytes.Join(got, []byte(" "))) != strings.Join(want, " ") {
					t.Errorf("%s: %q %v, want %q", stream, got, err, want)
				}
			}
		}
	})
}

// A NATS server that is in no cluster can be used, but the log says that nothing is replicated.
func TestOneNATSServer(t *testing.T) {
	n, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT,
		NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir()})
	testkit.NoError(t, err)
	n.Start()
	defer n.WaitForShutdown()
	defer n.Shutdown()
	var log bytes.Buffer
	s := testkit.Must(Open(t.Context(), Options{URL: n.ClientURL(), Logger: slog.New(slog.NewTextHandler(&log, nil))}))(t)
	testkit.NoError(t, errors.Join(s.Ping(t.Context()), s.Close()))
	if got := log.String(); strings.Count(got, "stored once") != 1 {
		t.Errorf("log: %s", got)
	}
}
