package localserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"hubbub/localserver/store"
)

// away is a store that can be reached or not.
type away struct {
	*store.Store
	gone atomic.Bool
}

var errAway = errors.New("away")

func (a *away) Append(ctx context.Context, id string, first int, messages [][]byte) error {
	if a.gone.Load() {
		return errAway
	}
	return a.Store.Append(ctx, id, first, messages)
}

func (a *away) Finish(ctx context.Context, id string, outcome store.Status, at time.Time, cause string) error {
	if a.gone.Load() {
		return errAway
	}
	return a.Store.Finish(ctx, id, outcome, at, cause)
}

// running makes a session that runs.
func (a *away) running(t *testing.T, id string) {
	t.Helper()
	ctx, now := context.Background(), time.Now()
	rec := store.Session{ID: id, Node: "n", Input: []byte("{}"), Expires: now.Add(time.Minute)}
	if err := a.Create(ctx, rec, "secret"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Begin(ctx, id, "secret", store.Opening{Node: "n", Attempt: id}, now); err != nil {
		t.Fatal(err)
	}
}

func (a *away) expect(t *testing.T, id string, status store.Status, events int) {
	t.Helper()
	ctx := context.Background()
	rec, err := a.Get(ctx, id)
	if err != nil || rec.Status != status || rec.Completed == nil {
		t.Errorf("%s: %+v %v", id, rec, err)
	}
	kept, err := a.Messages(ctx, id)
	if err != nil || len(kept) != events {
		t.Errorf("%s: %d events, want %d; %v", id, len(kept), events, err)
	}
	for i, m := range kept {
		if string(m) != fmt.Sprint(i) {
			t.Errorf("%s: event %d is %s", id, i, m)
		}
	}
}

func newAway(t *testing.T) *away {
	t.Helper()
	s, err := store.Open(context.Background(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &away{Store: s}
}

// mailbox starts an outbox on a store.
func mailbox(a *away, folder string, lost *atomic.Int64) *outbox {
	o := newOutbox(a, a, folder, lost, slog.New(slog.DiscardHandler))
	ctx, cut := context.WithCancel(context.Background())
	o.cut = cut
	_ = o.load()
	go o.run(ctx)
	return o
}

func events(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func inTime() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// What ended in an outage is told when it is over, at the time at which it was:
// also by the next run on the same folder, and whatever was known already.
func TestOutboxDelivers(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted=%v", restarted), func(t *testing.T) {
			a, dir := newAway(t), filepath.Join(t.TempDir(), "outbox")
			var lost atomic.Int64
			for _, id := range []string{"all", "rest", "half", "none"} {
				a.running(t, id)
			}
			// Of one a part is kept, and of another one more than its node knows.
			for id, n := range map[string]int{"rest": 3, "half": 5} {
				var batch [][]byte
				for _, e := range events(0, n) {
					batch = append(batch, []byte(e))
				}
				if err := a.Store.Append(context.Background(), id, 0, batch); err != nil {
					t.Fatal(err)
				}
			}
			a.gone.Store(true)
			o := mailbox(a, dir, &lost)
			at := time.Now().Add(-time.Hour).UTC()
			for _, r := range []*remains{
				{Stream: "all", Events: events(0, 2*batchEvents+7), Status: store.Done, Cause: "end", At: at},
				{Stream: "rest", First: 3, Events: events(3, 9), Status: store.Done, Cause: "end", At: at},
				{Stream: "half", Trying: 5, Events: events(0, 8), Status: store.Done, Cause: "end", At: at},
				{Stream: "none", Status: store.Failed, Cause: "lost", At: at},
			} {
				o.put(r)
			}
			if files, _ := os.ReadDir(dir); len(files) != 4 {
				t.Errorf("%d files", len(files))
			}
			if restarted {
				soon, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
				o.close(soon)
				cancel()
				o = mailbox(a, dir, &lost)
			}
			if n := o.count(); n != 4 {
				t.Errorf("%d wait", n)
			}
			a.gone.Store(false)
			ctx, cancel := inTime()
			defer cancel()
			o.close(ctx)
			a.expect(t, "all", store.Done, 2*batchEvents+7)
			a.expect(t, "rest", store.Done, 9)
			a.expect(t, "half", store.Done, 8)
			a.expect(t, "none", store.Failed, 0)
			if rec, _ := a.Get(ctx, "all"); !rec.Completed.Equal(at) {
				t.Errorf("completed at %v, want %v", rec.Completed, at)
			}
			if files, _ := os.ReadDir(dir); len(files) != 0 || lost.Load() != 0 || o.bytes != 0 {
				t.Errorf("%d files, %d events lost, %d bytes", len(files), lost.Load(), o.bytes)
			}
		})
	}
}

// There is a bound, and what is beyond it is counted and said in the record.
func TestOutboxIsBounded(t *testing.T) {
	a := newAway(t)
	a.running(t, "in")
	a.running(t, "out")
	a.gone.Store(true)
	var lost atomic.Int64
	o := mailbox(a, "", &lost)
	o.limit = 20
	o.put(&remains{Stream: "in", Events: events(0, 15), Status: store.Done, At: time.Now()})
	o.put(&remains{Stream: "out", Events: events(0, 8), Status: store.Done, At: time.Now()})
	if lost.Load() != 8 || o.count() != 2 {
		t.Errorf("%d lost, %d wait", lost.Load(), o.count())
	}
	a.gone.Store(false)
	ctx, cancel := inTime()
	defer cancel()
	o.close(ctx)
	a.expect(t, "in", store.Done, 15)
	a.expect(t, "out", store.Failed, 0)
}

// Others have ended the stream meanwhile: that stands, and is counted.
func TestOutboxOfANodeThoughtDead(t *testing.T) {
	a := newAway(t)
	a.running(t, "x")
	a.running(t, "y")
	ctx, cancel := inTime()
	defer cancel()
	if err := errors.Join(a.Store.Append(ctx, "x", 0, [][]byte{[]byte("other")}),
		a.Store.Finish(ctx, "x", store.Failed, time.Now(), deadNode)); err != nil {
		t.Fatal(err)
	}
	var lost atomic.Int64
	o := mailbox(a, "", &lost)
	o.put(&remains{Stream: "x", Events: events(0, 4), Status: store.Done, At: time.Now()})
	o.put(&remains{Stream: "y", Events: events(0, 4), Status: store.Done, At: time.Now()})
	o.put(&remains{Stream: "never was", Status: store.Done, At: time.Now()})
	o.close(ctx)
	if rec, _ := a.Get(ctx, "x"); rec.Status != store.Failed || rec.Cause != deadNode {
		t.Errorf("%+v", rec)
	}
	a.expect(t, "y", store.Done, 4)
	if lost.Load() != 4 || o.count() != 0 {
		t.Errorf("%d lost, %d wait", lost.Load(), o.count())
	}
}

// Files that are damaged are left where they are and disturb no others.
func TestOutboxWithDamagedFiles(t *testing.T) {
	a, dir := newAway(t), t.TempDir()
	a.running(t, "good")
	for name, text := range map[string]string{"bad.json": "{", "other.json": `{"stream":"x","status":"done"}`,
		"cut.json": `{"stream":"cut","status":"done","trying":3}`, ".tmp-1": "x",
		"good.json": `{"stream":"good","events":["0"],"status":"done","at":"2026-01-01T00:00:00Z"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var lost atomic.Int64
	o := newOutbox(a, a, dir, &lost, slog.New(slog.DiscardHandler))
	if err := o.load(); err == nil || o.count() != 1 {
		t.Errorf("%d, %v", o.count(), err)
	}
	ctx, cut := context.WithCancel(context.Background())
	o.cut = cut
	go o.run(ctx)
	soon, cancel := inTime()
	defer cancel()
	o.close(soon)
	a.expect(t, "good", store.Done, 1)
	if files, _ := os.ReadDir(dir); len(files) != 4 {
		t.Errorf("%d files", len(files))
	}
}
