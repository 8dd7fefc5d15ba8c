package stream

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/store"
	"hubbub/localserver/stream/streamtest"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// lastState is the newest state that a watcher got.
func (c *client) lastState() protocol.StreamState {
	c.t.Helper()
	states := c.states()
	if len(states) == 0 {
		c.t.Fatal("no state")
	}
	for i, s := range states {
		if s.Status == "" || i > 0 && (s == states[i-1] || s.Timestamp < states[i-1].Timestamp) {
			c.t.Errorf("no status, nothing new, or the clock goes back: %v", states)
		}
	}
	return states[len(states)-1]
}

// Several clients watch one stream: from before its start, late, after a
// reconnection, and after its end. Each gets the sender's messages, byte for
// byte, once and in order.
func TestWatch(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.mu.Lock()
		s.records[testID] = store.Stream{ID: testID, Status: store.Created}
		s.mu.Unlock()
		early := s.watch(0)
		synctest.Wait()
		if st := early.lastState(); st.Status != protocol.StatusCreated || st.Timestamp != 0 {
			t.Errorf("before the stream: %+v", st)
		}
		sender := s.open(streamtest.ManyTurns(), func(c *Config) { c.Unpaced = true })
		sender.chunks(5)
		synctest.Wait()
		time.Sleep(progressInterval)
		synctest.Wait()
		if st := early.lastState(); st.Status != protocol.StatusRunning || st.Timestamp != 0.5 || !slices.Equal(early.own(), sender.own()) {
			t.Errorf("%+v after %q", st, early.own())
		}
		late, again, ahead := s.watch(0), s.watch(3), s.watch(100)
		synctest.Wait()
		testkit.EqualSlices(t, late.own(), sender.own(), "a late watcher got")
		sender.chunks(queuedMessages) // the past of the stream is more than that
		sender.endOfStream()
		sender.end()
		for who, w := range map[string]*client{"early": early, "late": late, "again": again, "ahead": ahead, "after": s.watch(0)} {
			code, text := w.end()
			if st := w.lastState(); code != websocket.CloseNormalClosure || text != "done" || st.Status != protocol.StatusDone {
				t.Errorf("%s: code %d %q, %+v", who, code, text, st)
			}
			want := sender.own()
			switch who {
			case "again":
				want = want[3:]
			case "ahead":
				want = nil
			}
			testkit.EqualSlices(t, w.own(), want, who)
		}
		testkit.Equal(t, s.counters.Watchers.Load(), 5, "watchers")
	})
}

// A stream that fails tells its watchers why.
func TestWatchOfAFailedStream(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		sender := s.open(streamtest.OneTurn())
		w := s.watch(0)
		sender.chunks(1)
		synctest.Wait()
		_ = sender.NetConn().Close()
		if code, text := w.end(); code != websocket.CloseNormalClosure || text != "error: connection lost" {
			t.Errorf("code %d %q", code, text)
		}
		testkit.Equal(t, len(w.own()), 2, w.own())
		<-sender.done
	})
	long := streamOver(store.Stream{Status: store.Failed, Cause: strings.Repeat("é", 100)})
	if len(long.text) > protocol.MaxCloseText || !strings.HasPrefix(long.text, "error: éé") {
		t.Errorf("%d bytes: %q", len(long.text), long.text)
	}
}

// Without progress, and with a store that fails now and then, a watcher looks by
// itself, and never reports silence that it cannot know of.
func TestWatchWithoutProgress(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.fail = func(call string) error {
			if call == "subscribe to progress" || call == "since" && s.calls[call]%2 == 0 || call == "get" && s.calls[call]%3 == 0 {
				return errUnavailable
			}
			return nil
		}
		sender := s.open(streamtest.ManyTurns(), func(c *Config) { c.Unpaced = true })
		w := s.watch(0)
		sender.chunks(4)
		time.Sleep(10 * pollInterval)
		if !slices.Equal(w.own(), sender.own()) || w.lastState().Timestamp != 0.3 { // of the newest event: no progress tells more
			t.Errorf("got %q, sent %q, %+v", w.own(), sender.own(), w.lastState())
		}
		s.setFail("since")
		sender.chunks(2)
		sender.endOfStream()
		sender.end()
		time.Sleep(2 * pollInterval) // the record says that the stream is over
		s.setFail()
		if code, text := w.end(); code != websocket.CloseNormalClosure || text != "done" || !slices.Equal(w.own(), sender.own()) {
			t.Errorf("code %d %q, got %q, sent %q", code, text, w.own(), sender.own())
		}
	})
}

