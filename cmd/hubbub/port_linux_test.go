package main

import (
	"fmt"
	"syscall"
	"testing"

	"hubbub/protocol/testkit"
)

// reservePort returns an address for listeners that come and go. Until the test ends
// nobody else is given its port: a socket keeps it that does not listen.
func reservePort(t *testing.T) string {
	t.Helper()
	fd := testkit.Must(syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0))(t)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	// Listeners of Go have this option, too: it lets them share the port.
	testkit.NoError(t, syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
	testkit.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name := testkit.Must(syscall.Getsockname(fd))(t)
	return fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
}
