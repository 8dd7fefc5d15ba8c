//go:build !linux

package protocol

import "syscall"

// socketState asks the system how a TCP socket is: only Linux is asked.
func socketState(syscall.RawConn) (SocketState, bool) { return SocketState{}, false }
