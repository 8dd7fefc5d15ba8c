package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubbub/protocol/testkit"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// both runs a test against a store in memory and one on disk.
func both(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Run("memory", func(t *testing.T) { test(t, open(t, "")) })
	t.Run("disk", func(t *testing.T) { test(t, open(t, t.TempDir())) })
}

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s := testkit.Must(Open(context.Background(), Options{Dir: dir}))(t)
	t.Cleanup(func() { testkit.NoError(t, s.Close()) })
	return s
}

// deadlines counts how often it is asked for its deadline.
type deadlines struct {
	context.Context
	asked atomic.Int64
}

func (d *deadlines) Deadline() (time.Time, bool) {
	d.asked.Add(1)
	return d.Context.Deadline()
}

// A call without a deadline gets one of 5 s from the NATS client, and all of the set-up would
// have to be done in that time: a slow disk takes longer. So no call has the context of Open.
func TestOpenOnASlowDisk(t *testing.T) {
	ctx := &deadlines{Context: context.Background()}
	s := testkit.Must(Open(ctx, Options{Dir: t.TempDir()}))(t)
	testkit.NoError(t, s.Close())
	if n := ctx.asked.Load(); n != 1 { // for the deadline of the set-up
		t.Errorf("%d calls have their deadline from the context of Open, want 1", n)
	}
}

func record(id string) Stream {
	return Stream{ID: id, Account: "a", Input: json.RawMessage(`{"x":1.50}`), Expires: noon.Add(TokenTTL)}
}

func TestStreamStatus(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		if _, err := s.Get(ctx, "s1"); !errors.Is(err, ErrNotFound) {
			t.Fatalf("unknown stream: %v", err)
		}
		testkit.NoError(t, s.Create(ctx, record("s1"), "secret"))
		if err := s.Create(ctx, record("s1"), "secret"); !errors.Is(err, ErrConflict) {
			t.Fatalf("second stream of the same id: %v", err)
		}
		if err := s.Renew(ctx, "s1"); !errors.Is(err, ErrConflict) {
			t.Fatalf("renewal before the start: %v", err)
		}
		err := s.Begin(ctx, "s1", "secret", Claim{"n2", "x"}, noon.Add(time.Second))
		rec, unread := s.Get(ctx, "s1")
		if err != nil || unread != nil || rec.Status != Running || rec.Node != "n2" || !rec.Started.Equal(noon.Add(time.Second)) {
			t.Fatalf("%+v %v", rec, err)
		}
		if err := s.Begin(ctx, "s1", "secret", Claim{"n3", "y"}, noon); !errors.Is(err, ErrToken) {
			t.Fatalf("second begin: %v", err)
		}
		testkit.NoError(t, s.Renew(ctx, "s1"))
		if err := s.Finish(ctx, "s1", Running, noon, ""); !errors.Is(err, ErrConflict) {
			t.Fatalf("running is no outcome: %v", err)
		}
		testkit.NoError(t, s.Finish(ctx, "s1", Done, noon.Add(time.Minute), "over"))
		if err := s.Finish(ctx, "s1", Failed, noon, ""); !errors.Is(err, ErrConflict) {
			t.Fatalf("second finish: %v", err)
		}
		rec, err = s.Get(ctx, "s1")
		if err != nil || rec.Status != Done || rec.Cause != "over" || string(rec.Input) != `{"x":1.50}` ||
			!rec.Completed.Equal(noon.Add(time.Minute)) {
			t.Fatalf("%+v %v", rec, err)
		}
	})
}

// A stream is not completed before it has started, also if a clock was set back, or
// another node's clock is behind.
func TestCompletedAfterStarted(t *testing.T) {
	s := open(t, "")
	ctx := context.Background()
	testkit.NoError(t, s.Create(ctx, record("s1"), "secret"))
	testkit.NoError(t, s.Begin(ctx, "s1", "secret", Claim{"n1", "x"}, noon))
	testkit.NoError(t, s.Finish(ctx, "s1", Done, noon.Add(-time.Minute), "over"))
	if rec, err := s.Get(ctx, "s1"); err != nil || !rec.Completed.Equal(noon) {
		t.Errorf("%+v %v", rec, err)
	}
}

