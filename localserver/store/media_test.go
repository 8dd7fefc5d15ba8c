package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// noise is n bytes that are the same for the same seed.
func noise(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

func put(t testing.TB, s *Store, account, name string, body []byte, when time.Time) MediaInfo {
	t.Helper()
	w, err := s.CreateMedia(context.Background(), account, name, at(when))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if _, err := io.Copy(w, bytes.NewReader(body)); err != nil {
		t.Fatal(err)
	}
	info, err := w.Commit(nil)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func get(t testing.TB, s *Store, account, name string, when time.Time) []byte {
	t.Helper()
	r, err := s.OpenMedia(context.Background(), account, name, when)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// rows counts the chunks that are kept at all.
func (s *Store) rows(t testing.TB) uint64 {
	t.Helper()
	info, err := s.media.chunks.Info(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Msgs
}

func TestMediaComesBackAsItWas(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		for _, n := range []int{0, 1, mediaChunk - 1, mediaChunk, mediaChunk + 1, 3*mediaChunk + 17} {
			body := noise(n, uint64(n))
			if info := put(t, s, "a", "x", body, noon); info.Size != int64(n) || len(info.Sum) != 64 {
				t.Errorf("%d bytes: %+v", n, info)
			}
			if got := get(t, s, "a", "x", noon); !bytes.Equal(got, body) {
				t.Errorf("%d bytes in, %d out, or others", n, len(got))
			}
		}
	})
}

// A name is a name: nothing in it leads anywhere, and least of all to another
// account.
func TestMediaNames(t *testing.T) {
	s := open(t, "")
	names := []string{"../x", "x", "a//b", "a/b", ".", "..", "/", "*", ">", "a.b", "a b", "", "live/x", fmt.Sprint(make([]byte, 300))}
	for _, account := range []string{"a", "a1", "1:a", ""} {
		for _, name := range names {
			put(t, s, account, name, []byte(account+"|"+name), noon)
		}
	}
	for _, account := range []string{"a", "a1", "1:a", ""} {
		for _, name := range names {
			if got := get(t, s, account, name, noon); string(got) != account+"|"+name {
				t.Errorf("%q of %q holds %q", name, account, got)
			}
		}
	}
	if _, err := s.StatMedia(context.Background(), "b", "x", noon); !errors.Is(err, ErrNotFound) {
		t.Errorf("another account: %v", err)
	}
}

func TestMediaIsReadFromAnywhere(t *testing.T) {
	s := open(t, "")
	w, err := s.CreateMedia(context.Background(), "a", "x", at(noon))
	if err != nil {
		t.Fatal(err)
	}
	body := noise(2*mediaChunk+1000, 5)
	_, _ = w.Write(body)
	if _, err := w.Commit([]byte("the head of it")); err != nil {
		t.Fatal(err)
	}
	body = append([]byte("the head of it"), body...)
	r, err := s.OpenMedia(context.Background(), "a", "x", noon)
	if err != nil {
		t.Fatal(err)
	}
	dice := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		from := dice.IntN(len(body))
		n := dice.IntN(len(body) - from)
		if _, err := r.Seek(int64(from), io.SeekStart); err != nil {
			t.Fatal(err)
		}
		part := make([]byte, n)
		if _, err := io.ReadFull(r, part); err != nil || !bytes.Equal(part, body[from:from+n]) {
			t.Fatalf("%d bytes from %d: %v", n, from, err)
		}
	}
	if end, _ := r.Seek(-3, io.SeekEnd); end != int64(len(body)-3) {
		t.Errorf("three before the end is %d", end)
	}
	if _, err := r.Seek(-1, io.SeekStart); err == nil {
		t.Error("there is something before the beginning")
	}
}

// What is not committed changes nothing, and nothing of it stays.
func TestMediaAbort(t *testing.T) {
	s := open(t, "")
	put(t, s, "a", "x", []byte("earlier"), noon)
	w, err := s.CreateMedia(context.Background(), "a", "x", at(noon))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(noise(3*mediaChunk, 1))
	if got := get(t, s, "a", "x", noon); string(got) != "earlier" {
		t.Errorf("half-way it holds %q", got)
	}
	w.Abort()
	if got := get(t, s, "a", "x", noon); string(got) != "earlier" {
		t.Errorf("afterwards it holds %q", got)
	}
	if n := s.rows(t); n != 1 {
		t.Errorf("%d chunks are left", n)
	}
	if n, err := s.SweepMedia(context.Background(), noon.Add(time.Hour)); n != 0 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
}

// A writer that died leaves a row, and a replaced object has readers: both go
// when their time is over, not before, and nothing else with them.
func TestMediaSweep(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		put(t, s, "a", "x", noise(mediaChunk, 1), noon)
		old, err := s.OpenMedia(ctx, "a", "x", noon)
		if err != nil {
			t.Fatal(err)
		}
		body := noise(mediaChunk+1, 2)
		put(t, s, "a", "x", body, noon)
		dead, err := s.CreateMedia(ctx, "a", "y", at(noon))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = dead.Write(noise(2*mediaChunk, 3))
		dead.land(0)
		if n := s.rows(t); n != 5 {
			t.Fatalf("%d chunks", n)
		}
		for _, c := range []struct {
			after time.Duration
			swept int
			rows  uint64
		}{{time.Minute, 0, 5}, {uploadLease, 1, 3}, {readGrace - 1, 0, 3}, {readGrace, 1, 2}, {20 * time.Hour, 0, 2}} {
			if c.after == readGrace {
				if _, err := io.ReadAll(old); err != nil {
					t.Errorf("a replaced object cannot be read on: %v", err)
				}
			}
			if n, err := s.SweepMedia(ctx, noon.Add(c.after)); n != c.swept || err != nil || s.rows(t) != c.rows {
				t.Errorf("after %v: swept %d, want %d; %d chunks, want %d; %v", c.after, n, c.swept, s.rows(t), c.rows, err)
			}
		}
		if got := get(t, s, "a", "x", noon); !bytes.Equal(got, body) {
			t.Error("the object itself was swept")
		}
		// The dead one wakes up too late.
		if _, err := dead.Commit(nil); err == nil {
			t.Error("a swept write was committed")
		}
		if _, err := s.StatMedia(ctx, "a", "y", noon); !errors.Is(err, ErrNotFound) {
			t.Errorf("and is there: %v", err)
		}
	})
}

