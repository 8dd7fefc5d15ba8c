package stream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/engine"
	"hubbub/localserver/store"
	"hubbub/localserver/stream/streamtest"
	"hubbub/protocol"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// speaking is a diarizer whose speakers talk for half a chunk each.
func speaking(state string, speakers ...int) *streamtest.Diarizer {
	return &streamtest.Diarizer{State: state, OnPush: func(n int, _ []float32) []engine.Event {
		at := time.Duration(n-1) * 100 * time.Millisecond
		sp := speakers[(n-1)%len(speakers)]
		return []engine.Event{{Kind: engine.Start, At: at, Speaker: sp}, {Kind: engine.End, At: at + 50*time.Millisecond, Speaker: sp}}
	}}
}

// snapshotOf runs a stream of some chunks to its end and returns its snapshot.
func (s *server) snapshotOf(t *testing.T, d Diarizer, chunks int) []byte {
	t.Helper()
	c := s.open(d)
	c.chunks(chunks)
	c.endOfStream()
	c.end()
	s.running.Wait()
	snapshot := testkit.Must(s.Snapshot(t.Context(), testID))(t)
	return snapshot
}

// The labels of a stream continue in the one that resumes it, and new ones
// follow.
func TestResumedStreamContinuesLabels(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		snapshot := s.snapshotOf(t, speaking("a", 5, 2), 2)
		d := speaking("", 2, 7, 5)
		labels, err := Restore(d, snapshot)
		if err != nil || d.State != "a" || labels != (Labels{2: {Number: 2}, 5: {Number: 1}}) {
			t.Fatalf("restored %q, labels %v, %v", d.State, labels, err)
		}
		second := s.open(d, func(c *Config) { c.ID, c.Labels = idOf("second"), labels })
		second.chunks(3)
		second.endOfStream()
		second.end()
		testkit.Equal(t, protocoltest.Brief(second.received()), "+01@0s -01@50ms +02@100ms -02@150ms +00@200ms -00@250ms", "the second stream")
	})
}

// A match that the earlier stream announced and that does not hold any more is
// withdrawn by the first start of the speaker in the stream that resumes it.
func TestResumedStreamWithdrawsMatches(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		d := speaking("a", 5)
		d.OnPush = matching(d.OnPush, "Sam")
		snapshot := s.snapshotOf(t, d, 1)
		d = speaking("", 5, 2)
		labels, err := Restore(d, snapshot)
		if err != nil || labels != (Labels{5: {Number: 1, Matched: true}}) {
			t.Fatalf("labels %v, %v", labels, err)
		}
		second := s.open(d, func(c *Config) { c.ID, c.Labels = idOf("second"), labels })
		second.chunks(2)
		second.endOfStream()
		second.end()
		var withdrawn []string
		for _, e := range second.received() {
			if strings.Contains(string(e.Raw), `"match":null`) {
				withdrawn = append(withdrawn, e.Speaker)
			}
		}
		testkit.EqualSlices(t, withdrawn, []string{"SPEAKER_00"}, "withdrawn")
	})
}

// matching gives every start of a diarizer a match.
func matching(push func(int, []float32) []engine.Event, match string) func(int, []float32) []engine.Event {
	return func(n int, samples []float32) []engine.Event {
		events := push(n, samples)
		for i := range events {
			if events[i].Kind == engine.Start {
				events[i].Match = match
			}
		}
		return events
	}
}

func TestSnapshotsThatCannotBeRestored(t *testing.T) {
	none := strings.Repeat("\x00", engine.MaxSpeakers)
	for _, raw := range []string{"", "x", "\x02" + none[1:], "\x01" + none + "state:", "\x02" + none + "nonsense",
		"\x02\x02\x82" + none[2:] + "state:", "\x02\x09" + none[1:] + "state:", "\x02\x80" + none[1:] + "state:"} {
		if _, err := Restore(&streamtest.Diarizer{}, []byte(raw)); !errors.Is(err, errSnapshot) {
			t.Errorf("%q: %v", raw, err)
		}
	}
	if labels, err := Restore(&streamtest.Diarizer{}, []byte("\x02\x08"+none[1:]+"state:")); err != nil || labels[0].Number != engine.MaxSpeakers {
		t.Errorf("the last label: %v, %v", labels, err)
	}
	if _, err := Restore(&panicking{}, []byte("\x02"+none)); !errors.Is(err, errSnapshot) {
		t.Errorf("a diarizer that panics: %v", err)
	}
}

// A label is stored when it is sent for the first time: if the server were
// killed before the next regular snapshot, a new stream would give the label to
// somebody else.
func TestWhenSnapshotsAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startSnapshotWriter(newMemory(), testID, discard)
		defer w.finish()
		for i, x := range []struct {
			labels int
			due    bool
		}{{0, false}, {1, true}, {1, false}, {2, true}, {2, false}} {
			if w.due(x.labels) != x.due {
				t.Errorf("call %d, %d labels: due is %v", i, x.labels, !x.due)
			}
		}
		time.Sleep(snapshotInterval)
		if !w.due(2) {
			t.Error("no regular snapshot is due")
		}
	})
}

