package localserver

import (
	"context"
	"errors"
	"net"
)

// Server is a running service.
type Server struct{}

// Start listens, opens the store and serves. It returns when the server is
// ready for requests. ctx bounds the start alone; Shutdown ends the server.
func Start(ctx context.Context, o Options) (*Server, error) {
	_, err := o.withDefaults()
	return nil, errors.Join(err, errors.New("the server cannot start yet"))
}

// URL is the base address for clients on this machine, or the public one.
func (s *Server) URL() string { return "" }

// CAPEM is the certificate that a client needs to trust the server, nil
// without TLS.
func (s *Server) CAPEM() []byte { return nil }

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return nil }

// Wait blocks until the server has stopped: nil after Shutdown, else why it
// stopped serving.
func (s *Server) Wait() error { return nil }

// Shutdown takes no new streams, finishes the open ones, closes them with 1001
// and stops. When ctx ends first, what is still open is cut off.
func (s *Server) Shutdown(ctx context.Context) error { return nil }