// Of writers that race the last one wins, whole, and the rows of the others
// are swept.
func TestMediaWritersRace(t *testing.T) {
	s := open(t, "")
	bodies := make([][]byte, 8)
	var all sync.WaitGroup
	for i := range bodies {
		bodies[i] = noise(2*mediaChunk, uint64(i))
		all.Go(func() { put(t, s, "a", "x", bodies[i], noon) })
	}
	all.Wait()
	got := get(t, s, "a", "x", noon)
	if !slices.ContainsFunc(bodies, func(b []byte) bool { return bytes.Equal(b, got) }) {
		t.Error("what is there is of more than one writer")
	}
	if n, err := s.SweepMedia(context.Background(), noon.Add(readGrace)); n != len(bodies)-1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	if n := s.rows(t); n != 2 {
		t.Errorf("%d chunks are left", n)
	}
}

// The promise: at least 24 hours, and gone within 48.
func TestMediaRetention(t *testing.T) {
	s := open(t, "")
	put(t, s, "a", "x", []byte("body"), noon)
	ctx := context.Background()
	for after, there := range map[time.Duration]bool{0: true, 24 * time.Hour: true, MediaTTL - 1: true, MediaTTL: false, 48 * time.Hour: false} {
		_, err := s.StatMedia(ctx, "a", "x", noon.Add(after))
		_, errOpen := s.OpenMedia(ctx, "a", "x", noon.Add(after))
		if (err == nil) != there || (errOpen == nil) != there {
			t.Errorf("after %v: %v, %v", after, err, errOpen)
		}
	}
	chunks, err := s.media.chunks.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	names, err := s.media.names.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for what, age := range map[string]time.Duration{"chunks": chunks.Config.MaxAge, "names": names.TTL()} {
		// A write may last MediaWriteTime; its first byte must outlive the
		// reading, its last be gone in time.
		if age < MediaWriteTime+MediaTTL || age >= 48*time.Hour {
			t.Errorf("%s leave after %v", what, age)
		}
	}
}