// Of many concurrent callers of a step, exactly one succeeds.
func TestConcurrentSteps(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		testkit.NoError(t, s.Create(ctx, record("s1"), "secret"))
		race := func(what string, lost error, try func(i int) error) {
			var wins atomic.Int64
			var wg sync.WaitGroup
			start := make(chan struct{})
			for i := range 50 {
				wg.Go(func() {
					<-start
					switch err := try(i); {
					case err == nil:
						wins.Add(1)
					case !errors.Is(err, lost):
						t.Errorf("%s: %v", what, err)
					}
				})
			}
			close(start)
			wg.Wait()
			if n := wins.Load(); n != 1 {
				t.Errorf("%s: %d winners", what, n)
			}
		}
		race("begin", ErrToken, func(i int) error {
			return s.Begin(ctx, "s1", "secret", Claim{fmt.Sprint("n", i), fmt.Sprint(i)}, noon)
		})
		race("finish", ErrConflict, func(int) error { return s.Finish(ctx, "s1", Done, noon, "") })
	})
}

func TestTokenOpensItsStreamOnce(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		for stream, token := range map[string]string{"s1": "one", "s2": "two"} {
			rec := record(stream)
			rec.Expires = noon.Add(time.Minute)
			testkit.NoError(t, s.Create(ctx, rec, token))
		}
		steps := []struct {
			name, stream, token string
			at                  time.Time
			want                error
		}{
			{"unknown", "s1", "three", noon, ErrToken},
			{"empty", "s1", "", noon, ErrToken},
			{"another stream's", "s1", "two", noon, ErrToken},
			{"at its expiry", "s1", "one", noon.Add(time.Minute), ErrToken},
			{"in time", "s1", "one", noon.Add(59 * time.Second), nil},
			{"again", "s1", "one", noon, ErrToken},
			{"unused by the wrong stream", "s2", "two", noon, nil},
		}
		for _, c := range steps {
			if err := s.Begin(ctx, c.stream, c.token, Claim{"n", c.name}, c.at); !errors.Is(err, c.want) {
				t.Errorf("%s: got %v, want %v", c.name, err, c.want)
			}
		}
	})
}

// onDisk reports whether a text is in a file of a folder.
func onDisk(t *testing.T, dir, text string) (found bool) {
	t.Helper()
	testkit.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			raw, _ := os.ReadFile(path) // or it was removed meanwhile
			found = found || bytes.Contains(raw, []byte(text))
		}
		return nil
	}))
	return found
}

// The token itself must not be on disk.
func TestTokenIsStoredAsHashOnly(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	const token = "a-token-that-must-not-be-found"
	testkit.NoError(t, s.Create(context.Background(), record("stream-of-the-token"), token))
	if onDisk(t, dir, token) {
		t.Error("a file contains the token")
	}
	if !onDisk(t, dir, "stream-of-the-token") {
		t.Error("the record itself was not found: this test looks in the wrong place")
	}
}

func TestRunningStreamsOfDeadNodes(t *testing.T) {
	s := open(t, "")
	ctx := context.Background()
	for _, id := range []string{"waiting", "mine", "theirs", "over"} {
		testkit.NoError(t, s.Create(ctx, record(id), "secret"))
	}
	begin := func(id, node string) {
		t.Helper()
		testkit.NoError(t, s.Begin(ctx, id, "secret", Claim{node, id}, noon))
	}
	begin("mine", "n2")
	begin("theirs", "n1")
	begin("over", "n1")
	testkit.NoError(t, s.Finish(ctx, "over", Done, noon, ""))
	left, err := s.Running(ctx, func(node string) bool { return node == "n1" })
	if err != nil || len(left) != 1 || left[0].ID != "theirs" {
		t.Errorf("%+v %v", left, err)
	}
}

