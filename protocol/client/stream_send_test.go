package client

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

func TestSendRefusesWhatIsNoNextChunk(t *testing.T) {
	tried := make(chan struct{})
	s := openStream(t, func(t *testing.T, conn *websocket.Conn) {
		if n := untilEnd(t, conn); n != 2 {
			t.Errorf("server got %d chunks", n)
		}
		<-tried
		protocoltest.CloseWith(conn, 1000, "")
	}, nil)
	mustSend(t, s, 0)
	mustSend(t, s, 3)
	if err := s.Send(3, make([]float32, protocol.ChunkSamples)); err == nil {
		t.Error("one chunk was sent twice")
	}
	for _, n := range []int{0, 1, protocol.ChunkSamples - 1, protocol.ChunkSamples + 1} {
		if err := s.Send(4, make([]float32, n)); err == nil {
			t.Errorf("a chunk of %d samples was sent", n)
		}
	}
	testkit.NoError(t, s.EndOfStream())
	if err := s.Send(4, make([]float32, protocol.ChunkSamples)); err == nil || errors.Is(err, ErrStreamOver) {
		t.Errorf("after end_of_stream: %v", err)
	}
	close(tried)
	if _, info := collect(t, s); info.Reason != Completed {
		t.Errorf("%+v", info)
	}
}

// The service's reason must be found even when the pipe breaks first.
func TestSendFindsTheServicesReason(t *testing.T) {
	for range 10 {
		s := openStream(t, func(t *testing.T, conn *websocket.Conn) {
			for range 3 {
				_, _, _ = conn.ReadMessage()
			}
			_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1008, "too fast"), time.Now().Add(testkit.Timeout))
			_ = conn.Close() // with chunks unread, so that a reset follows
		}, nil)
		var err error
		for seq := int64(0); err == nil; seq++ {
			err = s.Send(seq, make([]float32, protocol.ChunkSamples))
		}
		if !errors.Is(err, ErrStreamOver) || !strings.Contains(err.Error(), "too fast") {
			t.Errorf("%v", err)
		}
		if _, info := collect(t, s); info.Reason != Policy || info.Text != "too fast" {
			t.Errorf("%+v", info)
		}
	}
}

// What was dropped is not behind.
func TestAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newSendBuffer(true, nil), &Stream{}
		for _, c := range []struct {
			wait time.Duration // before the chunk
			seq  int64         // -1 = none
			want time.Duration
		}{
			{0, -1, 0}, {0, 5, 100 * time.Millisecond}, {100 * time.Millisecond, -1, 0}, {0, 6, 100 * time.Millisecond},
			{1900 * time.Millisecond, -1, -1800 * time.Millisecond}, {0, 24, 0},
		} {
			time.Sleep(c.wait)
			if c.seq >= 0 {
				b.noteSent(c.seq)
				if got := s.noteSent(c.seq, time.Now()); got != c.want || !s.sending().lastBegun.Equal(time.Now()) {
					t.Errorf("chunk %d: the stream is ahead %s, want %s", c.seq, got, c.want)
				}
			}
			var st State
			b.fill(&st)
			testkit.Equal(t, st.Ahead, c.want, c, "ahead")
		}
	})
}
