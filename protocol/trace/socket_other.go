//go:build !linux

package trace

import "net"

// QuerySocket queries the state of a TCP socket: only on Linux.
func QuerySocket(net.Conn) *SocketState { return nil }
