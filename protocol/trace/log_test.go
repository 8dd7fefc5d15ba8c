package trace

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

func chunkRecord(seq int64, gap time.Duration) Record {
	return Record{Stream: 1, Dir: Outgoing, Kind: KindChunk, Size: protocol.ChunkBytes, Chunk: seq, Gap: gap, Waiting: 7, Took: time.Millisecond,
		Socket: &SocketState{Unacked: int(seq)}}
}

func TestLogFoldsChunks(t *testing.T) {
	l := NewLog()
	l.Record(Record{Kind: KindHandshake, Dir: Incoming, Stream: 1, Code: 101})
	for i := range int64(250) {
		l.Record(chunkRecord(i, protocol.ChunkDuration))
	}
	l.Record(Record{Stream: 1, Dir: Incoming, Kind: KindEvent, Type: protocol.TypeSpeakerStart, Lag: time.Second})
	l.Record(chunkRecord(250, protocol.ChunkDuration))
	l.Record(chunkRecord(251, 2*time.Second)) // a stall begins a run of its own
	l.Record(chunkRecord(252, protocol.ChunkDuration))
	late := chunkRecord(260, protocol.ChunkDuration)
	late.Dropped = 7
	l.Record(late)
	s := l.Snapshot()
	var got []string
	for i := range s.Entries.Len() {
		e := s.Entries.At(i)
		got = append(got, fmt.Sprintf("%s %d", e.Kind, e.Run.Chunks))
	}
	want := "handshake 0, chunk 100, chunk 100, chunk 50, event 0, chunk 1, chunk 2, chunk 1"
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
	run := s.Entries.At(2)
	if run.Run.First != 102 || run.Number != 201 || run.Run.Unacked != 199 || run.Waiting != 7 || run.Run.MaxTook != time.Millisecond {
		t.Errorf("%+v", run)
	}
	if s.Chunks.Len() != 254 || s.Chunks.At(100).Chunk != 100 || s.Chunks.At(253).Chunk != 260 {
		t.Errorf("%d chunks, the last is %+v", s.Chunks.Len(), s.Chunks.At(s.Chunks.Len()-1))
	}
	st := s.Status
	if st.Chunks != 254 || st.Messages != [2]int64{254, 2} || st.Bytes[0] != 254*protocol.ChunkBytes || st.MaxGap != 2*time.Second ||
		st.Lag != time.Second || st.Waiting != 7 || st.Pace < 0.7 || st.Pace > 0.75 {
		t.Errorf("%+v", st)
	}
}

// TestLogBurst: audio that was waiting and is sent at once has no pace.
func TestLogBurst(t *testing.T) {
	l := NewLog()
	for seq := range int64(47) {
		l.Record(chunkRecord(seq, 20*time.Microsecond))
	}
	testkit.Equal(t, l.Snapshot().Status.Pace, 0, "a burst has the pace")
}

// TestLogAwaitsPongs: an answer to an older ping does not answer the newer.
func TestLogAwaitsPongs(t *testing.T) {
	l, begin := NewLog(), time.Now()
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	ping := func(s int) { l.Record(Record{Kind: KindPing, Dir: Outgoing, At: at(s)}) }
	pong := func(s, of int) {
		l.Record(Record{Kind: KindPong, Dir: Incoming, At: at(s), Took: at(s).Sub(at(of))})
	}
	want := func(trip time.Duration, unanswered time.Time) {
		t.Helper()
		if s := l.Snapshot().Status; s.Ping != trip || !s.Unanswered.Equal(unanswered) {
			t.Errorf("ping %v, unanswered since %v; want %v, %v", s.Ping, s.Unanswered.Sub(begin), trip, unanswered.Sub(begin))
		}
	}
	ping(0)
	want(0, at(0))
	ping(10)
	want(0, at(0))
	pong(15, 0)
	want(15*time.Second, at(10))
	pong(16, 10)
	want(6*time.Second, time.Time{})
}

