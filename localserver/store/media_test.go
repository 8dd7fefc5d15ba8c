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
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubbub/protocol/testkit"
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
	w := testkit.Must(s.CreateMedia(context.Background(), account, name, at(when)))(t)
	defer w.Abort()
	testkit.Must(io.Copy(w, bytes.NewReader(body)))(t)
	return testkit.Must(w.Commit(nil))(t)
}

func get(t testing.TB, s *Store, account, name string, when time.Time) []byte {
	t.Helper()
	r := testkit.Must(s.OpenMedia(context.Background(), account, name, when))(t)
	defer func() { testkit.NoError(t, r.Close()) }()
	return testkit.Must(io.ReadAll(r))(t)
}

// chunkCount counts all chunks in the store.
func (s *Store) chunkCount(t testing.TB) uint64 {
	t.Helper()
	info := testkit.Must(s.media.chunks.Info(context.Background()))(t)
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
	w := testkit.Must(s.CreateMedia(context.Background(), "a", "x", at(noon)))(t)
	body := noise(2*mediaChunk+1000, 5)
	_, _ = w.Write(body)
	testkit.Must(w.Commit([]byte("the head of it")))(t)
	body = append([]byte("the head of it"), body...)
	r := testkit.Must(s.OpenMedia(context.Background(), "a", "x", noon))(t)
	dice := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		from := dice.IntN(len(body))
		n := dice.IntN(len(body) - from)
		testkit.Must(r.Seek(int64(from), io.SeekStart))(t)
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

// silentBucket is a bucket whose responses are lost.
type silentBucket struct{ jetstream.KeyValue }

func (silentBucket) Get(ctx context.Context, _ string) (jetstream.KeyValueEntry, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Who opens media for hours does not wait for a lost response for hours.
func TestOpenMediaWithoutAResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{onError: func(string) {}}
		s.media.names.kv = silentBucket{}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		began := time.Now()
		if _, err := s.OpenMedia(ctx, "a", "x", noon); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > mediaTimeout {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// A write that is not committed changes nothing, and leaves nothing.
func TestMediaAbort(t *testing.T) {
	s := open(t, "")
	put(t, s, "a", "x", []byte("earlier"), noon)
	w := testkit.Must(s.CreateMedia(context.Background(), "a", "x", at(noon)))(t)
	_, _ = w.Write(noise(3*mediaChunk, 1))
	if got := get(t, s, "a", "x", noon); string(got) != "earlier" {
		t.Errorf("half-way it holds %q", got)
	}
	w.Abort()
	if got := get(t, s, "a", "x", noon); string(got) != "earlier" {
		t.Errorf("afterwards it holds %q", got)
	}
	testkit.Equal(t, s.chunkCount(t), 1, "chunks are left")
	if n, err := s.SweepMedia(context.Background(), noon.Add(time.Hour)); n != 0 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
}

// cancelingPublisher is a connection whose caller is canceled while a message is in
// flight. The message arrives a while after the caller has given up.
type cancelingPublisher struct {
	jetstream.JetStream
	cancel  context.CancelFunc
	arrived chan struct{}
}

func (c *cancelingPublisher) Publish(ctx context.Context, subject string, data []byte, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	c.cancel()
	if ctx.Err() == nil {
		close(c.arrived)
		return c.JetStream.Publish(ctx, subject, data, opts...)
	}
	data = bytes.Clone(data)
	time.AfterFunc(100*time.Millisecond, func() {
		_, _ = c.JetStream.Publish(context.Background(), subject, data, opts...)
		close(c.arrived)
	})
	return nil, ctx.Err()
}

// A chunk that is in flight when a write is canceled does not arrive after Abort.
func TestCanceledMediaWriteLeavesNothing(t *testing.T) {
	s := open(t, "")
	ctx, cancel := context.WithCancel(context.Background())
	w := testkit.Must(s.CreateMedia(ctx, "a", "x", at(noon)))(t)
	late := &cancelingPublisher{s.js, cancel, make(chan struct{})}
	s.js = late
	if _, err := w.Write(noise(2*mediaChunk, 1)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.Abort()
	<-late.arrived
	if n := s.chunkCount(t); n > 0 {
		t.Errorf("%d chunks are left", n)
	}
}

// An abandoned write leaves a blob, and a replaced object may have readers: both
// blobs are removed when they expire, not before, and nothing else with them.
func TestMediaSweep(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		put(t, s, "a", "x", noise(mediaChunk, 1), noon)
		old := testkit.Must(s.OpenMedia(ctx, "a", "x", noon))(t)
		body := noise(mediaChunk+1, 2)
		put(t, s, "a", "x", body, noon)
		abandoned := testkit.Must(s.CreateMedia(ctx, "a", "y", at(noon)))(t)
		_, _ = abandoned.Write(noise(2*mediaChunk, 3))
		if n := s.chunkCount(t); n != 5 {
			t.Fatalf("%d chunks", n)
		}
		for _, c := range []struct {
			after time.Duration
			swept int
			rows  uint64
		}{{time.Minute, 0, 5}, {writeLease, 1, 3}, {readGrace - 1, 0, 3}, {readGrace, 1, 2}, {20 * time.Hour, 0, 2}} {
			if c.after == readGrace {
				if _, err := io.ReadAll(old); err != nil {
					t.Errorf("a replaced object cannot be read on: %v", err)
				}
			}
			if n, err := s.SweepMedia(ctx, noon.Add(c.after)); n != c.swept || err != nil || s.chunkCount(t) != c.rows {
				t.Errorf("after %v: swept %d, want %d; %d chunks, want %d; %v", c.after, n, c.swept, s.chunkCount(t), c.rows, err)
			}
		}
		if got := get(t, s, "a", "x", noon); !bytes.Equal(got, body) {
			t.Error("the object itself was swept")
		}
		// The abandoned writer continues too late.
		if _, err := abandoned.Commit(nil); err == nil {
			t.Error("a swept write was committed")
		}
		if _, err := s.StatMedia(ctx, "a", "y", noon); !errors.Is(err, ErrNotFound) {
			t.Errorf("and is there: %v", err)
		}
	})
}

// Of concurrent writers the last one wins, completely, and the blobs of the
// others are removed at once.
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
	testkit.Equal(t, s.chunkCount(t), 2, "chunks are left")
	if n, err := s.SweepMedia(context.Background(), noon.Add(readGrace)); n != 0 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
}

// A replaced object is removed when its last reader is done.
func TestReplacedMediaWithReaders(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		body := noise(2*mediaChunk, 1)
		put(t, s, "a", "x", body, noon)
		var readers []*MediaReader
		for range 2 {
			r := testkit.Must(s.OpenMedia(ctx, "a", "x", noon))(t)
			readers = append(readers, r)
		}
		for range 3 {
			put(t, s, "a", "x", []byte("later"), noon)
		}
		testkit.Equal(t, s.chunkCount(t), 3, "chunks with readers")
		for i, r := range readers {
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, body) {
				t.Errorf("reader %d: %d bytes, %v", i, len(got), err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		if n := s.chunkCount(t); n != 1 || len(s.media.readers) != 0 {
			t.Errorf("%d chunks afterwards, readers %v", n, s.media.readers)
		}
		if got := get(t, s, "a", "x", noon); string(got) != "later" {
			t.Errorf("x holds %d bytes", len(got))
		}
	})
}

// A reader that begins while another one ends can go on when the object is replaced.
func TestReplacedMediaWhileAReaderEnds(t *testing.T) {
	s := open(t, "")
	body := noise(2*mediaChunk, 1)
	put(t, s, "a", "x", body, noon)
	ends := testkit.Must(s.OpenMedia(t.Context(), "a", "x", noon))(t)
	var begins *MediaReader
	s.media.names.kv = &hooked{KeyValue: s.media.names.kv, read: once("", func(_ string, read func() error) error {
		begins = testkit.Must(s.OpenMedia(t.Context(), "a", "x", noon))(t)
		put(t, s, "a", "x", []byte("later"), noon)
		return read()
	})}
	testkit.NoError(t, ends.Close())
	if got, err := io.ReadAll(begins); err != nil || !bytes.Equal(got, body) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	testkit.NoError(t, begins.Close())
	testkit.Equal(t, s.chunkCount(t), 1, "chunks afterwards")
}

// Objects are kept for at least 24 hours and removed within 48.
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
	chunks := testkit.Must(s.media.chunks.Info(ctx))(t)
	names := testkit.Must(s.media.names.kv.Status(ctx))(t)
	for what, age := range map[string]time.Duration{"chunks": chunks.Config.MaxAge, "names": names.TTL()} {
		// A write may take MediaWriteTime; its first chunk has to last as long
		// as the object, its last one must be removed in time.
		if age < MediaWriteTime+MediaTTL || age >= 48*time.Hour {
			t.Errorf("%s are removed after %v", what, age)
		}
	}
}

