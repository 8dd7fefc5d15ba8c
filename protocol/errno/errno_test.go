package errno

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"hubbub/protocol/testkit"
)

// TestErrorsOfThisSystem: each is recognised, and as no other.
func TestErrorsOfThisSystem(t *testing.T) {
	l := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	_, inUse := net.Listen("tcp", l.Addr().String())
	_, notHere := net.Listen("tcp", "192.0.2.1:0") // for documentation
	testkit.NoError(t, l.Close())
	_, refused := net.Dial("tcp", l.Addr().String())
	r, w, err := os.Pipe()
	testkit.NoError(t, err)
	defer w.Close()
	testkit.NoError(t, r.Close())
	_, closed := w.Write([]byte("x"))
	errs := map[syscall.Errno]error{
		syscall.EADDRINUSE: inUse, syscall.EADDRNOTAVAIL: notHere, syscall.ECONNREFUSED: refused, syscall.EPIPE: closed,
		syscall.ENOSPC: errors.New("another one"),
	}
	for number := range errs {
		for of, err := range errs {
			if want := number == of && of != syscall.ENOSPC; Is(err, number) != want {
				t.Errorf("%v is %v: %v", err, number, !want)
			}
		}
	}
	if !Is(refused, syscall.ENOSPC, syscall.ECONNREFUSED) || Is(nil, syscall.ENOSPC) {
		t.Error("one of several, or none")
	}
}