// A store must not grow without bound: everything in it has a time to live.
func TestTimesToLive(t *testing.T) {
	s := shared(t, open(t, ""))
	ctx := context.Background()
	for name, want := range map[string]time.Duration{
		"KV_sessions": streamTTL, "EVENTS": eventTTL,
		"MEDIA": mediaAge, "KV_voices": snapshotTTL, "KV_media": mediaAge, "KV_counters": counterTTL,
		"KV_jobs": jobAge, "JOBS": queueAge,
		"KV_leases": leaseTTL, "KV_places": streamTTL,
		"KV_secrets": 0, "KV_keys": 0, // hold a few keys only
	} {
		stream := testkit.Must(s.js.Stream(ctx, name))(t)
		testkit.Equal(t, stream.CachedInfo().Config.MaxAge, want, name, "expires after")
	}
	names := s.js.StreamNames(ctx)
	count := 0
	for range names.Name() {
		count++
	}
	testkit.Equal(t, count, 12, "streams; is a new one without a time to live?")
}

// Records are removed: the same bucket with a time to live of a second.
func TestExpiryRemoves(t *testing.T) {
	s := open(t, "")
	ctx := context.Background()
	kv := testkit.Must(s.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "short", TTL: time.Second, Storage: jetstream.MemoryStorage}))(t)
	s.streams = bucket{kv: kv}
	testkit.NoError(t, s.Create(ctx, record("s1"), "secret"))
	testkit.Must(s.Get(ctx, "s1"))(t)
	testkit.Eventually(t, "the end of the record", func() bool {
		_, err := s.Get(ctx, "s1")
		return errors.Is(err, ErrNotFound)
	})
}

// The error hook is told of calls that fail, by name, and not of results that
// are part of normal operation.
func TestErrorHook(t *testing.T) {
	var failed []string
	s := testkit.Must(Open(context.Background(), Options{OnError: func(call string) { failed = append(failed, call) }}))(t)
	ctx := context.Background()
	testkit.NoError(t, s.Create(ctx, record("s1"), "secret"))
	_ = s.Create(ctx, record("s1"), "secret")
	_, _ = s.Get(ctx, "unknown")
	_ = s.Begin(ctx, "s1", "wrong", Claim{"n", "x"}, noon)
	_ = s.Renew(ctx, "s1")
	_, _, _ = s.Snapshot(ctx, "s1")
	_, _ = s.StatMedia(ctx, "a", "x", noon)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, _ = s.Get(canceled, "s1")
	testkit.Equal(t, len(failed), 0, "reported as failures", failed)
	testkit.NoError(t, s.Close())
	for call, f := range map[string]func() error{
		"create stream":   func() error { return s.Create(ctx, record("s2"), "secret") },
		"get stream":      func() error { _, err := s.Get(ctx, "s1"); return err },
		"begin stream":    func() error { return s.Begin(ctx, "s1", "secret", Claim{}, noon) },
		"withdraw stream": func() error { return s.Withdraw(ctx, "s1", "x") },
		"finish stream":   func() error { return s.Finish(ctx, "s1", Done, noon, "") },
		"renew stream":    func() error { return s.Renew(ctx, "s1") },
		"append events":   func() error { return s.Append(ctx, "s1", 0, [][]byte{[]byte("1")}) },
		"read events":     func() error { _, err := s.Messages(ctx, "s1"); return err },
		"follow events":   func() error { _, _, err := s.Since(ctx, "s1", 0); return err },
		"write snapshot":  func() error { return s.PutSnapshot(ctx, "s1", nil, 0) },
		"read snapshot":   func() error { _, _, err := s.Snapshot(ctx, "s1"); return err },
		"create media":    func() error { _, err := s.CreateMedia(ctx, "a", "x", time.Now); return err },
		"look up media":   func() error { _, err := s.StatMedia(ctx, "a", "x", noon); return err },
		"open media":      func() error { _, err := s.OpenMedia(ctx, "a", "x", noon); return err },
		"sweep media":     func() error { _, err := s.SweepMedia(ctx, noon); return err },
		"count":           func() error { _, err := s.Take(ctx, "k", noon, 1, time.Minute); return err },
	} {
		failed = nil
		if err := f(); err == nil || !strings.Contains(err.Error(), call) {
			t.Errorf("%s: %v", call, err)
		}
		if !slices.Equal(failed, []string{call}) {
			t.Errorf("%s is reported as %q", call, failed)
		}
	}
}

