package stream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"hubbub/localserver/store"
	"hubbub/protocol/testkit"
)

// idOf is the id of a stream that a test names.
func idOf(name string) string { return uuid.NewSHA1(uuid.Nil, []byte(name)).String() }

func numbers(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func (m *memory) expect(t *testing.T, name string, status store.Status, events int) {
	t.Helper()
	rec := m.record(idOf(name))
	if rec.Status != status || rec.Completed == nil {
		t.Errorf("%s: %+v", name, rec)
	}
	stored := m.stored(idOf(name))
	if len(stored) != events {
		t.Errorf("%s: %d events, want %d", name, len(stored), events)
	}
	for i, text := range stored {
		testkit.Equal(t, text, fmt.Sprint(i), name, "event", i, "is")
	}
}

// Streams that end in an outage are delivered after it, with the time of their
// end: also by the next process on the same folder, and whatever the store had
// already.
func TestOutboxDelivers(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted=%v", restarted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, dir := newMemory(), filepath.Join(t.TempDir(), "outbox")
				var lost atomic.Int64
				for _, name := range []string{"all", "rest", "half", "none"} {
					m.begin(idOf(name))
				}
				// Of one a part is stored, and of another one more than its node knows.
				for name, n := range map[string]int{"rest": 3, "half": 5} {
					var batch [][]byte
					for _, e := range numbers(0, n) {
						batch = append(batch, []byte(e))
					}
					testkit.NoError(t, m.Append(t.Context(), idOf(name), 0, batch))
				}
				m.setFail("")
				o := OpenOutbox(m, dir, true, &lost, discard)
				at := time.Now().Add(-time.Hour).UTC()
				for _, p := range []*PendingFinish{
					{Stream: idOf("all"), Events: numbers(0, 1007), Status: store.Done, Cause: "end", At: at},
					{Stream: idOf("rest"), First: 3, Events: numbers(3, 9), Status: store.Done, Cause: "end", At: at},
					{Stream: idOf("half"), Events: numbers(0, 8), Status: store.Done, Cause: "end", At: at},
					{Stream: idOf("none"), Status: store.Failed, Cause: "lost", At: at},
				} {
					o.Add(p)
				}
				if files, _ := os.ReadDir(dir); len(files) != 4 {
					t.Errorf("%d files", len(files))
				}
				time.Sleep(time.Minute)
				if restarted {
					soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
					o.Close(soon)
					cancel()
					o = OpenOutbox(m, dir, true, &lost, discard)
				}
				testkit.Equal(t, o.Len(), 4, "wait")
				m.setFail()
				o.Close(t.Context())
				m.expect(t, "all", store.Done, 1007)
				m.expect(t, "rest", store.Done, 9)
				m.expect(t, "half", store.Done, 8)
				m.expect(t, "none", store.Failed, 0)
				if rec := m.record(idOf("all")); !rec.Completed.Equal(at) {
					t.Errorf("completed at %v, want %v", rec.Completed, at)
				}
				if files, _ := os.ReadDir(dir); len(files) != 0 || lost.Load() != 0 || o.bytes != 0 {
					t.Errorf("%d files, %d events lost, %d bytes", len(files), lost.Load(), o.bytes)
				}
			})
		})
	}
}

// The outbox is bounded; what does not fit is counted and recorded.
func TestOutboxIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.begin(idOf("in"))
		m.begin(idOf("out"))
		m.setFail("")
		var lost atomic.Int64
		o := OpenOutbox(m, "", true, &lost, discard)
		o.limit = 20
		in := o.Add(&PendingFinish{Stream: idOf("in"), Events: numbers(0, 15), Status: store.Done, At: time.Now()})
		out := o.Add(&PendingFinish{Stream: idOf("out"), Events: numbers(0, 8), Status: store.Done, At: time.Now()})
		if !in || out || lost.Load() != 8 || o.Len() != 2 {
			t.Errorf("%v %v, %d lost, %d wait", in, out, lost.Load(), o.Len())
		}
		m.setFail()
		o.Close(t.Context())
		m.expect(t, "in", store.Done, 15)
		m.expect(t, "out", store.Failed, 0)
		testkit.Equal(t, o.bytes, 0, "bytes")
	})
}

