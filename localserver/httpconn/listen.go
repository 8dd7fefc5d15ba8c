package httpconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"hubbub/protocol/errno"
	"hubbub/protocol/hint"
)

// Listen opens the port. Its errors carry a hint.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", addr)
	if err == nil {
		return l, nil
	}
	next := "Give another address, such as 127.0.0.1:8580; port 0 picks a free one."
	var dns *net.DNSError
	var wrong *net.AddrError
	switch {
	case errno.Is(err, syscall.EADDRINUSE):
		next = "Another program listens there: stop it, or choose another port; port 0 picks a free one."
		err = errors.New("the address is in use")
	case errno.Is(err, syscall.EACCES):
		next = "The system reserves this port, as some do those below 1024: choose another one, such as 8580."
		err = errors.New("permission denied")
	case errno.Is(err, syscall.EADDRNOTAVAIL):
		next = "Give an address of this machine, 127.0.0.1 for itself alone, or 0.0.0.0 for all of its addresses."
		err = errors.New("the address is not one of this machine")
	case errors.As(err, &dns) && strings.HasPrefix(dns.Name, "tcp/"): // the look-up of a port by its name
		err = errors.New("the port is not known")
	case errors.As(err, &dns):
		next = "Check the host's name, or give an address in numbers, such as 127.0.0.1."
		err = errors.New("the host is not known")
	case errors.As(err, &wrong):
		err = errors.New(wrong.Err)
	}
	return nil, hint.Add(fmt.Errorf("cannot listen on %s: %w", addr, err), next)
}
