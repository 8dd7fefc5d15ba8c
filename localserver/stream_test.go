package localserver

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/stream/streamtest"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

const (
	startAt20 = `{"type":"diarization_speaker_start","data":{"timestamp":0.02,"speaker":"SPEAKER_00"}}`
	// afterEnd is the response to frames after the end of a stream.
	afterEnd = "Frames after end_of_stream are ignored"
	endOf    = `{"type":"diarization_speaker_end","data":{"timestamp":%s,"speaker":"SPEAKER_00"}}`
)

func TestStreamFromStartToEnd(t *testing.T) {
	h := serve(t)
	s := h.open()
	s.chunks(3)
	if e := s.next(); string(e.Raw) != startAt20 {
		t.Errorf("live: %s", e.Raw)
	}
	s.end()
	asked := time.Now()
	events, code, _ := s.rest()
	if code != websocket.CloseNormalClosure || len(events) != 1 || string(events[0].Raw) != fmt.Sprintf(endOf, "0.3") {
		t.Errorf("code %d, %q", code, raws(events))
	}
	if d := time.Since(asked); d > 10*time.Second { // 2 s on a machine that is not busy
		t.Errorf("closed after %v", d)
	}
	// The record is written before the close frame is sent.
	st := h.status(s.id)
	if st.Status != "done" || st.StartedAt == nil || st.CompletedAt == nil {
		t.Errorf("%+v", st)
	}
	if got := h.stored(s.id); len(got) != 2 || got[0] != startAt20 || got[1] != string(events[0].Raw) {
		t.Errorf("stored %q", got)
	}
}

// The real engine, to test that it fits.
func TestStreamWithTheRealEngine(t *testing.T) {
	t.Parallel()
	var log logBuffer
	h := serve(t, log.use, func(o *setup) { o.NewDiarizer, o.Unpaced = nil, true })
	s := h.open()
	s.chunks(50)
	s.end()
	events := s.closes(1000)
	same(t, events, h.stored(s.id))
	testkit.Eventually(t, "the end", func() bool { return log.count("stream closed") == 1 })
	if log.count("moved=0 dropped=0 ended=0") != 1 {
		t.Errorf("the engine needed corrections: %s", log.String())
	}
}

// The length of a frame may have its top bit set, which is not allowed.
func TestLengthsBeyondTheLimit(t *testing.T) {
	t.Parallel()
	h := serve(t)
	for _, length := range []uint64{1<<30 + 1, 1<<63 - 1, 1 << 63, math.MaxUint64} {
		s := h.open()
		frame := append(binary.BigEndian.AppendUint64([]byte{0x82, 0xff}, length), 0, 0, 0, 0)
		if _, err := s.NetConn().Write(frame); err != nil {
			t.Fatal(err)
		}
		if _, code, _ := s.rest(); code != websocket.CloseMessageTooBig {
			t.Errorf("%d bytes: code %d", length, code)
		}
	}
}

// A client that closes its sending side after the end still gets the events and the close
// frame.
func TestHalfClosedAfterTheEnd(t *testing.T) {
	t.Parallel()
	h := serve(t, withEngine(streamtest.OneTurn))
	s := h.open()
	s.chunks(1)
	s.end()
	testkit.NoError(t, s.NetConn().(*tls.Conn).CloseWrite())
	if events, code, _ := s.rest(); len(events) != 2 || code != websocket.CloseNormalClosure {
		t.Errorf("%d events, code %d", len(events), code)
	}
}

func TestTooFastIsClosed(t *testing.T) {
	t.Parallel()
	c := newClock() // stands still
	h := serve(t, c.use)
	s := h.open()
	s.chunks(50)
	testkit.Eventually(t, "chunks", func() bool { return h.counters.Chunks.Load() == 50 })
	c.move(time.Second)
	s.chunks(10) // 6 s of audio after 1 s
	if e := s.next(); e.Type != protocol.TypeSpeakerStart {
		t.Fatalf("got %s", e.Raw)
	}
	if n := h.counters.Failed.Load(); n != 0 {
		t.Fatal("closed too early")
	}
	_ = s.WriteMessage(websocket.BinaryMessage, quiet)
	for range 500 { // it does not stop, and can still read the reason
		_ = s.WriteMessage(websocket.BinaryMessage, quiet)
	}
	events, code, text := s.rest()
	if code != websocket.ClosePolicyViolation || text == "" || len(events) != 2 ||
		events[0].Timestamp != 6 || events[1].Type != "error" || !strings.Contains(events[1].Message, "real time") {
		t.Errorf("code %d %q %q", code, text, raws(events))
	}
	if st := h.status(s.id); st.Status != "error" {
		t.Errorf("status %s", st.Status)
	}
	if got := h.stored(s.id); len(got) != 2 {
		t.Errorf("stored %q", got)
	}
}
