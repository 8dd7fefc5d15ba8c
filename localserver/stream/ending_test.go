package stream

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/store"
	"hubbub/localserver/stream/streamtest"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// ended closes a stream that has two events and expects a close code, and an
// error message before 1011. It returns how long its close frame took.
func ended(t *testing.T, c *client, want int) time.Duration {
	t.Helper()
	c.chunks(2)
	c.endOfStream()
	began := time.Now()
	code, _ := c.end()
	messages := "+00@20ms -00@200ms"
	if want == websocket.CloseInternalServerErr {
		messages += " " + notRecorded.message
	}
	if got := protocoltest.Brief(c.received()); code != want || got != messages {
		t.Errorf("code %d, %s", code, got)
	}
	return time.Since(began)
}

// A store that takes no events does not disturb the stream, but neither the
// close nor the record says that all is well.
func TestStoreThatTakesNoEvents(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.setFail("append")
		c := s.open(streamtest.OneTurn())
		if d := ended(t, c, websocket.CloseInternalServerErr); d > 2*time.Second {
			t.Errorf("the close frame came after %v", d)
		}
		s.running.Wait()
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.outbox.Close(ctx)
		expectRecord(t, s, store.Running, "") // the next start ends it
		// The responses were lost, but the events were not: they are not counted
		// as stored.
		testkit.Equal(t, s.counters.Lost.Load(), 2, "events lost")
	})
}

// A store that is back gets the events, and the record reads done.
func TestStoreThatIsLate(t *testing.T) {
	for _, calls := range [][]string{{"append", "finish"}, {"append"}, {"finish"}} {
		bubble(t, func(t *testing.T, s *server) {
			s.setFail(calls...)
			c := s.open(streamtest.OneTurn())
			ended(t, c, websocket.CloseInternalServerErr)
			s.running.Wait()
			time.Sleep(time.Minute)
			expectRecord(t, s, store.Running, "")
			s.setFail()
			time.Sleep(2 * retryInterval)
			expectRecord(t, s, store.Done, endOfStream.cause)
			if n := len(s.stored(testID)); n != 2 || s.counters.Lost.Load() != 0 {
				t.Errorf("%v: %d events are stored, %d lost", calls, n, s.counters.Lost.Load())
			}
		})
	}
}

// A store that takes the end of a stream at the third attempt is in time for a
// close with 1000, which says that the record is stored.
func TestEndIsRetriedBeforeTheClose(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.setFail("finish")
		c := s.open(streamtest.OneTurn())
		go func() {
			time.Sleep(retryInterval + retryInterval/2)
			s.setFail()
		}()
		ended(t, c, websocket.CloseNormalClosure)
		expectRecord(t, s, store.Done, endOfStream.cause)
	})
}

// An outbox that cannot write to its folder does not make the end durable.
func TestEndInAnOutboxWithoutDisk(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		var lost atomic.Int64
		folder := filepath.Join(t.TempDir(), "file", "outbox")
		testkit.NoError(t, os.WriteFile(filepath.Dir(folder), nil, 0o600))
		s.outbox.Close(t.Context())
		s.outbox = OpenOutbox(s.memory, folder, true, &lost, discard)
		s.setFail("append", "finish")
		ended(t, s.open(streamtest.OneTurn()), websocket.CloseInternalServerErr)
		s.setFail()
		s.outbox.Close(t.Context())
		expectRecord(t, s, store.Done, endOfStream.cause)
	})
}

// On a shared store the outbox takes what the store does not, before the client
// gets its close frame.
func TestEndGoesToTheOutbox(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		var lost atomic.Int64
		s.outbox.Close(t.Context())
		s.outbox = OpenOutbox(s.memory, "", true, &lost, discard)
		s.setFail("append", "finish")
		c := s.open(streamtest.OneTurn())
		if d := ended(t, c, websocket.CloseNormalClosure); d > 2*time.Second || s.outbox.Len() != 1 {
			t.Errorf("the close frame came after %v; %d streams wait", d, s.outbox.Len())
		}
		s.running.Wait()
		time.Sleep(time.Minute)
		testkit.Equal(t, s.outbox.Len(), 1, "the outbox does not wait for the store")
		s.setFail()
		s.outbox.Close(t.Context())
		expectRecord(t, s, store.Done, endOfStream.cause)
		if n := len(s.stored(testID)); n != 2 || lost.Load() != 0 {
			t.Errorf("%d events are stored, %d lost", n, lost.Load())
		}
	})
}

// A node that was considered dead stores no more events, and does not close a stream with 1000, also
// when nothing was said after that.
func TestStreamOfANodeConsideredDead(t *testing.T) {
	for _, d := range []*streamtest.Diarizer{streamtest.ManyTurns(), {}} {
		bubble(t, func(t *testing.T, s *server) {
			c := s.open(d)
			c.chunks(4)
			synctest.Wait()
			// Another node completes the events and the record.
			own := len(s.stored(testID))
			testkit.NoError(t, s.Append(t.Context(), testID, own, [][]byte{[]byte(`"of another node"`)}))
			testkit.NoError(t, s.Finish(t.Context(), testID, store.Failed, time.Now(), "dead"))
			c.chunks(4)
			c.endOfStream()
			if code, _ := c.end(); code != websocket.CloseInternalServerErr {
				t.Errorf("code %d", code)
			}
			s.running.Wait()
			expectRecord(t, s, store.Failed, "dead")
			if lost := s.counters.Lost.Load(); lost > 0 != (own > 0) || s.counters.Failed.Load() != 1 {
				t.Errorf("%d events lost, %d streams failed", lost, s.counters.Failed.Load())
			}
		})
	}
}
