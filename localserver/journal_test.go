package localserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"hubbub/localserver/store"
)

// flaky is a store of events that can be away.
type flaky struct {
	store.Sessions
	mu    sync.Mutex
	away  bool
	tries int
	got   map[int][][]byte // batches by their first number
}

func (f *flaky) Append(_ context.Context, _ string, first int, messages [][]byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries++
	if f.got == nil {
		f.got = map[int][][]byte{}
	}
	if _, known := f.got[first]; !known { // kept, even when the answer is lost below
		f.got[first] = append([][]byte(nil), messages...)
	}
	if f.away {
		return errors.New("no answer")
	}
	return nil
}

func (f *flaky) Messages(context.Context, string) (all [][]byte, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := 0; ; {
		batch, ok := f.got[n]
		if !ok {
			return all, nil
		}
		all, n = append(all, batch...), n+len(batch)
	}
}

func (f *flaky) set(away bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = away
}

func (f *flaky) tried() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tries
}

// Answers that are lost neither lose events nor keep them twice.
func TestJournalSurvivesAnOutage(t *testing.T) {
	f := &flaky{away: true}
	j := newJournal(f, f, "s", slog.New(slog.DiscardHandler))
	go j.run()
	j.add([]byte("0"))
	eventually(t, "a try", func() bool { return f.tried() > 0 })
	for i := 1; i < 2000; i++ { // more than a batch, while the first one hangs
		j.add(fmt.Append(nil, i))
	}
	f.set(false)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := j.finish(ctx); err != nil {
		t.Fatal(err)
	}
	all, _ := f.Messages(ctx, "s")
	if len(all) != 2000 {
		t.Fatalf("%d events", len(all))
	}
	for i, m := range all {
		if string(m) != fmt.Sprint(i) {
			t.Fatalf("event %d is %s", i, m)
		}
	}
}

func TestJournalSaysWhatItLost(t *testing.T) {
	f := &flaky{away: true}
	j := newJournal(f, f, "s", slog.New(slog.DiscardHandler))
	go j.run()
	for range waitingEvents + 7 { // the store is away for long
		j.add([]byte("x"))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := j.finish(ctx); err == nil || !strings.Contains(err.Error(), fmt.Sprint(waitingEvents+7)) {
		t.Fatalf("got %v", err)
	}
}

// A store that keeps no events does not disturb the stream, but the record
// does not say done.
func TestStreamWithoutAJournal(t *testing.T) {
	h := serve(t, func(o *Options) { o.lateTimeout = 100 * time.Millisecond })
	h.Server.journal = &flaky{away: true}
	s := h.open()
	s.chunks(2)
	s.end()
	if events, code, _ := s.rest(); code != 1000 || len(events) != 2 {
		t.Errorf("code %d %q", code, raws(events))
	}
	h.becomes(s.id, "error")
}

// late is a store that does not take the end of a session at first.
type late struct {
	store.Sessions
	mu    sync.Mutex
	tries int
}

func (l *late) Finish(ctx context.Context, id string, outcome store.Status, at time.Time, cause string) error {
	l.mu.Lock()
	l.tries++
	away := l.tries == 1
	l.mu.Unlock()
	if away {
		return errors.New("no answer")
	}
	return l.Sessions.Finish(ctx, id, outcome, at, cause)
}

func TestEndOfAStreamIsTriedAgain(t *testing.T) {
	h := serve(t)
	h.Server.sessions = &late{Sessions: h.store}
	s := h.open()
	s.end()
	if _, code, _ := s.rest(); code != 1000 {
		t.Errorf("code %d", code)
	}
	h.becomes(s.id, "done")
}