// A record that cannot be read, such as one that an earlier build has stored, is named in
// the log, once. It is as if it did not exist, and the others are found.
func TestRecordsThatCannotBeRead(t *testing.T) {
	dir, log := t.TempDir(), &bytes.Buffer{}
	s := testkit.Must(Open(t.Context(), Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(log, nil))}))(t)
	defer s.Close()
	keys := map[string]bucket{
		"broken":                s.streams,
		jobKey("a", "broken"):   s.jobs,
		mediaKey("a", "broken"): s.media.names,
		entryKey(mediaKey("a", "broken"), "broken"): s.media.names,
	}
	for key, b := range keys {
		testkit.NoError(t, b.Put(t.Context(), key, []byte("{")))
	}
	testkit.NoError(t, s.Create(t.Context(), record("s1"), "secret"))
	testkit.NoError(t, s.Begin(t.Context(), "s1", "secret", Claim{"n1", "s1"}, noon))
	testkit.NoError(t, s.CreateJob(t.Context(), job("j1")))
	put(t, s, "a", "x", []byte("x"), noon)
	for range 2 {
		if found, err := s.Running(t.Context(), func(string) bool { return true }); len(found) != 1 || err != nil {
			t.Errorf("%d streams run, %v", len(found), err)
		}
	}
	if found, err := s.ListJobs(t.Context(), "a", noon, func(Job) bool { return true }); len(found) != 1 || err != nil {
		t.Errorf("%d jobs, %v", len(found), err)
	}
	if objects, _, err := s.ListMedia(t.Context(), "a", noon); len(objects) != 1 || err != nil {
		t.Errorf("%d objects, %v", len(objects), err)
	}
	// A blob to which the record may refer is not swept.
	entry := testkit.Must(json.Marshal(unreferenced{Name: mediaKey("a", "broken"), Until: noon}))(t)
	testkit.NoError(t, s.media.names.Put(t.Context(), entryKey(mediaKey("a", "broken"), "blob"), entry))
	if n, err := s.SweepMedia(t.Context(), noon.Add(MediaTTL)); n != 1 || err != nil {
		t.Errorf("%d objects were swept, %v", n, err)
	}
	absent := map[string]error{}
	_, absent["stream"] = s.Get(t.Context(), "broken")
	absent["end of the stream"] = s.Finish(t.Context(), "broken", Failed, noon, "")
	_, revision, err := s.Job(t.Context(), "a", "broken", noon)
	absent["job"] = err
	_, absent["object"] = s.StatMedia(t.Context(), "a", "broken", noon)
	absent["deletion"] = s.DeleteMedia(t.Context(), "a", "broken", noon)
	for what, err := range absent {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	testkit.Must(s.UpdateJob(t.Context(), Job{ID: "broken", Account: "a"}, revision))(t)
	put(t, s, "a", "broken", []byte("again"), noon)
	if _, err := s.StatMedia(t.Context(), "a", "broken", noon); err != nil {
		t.Error(err)
	}
	for key := range keys {
		if n := strings.Count(log.String(), "record "+key+" "); n != 1 {
			t.Errorf("the log names %s %d times: %s", key, n, log)
		}
	}
}