// TestLogIsBounded fills it with more than it takes; snapshots of before
// stay as they were.
func TestLogIsBounded(t *testing.T) {
	l := NewLog()
	l.Record(Record{Kind: KindEvent, Text: "first"})
	before := l.Snapshot()
	const many = 20_000
	for i := range many {
		l.Record(Record{Kind: KindEvent, Text: fmt.Sprint(i)})
		l.Record(chunkRecord(int64(i), protocol.ChunkDuration))
	}
	s := l.Snapshot()
	if n := s.Entries.Len(); n != maxEntries || s.Removed != int64(2*many+1-n) {
		t.Errorf("%d entries, %d forgotten", n, s.Removed)
	}
	if n := s.Chunks.Len(); n != maxEntries || s.Chunks.At(n-1).Chunk != many-1 {
		t.Errorf("%d chunks", n)
	}
	for i := 1; i < s.Entries.Len(); i++ {
		if s.Entries.At(i).Number != s.Entries.At(i-1).Number+1 {
			t.Fatalf("entry %d follows %d", s.Entries.At(i).Number, s.Entries.At(i-1).Number)
		}
	}
	if before.Entries.Len() != 1 || before.Entries.At(0).Text != "first" {
		t.Errorf("an old snapshot has changed: %+v", before.Entries.At(0))
	}
	testkit.Equal(t, l.Snapshot().Version, 2*many+1, "version")

	big := json.RawMessage(`"` + strings.Repeat("x", MaxRawBytes-2) + `"`)
	for range 2 * maxLogBytes / MaxRawBytes {
		l.Record(Record{Kind: KindEvent, Raw: big})
	}
	sum := 0
	for s, i := l.Snapshot(), 0; i < s.Entries.Len(); i++ {
		sum += len(s.Entries.At(i).Raw)
	}
	if sum > maxLogBytes || sum < maxLogBytes/2 {
		t.Errorf("%d bytes of messages are kept", sum)
	}
}

// TestLogConcurrently is for the race detector: recorders and readers at once.
func TestLogConcurrently(t *testing.T) {
	l := NewLog()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range int64(500) {
				l.Record(chunkRecord(i, protocol.ChunkDuration))
				l.Record(Record{Kind: KindEvent})
			}
		})
		all.Go(func() {
			for range 100 {
				s, last := l.Snapshot(), int64(0)
				for i := range s.Entries.Len() {
					e := s.Entries.At(i)
					if e.Number <= last || e.Run.Chunks > maxRunChunks {
						t.Errorf("%d after %d", e.Number, last)
					}
					last = e.Number
				}
			}
		})
	}
	all.Wait()
}

func TestQueueDropsNothing(t *testing.T) {
	f := NewQueue(2)
	const many = 200
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for i := range int64(many) {
				f.Record(chunkRecord(i, 0))
			}
		})
	}
	go func() { senders.Wait(); f.Close() }()
	n, at := int64(0), time.Time{}
	for r := range f.Records() {
		if n++; r.Number != n || r.At.IsZero() || r.At.Before(at) || r.Waiting != 7 {
			t.Fatalf("record %d at %v after %d at %v", r.Number, r.At, n-1, at)
		}
		at = r.At
	}
	testkit.Equal(t, n, 4*many, "records")
}

// TestQueueCloseUnblocks closes a queue that nobody receives from.
func TestQueueCloseUnblocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewQueue(1)
		go func() {
			for range 10 {
				f.Record(Record{})
			}
		}()
		synctest.Wait() // the queue is full
		f.Close()
		f.Close()
	})
}

// BenchmarkSnapshot is one look at a log that is full.
func BenchmarkSnapshot(b *testing.B) {
	l := NewLog()
	for i := range int64(20_000) {
		l.Record(chunkRecord(i, protocol.ChunkDuration))
		l.Record(Record{Kind: KindEvent})
	}
	b.ReportAllocs()
	for b.Loop() {
		if l.Snapshot().Entries.Len() == 0 {
			b.Fatal("empty")
		}
	}
}
