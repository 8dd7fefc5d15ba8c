package protocol

import "net"

// MaxCloseText bounds the text of a close frame, in bytes (RFC 6455, section 5.5).
const MaxCloseText = 123

// BelowTLS is the connection below TLS, of the peer or of a proxy. It closes at once; TLS
// waits up to 5 s until its alert is sent, to a peer that may be gone.
func BelowTLS(conn net.Conn) net.Conn {
	for {
		above, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return conn
		}
		conn = above.NetConn()
	}
}