func TestMediaStoreFull(t *testing.T) {
	s := open(t, "")
	put(t, s, "a", "x", []byte("earlier"), noon)
	w, err := s.CreateMedia(context.Background(), "a", "x", at(noon))
	testkit.NoError(t, err)
	chunk := noise(mediaChunk, 1)
	for n := 0; err == nil; n += len(chunk) {
		if n > 2*MediaMemory {
			t.Fatal("the store has no limit")
		}
		_, err = w.Write(chunk)
	}
	if !Full(err) {
		t.Errorf("full: %v", err)
	}
	if err := s.Create(context.Background(), record("s1"), "secret"); err != nil {
		t.Errorf("no room for a stream: %v", err)
	}
	w.Abort()
	testkit.Equal(t, s.chunkCount(t), 1, "chunks are left")
	put(t, s, "a", "x", []byte("later"), noon)
}

// An account with all of the storage in memory has a message of its own when it is used up.
func TestMediaMemoryIsAQuota(t *testing.T) {
	s := testkit.Must(Open(t.Context(), Options{AccountStorage: MediaMemory}))(t)
	defer func() { _ = s.Close() }()
	w, err := s.CreateMedia(t.Context(), "a", "x", at(noon))
	testkit.NoError(t, err)
	defer w.Abort()
	chunk := noise(mediaChunk, 1)
	for range MediaMemory / mediaChunk {
		if _, err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if _, err = w.Write([]byte("x")); err == nil {
		_, err = w.Commit(nil)
	}
	var q *QuotaError
	if !errors.As(err, &q) || q.Limit != MediaMemory {
		t.Error(err)
	}
}

// electing is a stream whose leader does not respond, and then does not know its newest
// messages.
type electing struct {
	jetstream.Stream
	errs []error
}

func (e *electing) GetLastMsgForSubject(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	if len(e.errs) > 0 {
		err := e.errs[0]
		e.errs = e.errs[1:]
		return nil, err
	}
	return e.Stream.GetLastMsgForSubject(ctx, subject)
}

// A write that was replaced before its outcome was known does not come back without its bytes.
func TestMediaReplacedBeforeTheOutcomeIsKnown(t *testing.T) {
	for name, replace := range map[string]func(s *Store){
		"put":    func(s *Store) { put(t, s, "a", "x", []byte("other"), noon) },
		"delete": func(s *Store) { testkit.NoError(t, s.DeleteMedia(t.Context(), "a", "x", noon)) },
	} {
		s := open(t, "")
		put(t, s, "a", "x", []byte("earlier"), noon)
		s.media.names.kv = &hooked{KeyValue: s.media.names.kv, write: once(namePrefix, func(key string, write func() error) error {
			defer replace(s)
			return lostResponse(key, write)
		})}
		put(t, s, "a", "x", []byte("content"), noon)
		if _, err := s.StatMedia(t.Context(), "a", "x", noon); name == "delete" && errors.Is(err, ErrNotFound) {
			continue
		}
		if got := get(t, s, "a", "x", noon); string(got) != "other" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// electingPublisher is a connection to a leader that does not respond to the first message.
type electingPublisher struct {
	jetstream.JetStream
	failed bool
}

func (e *electingPublisher) Publish(ctx context.Context, subject string, data []byte, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if !e.failed {
		e.failed = true
		return nil, nats.ErrNoResponders
	}
	return e.JetStream.Publish(ctx, subject, data, opts...)
}

// Objects are written, replaced and deleted during elections.
func TestMediaAreWrittenAfterAnElection(t *testing.T) {
	for _, done := range []bool{false, true} {
		s := open(t, "")
		writes := 0
		s.media.names.kv = &hooked{KeyValue: s.media.names.kv, write: func(key string, write func() error) error {
			switch writes++; {
			case writes%2 == 0:
				return write()
			case done:
				return lostResponse(key, write)
			}
			return noResponse(key, write)
		}}
		s.js = &electingPublisher{JetStream: s.js}
		for _, content := range []string{"content", "another"} {
			put(t, s, "a", "x", []byte(content), noon)
			if got := get(t, s, "a", "x", noon); string(got) != content {
				t.Errorf("%q", got)
			}
		}
		testkit.NoError(t, s.DeleteMedia(t.Context(), "a", "x", noon))
		if _, err := s.StatMedia(t.Context(), "a", "x", noon); !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
	}
}

// Reading goes on after an election.
func TestMediaAreReadAfterAnElection(t *testing.T) {
	s := open(t, "")
	put(t, s, "a", "x", []byte("content"), noon)
	s.media.chunks.Stream = &electing{s.media.chunks.Stream, []error{jetstream.ErrNoStreamResponse, nats.ErrNoResponders, jetstream.ErrMsgNotFound}}
	if got := get(t, s, "a", "x", noon); string(got) != "content" {
		t.Errorf("%q", got)
	}
}

// A replacement that is refused leaves the object: the write that comes first may fail, too.
func TestMediaAfterARefusedReplacement(t *testing.T) {
	s := open(t, "")
	put(t, s, "a", "x", []byte("content"), noon)
	failed := errors.New("no leader")
	results := []error{ErrConflict, failed}
	err := s.changeRecord(t.Context(), mediaKey("a", "x"), noon, nil, func(uint64) error {
		err := results[0]
		results = results[1:]
		return err
	})
	if !errors.Is(err, failed) {
		t.Error(err)
	}
	if got := get(t, s, "a", "x", noon); string(got) != "content" {
		t.Errorf("%q", got)
	}
}