// A store that is slow or unavailable gets the newest snapshot when it is back.
func TestSnapshotWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, gate := newMemory(), make(chan struct{})
		w := startSnapshotWriter(gated{m, gate}, testID, discard)
		for _, text := range []string{"first", "second", "third"} {
			w.put([]byte(text), 0)
			synctest.Wait()
		}
		close(gate)
		synctest.Wait()
		w.finish()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		w.wait(ctx)
		if got := m.count("put snapshot"); got != 2 || string(m.snapshots[testID]) != "third" {
			t.Errorf("%d writes, the last one %q", got, m.snapshots[testID])
		}
	})
}

// A snapshot that could not be stored is replaced by a later one. Each has the audio that was
// received, also when nothing else has changed: the turn of a stream whose node dies ends there.
func TestLaterSnapshotsReplaceEarlierOnes(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.setFail("put snapshot")
		c := s.open(speaking("a", 0))
		c.chunks(1)
		synctest.Wait()
		s.setFail()
		for i := range 2 {
			time.Sleep(snapshotInterval)
			c.chunks(1)
			synctest.Wait()
			if _, err := s.Snapshot(t.Context(), testID); err != nil || s.snapshotAt != time.Duration(i+2)*protocol.ChunkDuration {
				t.Error(err, s.snapshotAt)
			}
		}
	})
}

// gated is a store whose snapshots wait.
type gated struct {
	Store
	gate chan struct{}
}

func (g gated) PutSnapshot(ctx context.Context, id string, snapshot []byte, received time.Duration) error {
	<-g.gate
	return g.Store.PutSnapshot(ctx, id, slices.Clone(snapshot), received)
}

// dialStream opens a stream, which the channel receives when it runs.
func (s *server) dialStream(d Diarizer) (*websocket.Conn, <-chan *Stream) {
	streams := make(chan *Stream, 1)
	s.begin(testID)
	conn := s.dial(func(conn *websocket.Conn) {
		stream := New(s.config(), conn, d)
		streams <- stream
		stream.Run(s.ctx, s.drain)
	})
	return conn, streams
}

// A stream that another one resumes ends, and its last snapshot is stored.
func TestSupersede(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		d := speaking("early", 0)
		conn, streams := s.dialStream(d)
		c := newClient(t, conn)
		c.chunks(1)
		synctest.Wait()
		d.State = "late"
		stream := <-streams
		stream.Supersede(t.Context())
		if raw := s.snapshots[testID]; !strings.HasSuffix(string(raw), "state:late") {
			t.Errorf("stored %q", raw)
		}
		stream.Supersede(t.Context()) // by a second client at the same time
		if code, text := c.end(); code != websocket.ClosePolicyViolation || text != "resumed by another stream" {
			t.Errorf("closed with %d %q", code, text)
		}
		s.running.Wait()
		expectRecord(t, s, store.Failed, "resumed by another stream")
	})
}

// The stream that resumes another one does not wait for all that the client has sent before.
func TestSupersedeQueued(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		d := speaking("late", 0)
		d.OnPush = func(int, []float32) []engine.Event { time.Sleep(30 * time.Millisecond); return nil }
		conn, streams := s.dialStream(d)
		c := newClient(t, conn)
		go func() {
			for range 45 { // as far ahead as a client may be
				_ = c.WriteMessage(websocket.BinaryMessage, quiet)
			}
		}()
		stream := <-streams
		synctest.Wait()
		stream.Supersede(t.Context())
		if raw := s.snapshots[testID]; !strings.HasSuffix(string(raw), "state:late") || s.counters.Chunks.Load() < queuedChunks {
			t.Errorf("stored %q after %d chunks", raw, s.counters.Chunks.Load())
		}
		s.running.Wait()
		expectRecord(t, s, store.Failed, "resumed by another stream")
	})
}

// A client that does not read does not delay the one that resumes its stream.
func TestSupersedeUnread(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn, streams := s.dialStream(speaking("last", 0))
		defer func() { _ = conn.Close() }()
		go func() {
			for conn.WriteMessage(websocket.BinaryMessage, quiet) == nil {
				time.Sleep(protocol.ChunkDuration)
			}
		}()
		stream := <-streams
		for len(stream.writer.queue) < queuedMessages {
			time.Sleep(protocol.ChunkDuration)
		}
		began := time.Now()
		stream.Supersede(t.Context())
		if raw := s.snapshots[testID]; !strings.HasSuffix(string(raw), "state:last") || time.Since(began) >= supersedeTimeout {
			t.Errorf("stored %q after %v", raw, time.Since(began))
		}
		s.running.Wait()
	})
}

// A panic while a snapshot is taken is logged only.
func TestPanicInASnapshot(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.open(&panicking{Diarizer: *streamtest.OneTurn()})
		c.chunks(2)
		c.endOfStream()
		if code, _ := c.end(); code != 1000 || s.count("put snapshot") != 0 {
			t.Errorf("code %d, %d snapshots", code, s.count("put snapshot"))
		}
	})
}

type panicking struct{ streamtest.Diarizer }

func (*panicking) AppendSnapshot([]byte) []byte { panic("no") }
func (*panicking) RestoreSnapshot([]byte) error { panic("no") }
