package trace

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// QuerySocket queries the state of a TCP socket; false when it is not known.
func QuerySocket(conn net.Conn) (SocketState, bool) {
	var s SocketState
	known := false
	c, ok := conn.(syscall.Conn)
	if !ok {
		return s, false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return s, false
	}
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		known = true
		s = SocketState{
			Unsent:      int(info.Notsent_bytes),
			RTT:         time.Duration(info.Rtt) * time.Microsecond,
			RTTVar:      time.Duration(info.Rttvar) * time.Microsecond,
			Retransmits: int(info.Total_retrans),
			Lost:        int(info.Lost),
			Window:      int(info.Snd_cwnd),
		}
		if n, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); err == nil {
			s.Unacked = n
		}
		if n, err := unix.IoctlGetInt(int(fd), unix.SIOCINQ); err == nil {
			s.Unread = n
		}
	})
	return s, known && err == nil
}
