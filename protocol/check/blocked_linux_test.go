package check

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// A connection that takes less than a stream needs, while the buffers still take all.
func TestCheckSlowConnection(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	defer close(over)
	slow := protocoltest.Service{Stream: func(c *websocket.Conn) {
		_ = c.NetConn().(*net.TCPConn).SetReadBuffer(4096)
		<-over
	}}
	fails(t, runCheck(t, serve(t, slow), testKey, testkit.Timeout, 50, nil), "audio", "have not arrived", "512 kbit/s")
}

// A port that swallows connections, as a firewall does: one that listens and
// whose queue is full drops every further SYN.
func TestCheckBlockedPort(t *testing.T) {
	t.Parallel()
	fd := testkit.Must(syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0))(t)
	defer syscall.Close(fd)
	testkit.NoError(t, errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0)))
	name := testkit.Must(syscall.Getsockname(fd))(t)
	address := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	full := false
	for range 8 {
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		cancel()
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
			full = true
			break
		}
		testkit.NoError(t, err)
		defer conn.Close()
	}
	if !full {
		t.Skip("this system takes connections beyond the queue that was asked for")
	}
	fails(t, runCheck(t, "https://"+address, testKey, time.Second, 2, nil), "tcp", "no response", "firewall")
}
