//go:build !linux

package trace

import "syscall"

// QuerySocket queries the state of a TCP socket: only on Linux.
func QuerySocket(syscall.RawConn) (SocketState, bool) { return SocketState{}, false }
