package stream

import (
	"encoding/binary"
	"io"
	"math"
	"net"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/engine"
	"hubbub/localserver/stream/streamtest"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// frame builds a masked client frame by hand.
func frame(first byte, body []byte) []byte {
	out := []byte{first}
	switch n := len(body); {
	case n < 126:
		out = append(out, 0x80|byte(n))
	case n < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, 0x80|126), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, 0x80|127), uint64(n))
	}
	return append(append(out, 0, 0, 0, 0), body...) // a mask of zeros
}

// Whatever bytes arrive on a stream's connection: the stream ends, what the
// diarizer gets is finite and complete, and nothing is left.
func FuzzStreamBytes(f *testing.F) {
	nan := make([]byte, protocol.ChunkBytes)
	binary.LittleEndian.PutUint32(nan, math.Float32bits(float32(math.NaN())))
	f.Add([]byte{})
	f.Add(frame(0x82, quiet))
	f.Add(frame(0x82, nan))
	f.Add(frame(0x82, quiet[:6399]))
	f.Add(append(frame(0x02, quiet[:3200]), frame(0x80, quiet[3200:])...))
	f.Add(frame(0x81, []byte(protocol.EndOfStreamMessage)))
	f.Add(append(frame(0x82, quiet), frame(0x81, []byte(protocol.EndOfStreamMessage))...))
	f.Add(frame(0x81, []byte(`{"type":"hello"}`)))
	f.Add(frame(0x81, []byte{0xff, 0xfe}))
	f.Add(frame(0x88, []byte{3, 232}))
	f.Add(frame(0x88, []byte{1}))
	f.Add(frame(0x89, []byte("ping")))
	f.Add(frame(0xc2, quiet))                                                    // a reserved bit
	f.Add([]byte{0x82, 0x05, 1, 2, 3, 4, 5})                                     // not masked
	f.Add([]byte{0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0}) // the largest length
	f.Add([]byte{0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0}) // larger
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := newServer(t)
		defer s.close()
		s.begin(testID)
		near, far := net.Pipe()
		closed := make(chan struct{})
		s.accept(far, func(conn *websocket.Conn) {
			defer close(closed)
			s.run(s.config(), conn, &streamtest.Diarizer{OnPush: func(n int, samples []float32) []engine.Event {
				testkit.Equal(t, len(samples), protocol.ChunkSamples, "samples")
				for _, x := range samples {
					testkit.Equal(t, x-x, 0, "the diarizer gets", x)
				}
				return []engine.Event{{Kind: engine.Kind(n%2 + 1), At: time.Duration(n) * 90 * time.Millisecond}}
			}})
		})
		request := "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
		go func() { _, _ = io.Copy(io.Discard, near) }()
		testkit.Must(io.WriteString(near, request))(t)
		_, _ = near.Write(raw)
		_ = near.Close()
		select {
		case <-closed:
		case <-time.After(30 * time.Second):
			t.Fatal("the stream does not end")
		}
	})
}
