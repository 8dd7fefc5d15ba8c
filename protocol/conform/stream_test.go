package conform

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// between is a stream and its service, without buffers between them.
func between(t *testing.T) (*stream, *websocket.Conn) {
	t.Helper()
	near, far := net.Pipe()
	accepted := make(chan *websocket.Conn, 1)
	go func() {
		conn, err := protocoltest.Accept(far)
		if err != nil {
			t.Error(err)
		}
		accepted <- conn
	}()
	conn := testkit.Must(protocoltest.Dial(near))(t)
	s, service := newStream("id", conn), <-accepted
	t.Cleanup(func() { _ = service.Close(); s.close() })
	return s, service
}

// The memory for what a service sends is bounded, and its end is seen all the same.
func TestStreamKeepsSome(t *testing.T) {
	s, service := between(t)
	for range 2 * maxKept >> 20 {
		testkit.NoError(t, service.WriteMessage(websocket.TextMessage, bytes.Repeat([]byte{' '}, 1<<20)))
	}
	go protocoltest.CloseWith(service, websocket.CloseNormalClosure, "")
	<-s.over
	messages, end := s.received()
	if len(messages) == 0 || len(messages) > maxKept>>20 || end.code != websocket.CloseNormalClosure {
		t.Errorf("%d messages, %v", len(messages), end)
	}
}

// A ping is answered also when a chunk takes longer than the second that the library waits.
func TestPingBehindASlowChunk(t *testing.T) {
	s, service := between(t)
	sent := make(chan error, 1)
	go func() { sent <- s.chunk(make([]float32, protocol.ChunkSamples)) }()
	testkit.NoError(t, service.WriteControl(websocket.PingMessage, []byte("p"), time.Now().Add(testkit.Timeout)))
	time.Sleep(1100 * time.Millisecond)
	ponged := make(chan string, 1)
	service.SetPongHandler(func(data string) error { ponged <- data; return nil })
	go protocoltest.Drain(service)
	select {
	case <-ponged:
	case <-time.After(testkit.Timeout):
		t.Error("no pong")
	}
	testkit.NoError(t, <-sent)
}