// An outage of the store is in the log once for each stream and each watcher, however
// long it lasts.
func TestOutageInTheLog(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		var log bytes.Buffer
		s.log = slog.New(slog.NewTextHandler(&log, nil))
		sender := s.open(speaking("a", 0), func(c *Config) { c.Unpaced = true })
		w := s.watch(0)
		for range 2 {
			s.setFail("append", "get", "since", "put snapshot")
			for range 30 {
				sender.chunks(1)
				time.Sleep(pollInterval)
			}
			s.setFail()
			time.Sleep(pollInterval)
		}
		sender.endOfStream()
		sender.end()
		w.end()
		synctest.Wait()
		for text, want := range map[string]int{"events wait for the store": 2, "events are stored again": 2,
			"of a watched stream could not be read": 2, "the snapshot of a stream could not be stored": 1} { // it does not change
			if n := strings.Count(log.String(), text); n != want {
				t.Errorf("%q is logged %d times, want %d:\n%s", text, n, want, log.String())
			}
		}
	})
}

// A watcher that does not read is closed with a reason, and delays nobody. It
// can continue where it was.
func TestWatchThatDoesNotRead(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.begin(testID)
		const many = 200 // more than the queue
		var batch [][]byte
		for i := range many {
			batch = append(batch, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, float64(i), fmt.Sprint("S", i)).Raw)
		}
		testkit.NoError(t, s.Append(t.Context(), testID, 0, batch))
		slow := s.dial(s.watcher(0))
		quick := s.watch(0)
		synctest.Wait()
		if len(quick.own()) != many {
			t.Errorf("the other watcher got %d messages", len(quick.own()))
		}
		time.Sleep(slowTimeout + time.Second)
		if s.counters.SlowWatchers.Load() != 1 {
			t.Fatal("the slow watcher is not disconnected")
		}
		c := newClient(t, slow) // now it reads
		code, text := c.end()
		got := c.own()
		if code != websocket.CloseTryAgainLater || text == "" || len(got) == 0 || len(got) >= queuedMessages {
			t.Errorf("code %d %q after %d messages", code, text, len(got))
		}
		again := s.watch(len(got))
		synctest.Wait()
		testkit.EqualSlices(t, append(got, again.own()...), quick.own(), "the two parts are not the whole")
		_ = quick.NetConn().Close()
		_ = again.NetConn().Close()
		<-quick.done
		<-again.done
	})
}

// The other ways in which a watcher ends.
func TestHowWatchersEnd(t *testing.T) {
	const silent = "the client does not respond to pings"
	for name, c := range map[string]struct {
		do   func(s *server, w *client)
		code int
	}{
		"the server stops": {func(s *server, _ *client) { close(s.drain) }, websocket.CloseGoingAway},
		"canceled":         {func(s *server, _ *client) { s.cancel() }, websocket.CloseAbnormalClosure},
		"the record expires": {func(s *server, _ *client) {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.records, testID)
		}, websocket.CloseNormalClosure},
		silent:              {func(*server, *client) {}, websocket.CloseAbnormalClosure},
		"the client leaves": {func(_ *server, w *client) { w.sendClose(websocket.CloseNormalClosure) }, websocket.CloseNormalClosure},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				s.begin(testID)
				conn := s.dial(s.watcher(0))
				if name == silent {
					conn.SetPingHandler(func(string) error { return nil })
				}
				w := newClient(t, conn)
				synctest.Wait()
				began := time.Now()
				c.do(s, w)
				if code, _ := w.end(); code != c.code {
					t.Errorf("code %d, want %d", code, c.code)
				}
				s.running.Wait()
				if d := time.Since(began); d > readTimeout+time.Second {
					t.Errorf("it took %v", d)
				}
			})
		})
	}
}

// A panic ends the watcher only.
func TestPanicOfAWatcher(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := newClient(t, s.dial(func(conn *websocket.Conn) {
			NewWatcher(WatcherConfig{ID: testID, Log: discard, Counters: &s.counters}, conn).Run(s.ctx, s.drain) // no feed
		}))
		if code, _ := c.end(); code != websocket.CloseInternalServerErr {
			t.Errorf("code %d", code)
		}
	})
}
