package localserver

import (
	"crypto/tls"
	"encoding/binary"
	"math"
	"testing"

	"github.com/gorilla/websocket"

	"hubbub/localserver/stream/streamtest"
	"hubbub/protocol/testkit"
)

// The real engine, to test that it fits.
func TestStreamWithTheRealEngine(t *testing.T) {
	t.Parallel()
	var log logBuffer
	h := serve(t, log.use, func(o *setup) { o.NewDiarizer, o.Unpaced = nil, true })
	s := h.open()
	s.chunks(50)
	s.end()
	events := s.closes(1000)
	testkit.EqualSlices(t, raws(events), h.stored(s.id), "sent, and stored")
	testkit.Eventually(t, "the end", func() bool { return log.count("stream closed") == 1 })
	testkit.Equal(t, log.count("moved=0 dropped=0"), 1, "the engine needed corrections", log.String())
}

// The length of a frame may have its top bit set, which is not allowed.
func TestLengthsBeyondTheLimit(t *testing.T) {
	t.Parallel()
	h := serve(t)
	for _, length := range []uint64{1<<30 + 1, 1<<63 - 1, 1 << 63, math.MaxUint64} {
		s := h.open()
		frame := append(binary.BigEndian.AppendUint64([]byte{0x82, 0xff}, length), 0, 0, 0, 0)
		testkit.Must(s.NetConn().Write(frame))(t)
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
