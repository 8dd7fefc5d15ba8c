package trace

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// QuerySocket queries the state of a TCP socket; nil when it is not known.
func QuerySocket(conn net.Conn) (s *SocketState) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	_ = raw.Control(func(fd uintptr) { // fails only before the call
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		s = &SocketState{
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
	return s
}
