package httpconn

import (
	"context"
	"errors"
	"fmt"
	"net"
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
	switch {
	case errno.Is(err, syscall.EADDRINUSE):
		next = "Another program listens there: stop it, or choose another port; port 0 picks a free one."
	case errno.Is(err, syscall.EACCES):
		next = "The system reserves this port, as some do those below 1024: choose another one, such as 8580."
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok { // without the address, which the error has already
		err = failed.Err
	}
	return nil, hint.Add(fmt.Errorf("cannot listen on %s: %w", addr, err), next)
}