func TestMediaStoreFull(t *testing.T) {
	s := open(t, "")
	put(t, s, "a", "x", []byte("earlier"), noon)
	w, err := s.CreateMedia(context.Background(), "a", "x", at(noon))
	if err != nil {
		t.Fatal(err)
	}
	chunk := noise(mediaChunk, 1)
	for n := 0; err == nil; n += len(chunk) {
		if n > 2*mediaMemory {
			t.Fatal("the store has no bottom")
		}
		_, err = w.Write(chunk)
	}
	if !errors.Is(err, ErrFull) {
		t.Errorf("full: %v", err)
	}
	if err := s.Create(context.Background(), record("s1"), "secret"); err != nil {
		t.Errorf("no room for a session: %v", err)
	}
	w.Abort()
	if n := s.rows(t); n != 1 {
		t.Errorf("%d chunks are left", n)
	}
	put(t, s, "a", "x", []byte("later"), noon)
}

// answered is what the store says of a chunk, when it does.
type answered struct {
	jetstream.PubAckFuture
	ok  chan *jetstream.PubAck
	err chan error
}

func (a answered) Ok() <-chan *jetstream.PubAck { return a.ok }
func (a answered) Err() <-chan error            { return a.err }

// A chunk that lands late, behind one that was refused, must not stay.
func TestMediaAbortWaitsForWhatIsOnTheWay(t *testing.T) {
	s := open(t, "")
	ctx := context.Background()
	w, err := s.CreateMedia(ctx, "a", "x", at(noon))
	if err != nil {
		t.Fatal(err)
	}
	refused := answered{err: make(chan error, 1)}
	refused.err <- errors.New("no room")
	late, landed := answered{ok: make(chan *jetstream.PubAck, 1), err: make(chan error, 1)}, make(chan error, 1)
	w.flight = []chunkOnTheWay{{ack: refused}, {ack: late}}
	time.AfterFunc(200*time.Millisecond, func() {
		_, err := s.js.Publish(ctx, chunkSubject(w.object, 1), []byte("late"))
		landed <- err
		late.ok <- nil
	})
	w.Abort()
	if err := <-landed; err != nil {
		t.Fatal(err)
	}
	if n := s.rows(t); n != 0 {
		t.Errorf("%d chunks are left", n)
	}
}

func TestCountersSlide(t *testing.T) {
	s := open(t, "")
	ctx := context.Background()
	take := func(key string, after time.Duration) Count {
		t.Helper()
		c, err := s.Take(ctx, key, noon.Add(after), 1, 3, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for i, c := range []struct {
		after time.Duration
		taken int
		used  int
		reset time.Duration
	}{
		{0, 1, 1, time.Minute}, {10 * time.Second, 1, 2, time.Minute}, {59 * time.Second, 1, 3, time.Minute},
		{59 * time.Second, 0, 3, time.Minute},
		// No minute has more than three, also not one that lies across.
		{time.Minute, 1, 3, 70 * time.Second},
		{61 * time.Second, 0, 3, 70 * time.Second}, {70 * time.Second, 1, 3, 119 * time.Second},
	} {
		got := take("k", c.after)
		if got.Taken != c.taken || got.Used != c.used || !got.Reset.Equal(noon.Add(c.reset)) {
			t.Errorf("%d: after %v %+v", i, c.after, got)
		}
	}
	if c := take("other", 0); c.Taken != 1 || c.Used != 1 {
		t.Errorf("another key: %+v", c)
	}
}

func TestCountersAreExact(t *testing.T) {
	s := open(t, "")
	var mu sync.Mutex
	var all sync.WaitGroup
	taken := 0
	for range 4 {
		all.Go(func() {
			for i := range 10 {
				c, err := s.Take(context.Background(), "k", noon, 1+i%3, 25, time.Minute)
				mu.Lock()
				if err != nil {
					t.Error(err)
				}
				taken += c.Taken
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if taken != 25 {
		t.Errorf("%d of 76 were let through, want 25", taken)
	}
}

func TestSecretIsDrawnOnce(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(context.Background(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	drawn := make([][]byte, 8)
	var all sync.WaitGroup
	for i := range drawn {
		all.Go(func() { drawn[i], _ = s.Secret(context.Background(), "x") })
	}
	all.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := open(t, dir).Secret(context.Background(), "x")
	if err != nil || len(again) != 32 {
		t.Fatal(again, err)
	}
	for _, d := range drawn {
		if !bytes.Equal(d, again) {
			t.Error("two secrets of one name")
		}
	}
}

func BenchmarkMediaWrite(b *testing.B) {
	s := open(b, b.TempDir())
	chunk := noise(mediaChunk, 1)
	b.SetBytes(mediaChunk)
	w, err := s.CreateMedia(context.Background(), "a", "x", time.Now)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := w.Write(chunk); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := w.Commit(nil); err != nil {
		b.Fatal(err)
	}
}