// What cannot be delivered before the outbox is closed is lost without a
// folder, and waits for the next process with one.
func TestOutboxThatIsClosedTooEarly(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			m.setFail("")
			var lost atomic.Int64
			o := OpenOutbox(m, dir, true, &lost, discard)
			o.Add(&PendingFinish{Stream: idOf("a"), Events: numbers(0, 3), Status: store.Done, At: time.Now()})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			o.Close(ctx)
			o.Close(ctx) // again
			o.Add(&PendingFinish{Stream: idOf("b"), Events: numbers(0, 2), Status: store.Done, At: time.Now()})
			want := int64(5)
			if dir != "" {
				want = 0
				if files, _ := os.ReadDir(dir); len(files) != 2 {
					t.Errorf("%d files", len(files))
				}
			}
			testkit.Equal(t, lost.Load(), want, "events lost")
		})
	}
}

// What other nodes have recorded meanwhile stays, and is counted.
func TestOutboxOfANodeConsideredDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, ctx := newMemory(), t.Context()
		m.begin(idOf("x"))
		m.begin(idOf("y"))
		if err := errors.Join(m.Append(ctx, idOf("x"), 0, [][]byte{[]byte("other")}),
			m.Finish(ctx, idOf("x"), store.Failed, time.Now(), "dead")); err != nil {
			t.Fatal(err)
		}
		var lost atomic.Int64
		o := OpenOutbox(m, "", true, &lost, discard)
		o.Add(&PendingFinish{Stream: idOf("x"), Events: numbers(0, 4), Status: store.Done, At: time.Now()})
		o.Add(&PendingFinish{Stream: idOf("y"), Events: numbers(0, 4), Status: store.Done, At: time.Now()})
		o.Add(&PendingFinish{Stream: idOf("unknown"), Status: store.Done, At: time.Now()})
		o.Close(ctx)
		if rec := m.record(idOf("x")); rec.Status != store.Failed || rec.Cause != "dead" {
			t.Errorf("%+v", rec)
		}
		m.expect(t, "y", store.Done, 4)
		if lost.Load() != 4 || o.Len() != 0 {
			t.Errorf("%d lost, %d wait", lost.Load(), o.Len())
		}
	})
}

// Damaged files are left in place and do not affect others.
func TestOutboxWithDamagedFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMemory(), t.TempDir()
		good := idOf("good")
		m.begin(good)
		for name, text := range map[string]string{"bad.json": "{", "other.json": `{"stream":"x","status":"done"}`,
			"cut.json": `{"stream":"cut","status":"done"}`, ".tmp-1": "x",
			idOf("cut") + ".json":  `{"stream":"` + idOf("cut") + `","status":"done","first":-1}`,
			idOf("open") + ".json": `{"stream":"` + idOf("open") + `","status":"running"}`,
			idOf("same") + ".json": `{"stream":"` + good + `","status":"done"}`,
			"no id.json":           `{"stream":"no id","status":"done"}`,
			good + ".json":         `{"stream":"` + good + `","events":["0"],"status":"done","at":"2026-01-01T00:00:00Z"}`} {
			testkit.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		var lost atomic.Int64
		if pending, err := (&Outbox{folder: dir}).load(); len(pending) != 1 || err == nil || strings.Contains(err.Error(), "tmp") {
			t.Errorf("%d wait (%v)", len(pending), err)
		}
		for folder, usable := range map[string]bool{"": true, filepath.Join(dir, "none"): true, filepath.Join(dir, "bad.json"): false} {
			if _, err := (&Outbox{folder: folder}).load(); (err == nil) != usable {
				t.Errorf("folder %q: %v", folder, err)
			}
		}
		OpenOutbox(m, dir, true, &lost, discard).Close(t.Context())
		m.expect(t, "good", store.Done, 1)
		if files, _ := os.ReadDir(dir); len(files) != 8 {
			t.Errorf("%d files", len(files))
		}
	})
}
