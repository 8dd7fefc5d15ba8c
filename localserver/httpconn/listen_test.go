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

// Every error of Listen names the address once, and has a hint that fits.
func TestListenErrors(t *testing.T) {
	t.Parallel()
	used := testkit.Must(Listen(t.Context(), "127.0.0.1:0"))(t)
	defer used.Close()
	cases := map[string]string{
		used.Addr().String():     "Another program listens there",
		"192.0.2.1:0":            "such as 127.0.0.1:8580", // for documentation
		"127.0.0.1:99999":        "such as 127.0.0.1:8580",
		"127.0.0.1:nosuchport":   "such as 127.0.0.1:8580",
		"no.such.host.invalid:0": "such as 127.0.0.1:8580",
	}
	const low = "127.0.0.1:1"
	if l, err := net.Listen("tcp", low); err == nil { // this user may
		_ = l.Close()
	} else if errno.Is(err, syscall.EACCES) {
		cases[low] = "choose another one"
	}
	for addr, want := range cases {
		l, err := Listen(t.Context(), addr)
		if err == nil {
			_ = l.Close()
			t.Errorf("%s can be used", addr)
			continue
		}
		if text, ok := strings.CutPrefix(err.Error(), "cannot listen on "+addr+": "); !ok || strings.Contains(text, addr) || !strings.Contains(hint.Of(err), want) {
			t.Errorf("%s: %q, hint %q", addr, err, hint.Of(err))
		}
	}
}
