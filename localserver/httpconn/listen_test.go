package httpconn

import (
	"net"
	"strings"
	"syscall"
	"testing"

	"hubbub/protocol/errno"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// Every error of Listen names the address, says in the program's own words what is
// wrong, and has a hint that fits.
func TestListenErrors(t *testing.T) {
	t.Parallel()
	used := testkit.Must(Listen(t.Context(), "127.0.0.1:0"))(t)
	defer used.Close()
	cases := map[string]struct{ text, hint string }{
		used.Addr().String():     {"the address is in use", "Another program listens there"},
		"192.0.2.1:0":            {"the address is not one of this machine", "0.0.0.0"}, // for documentation
		"127.0.0.1":              {"missing port in address", "such as 127.0.0.1:8580"},
		"127.0.0.1:99999":        {"invalid port", "such as 127.0.0.1:8580"},
		"127.0.0.1:nosuchport":   {"the port is not known", "such as 127.0.0.1:8580"},
		"no.such.host.invalid:0": {"the host is not known", "Check the host's name"},
	}
	const low = "127.0.0.1:1"
	if l, err := net.Listen("tcp", low); err == nil { // this user may
		_ = l.Close()
	} else if errno.Is(err, syscall.EACCES) {
		cases[low] = struct{ text, hint string }{"permission denied", "choose another one"}
	}
	for addr, want := range cases {
		l, err := Listen(t.Context(), addr)
		if err == nil {
			_ = l.Close()
			t.Errorf("%s can be used", addr)
			continue
		}
		if text := "cannot listen on " + addr + ": " + want.text; err.Error() != text || !strings.Contains(hint.Of(err), want.hint) {
			t.Errorf("%s: %q, hint %q", addr, err, hint.Of(err))
		}
	}
}
