// Package embedded runs a NATS server with JetStream in this process. It listens on no
// port and stores everything below one folder.
package embedded

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"hubbub/protocol/hint"

	"hubbub/localserver/store/datafolder"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

const (
	// MemoryLimit bounds what is stored in memory, in bytes.
	MemoryLimit = 256 << 20
	// startTimeout bounds the start of the server, which replays what is on disk, and
	// readyInterval is how often it is checked for a fatal error meanwhile.
	startTimeout  = 30 * time.Second
	readyInterval = 100 * time.Millisecond
	// noLimit is a bound that no disk reaches: the store watches the free space.
	noLimit = 1 << 60
)

// Server is the NATS server in this process. After a failed write a NATS server
// writes no more to that stream until it is started again, also when the disk has
// space again. A connection to it survives Restart: it asks for a new one here.
type Server struct {
	options *natsserver.Options
	log     *slog.Logger

	mu     sync.Mutex
	server *natsserver.Server // nil after a start that failed
}

// Start starts a server that stores everything below dir. After an error it returns a
// server that does not run.
func Start(dir string, log *slog.Logger) (*Server, error) {
	s := &Server{log: log, options: &natsserver.Options{
		ServerName:         "hubbub",
		DontListen:         true,
		NoSigs:             true,
		JetStream:          true,
		StoreDir:           filepath.Join(dir, datafolder.JetStream),
		SyncAlways:         true, // by default an acknowledged write may wait two minutes for the disk
		JetStreamMaxMemory: MemoryLimit,
		JetStreamMaxStore:  -1,
	}}
	if _, _, err := datafolder.Space(dir); err == nil {
		s.options.JetStreamMaxStore = noLimit
	}
	return s, s.start()
}

// start starts the server. A panic of it is an error.
func (s *Server) start() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var server *natsserver.Server
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the NATS server panicked: %v", p)
		}
		if err != nil {
			err = hint.Add(fmt.Errorf("the store could not be started: %w", err),
				"Check that its folder is writable and its disk has space.")

			if server != nil {
				server.Shutdown()
				server.WaitForShutdown()
			}
		}
	}()
	if server, err = natsserver.NewServer(s.options.Clone()); err != nil {
		return err
	}
	log := &serverLog{log: s.log, fatal: make(chan string, 1)}
	server.SetLoggerV2(log, false, false, false)
	server.Start()
	for deadline := time.Now().Add(startTimeout); !server.ReadyForConnections(readyInterval); {
		select {
		case cause := <-log.fatal:
			return errors.New(cause)
		default:
		}
		if time.Now().After(deadline) {
			return errors.New("it was not ready in time")
		}
	}
	if !server.JetStreamEnabled() {
		return errors.New("JetStream does not run")
	}
	s.server = server
	return nil
}

// Restart stops the server and starts it again.
func (s *Server) Restart() error {
	s.Stop()
	return s.start()
}

// Stop stops the server. It waits until everything is written.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		s.server.Shutdown()
		s.server.WaitForShutdown()
		s.server = nil
	}
}

var errNotRunning = errors.New("the embedded NATS server does not run")

// InProcessConn connects to the server that runs now. It does not wait for one that starts
// or stops: all calls of a NATS client wait while it connects.
func (s *Server) InProcessConn() (net.Conn, error) {
	if !s.mu.TryLock() {
		return nil, errNotRunning
	}
	defer s.mu.Unlock()
	if s.server == nil {
		return nil, errNotRunning
	}
	return s.server.InProcessConn()
}

// RestoreStream makes a stream from its configuration and a snapshot of NATS (version 2).
func (s *Server) RestoreStream(config *natsserver.StreamConfig, snapshot io.Reader) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return errNotRunning
	}
	_, err := s.server.GlobalAccount().RestoreStreamV2(config, snapshot)
	return err
}

// WriteError is not nil when a write has failed and the server writes no more.
func (s *Server) WriteError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return errNotRunning
	}
	return persistent(func() error {
		health := healthResponse{header: http.Header{}}
		r, err := http.NewRequest(http.MethodGet, "/healthz", nil)
		if err != nil {
			return err
		}
		s.server.HandleHealthz(&health, r)
		if health.status == 0 || health.status == http.StatusOK {
			return nil
		}
		return fmt.Errorf("the embedded NATS server is not healthy: %s", health.body)
	})
}

// healthChecks is how many health checks in a row have to fail. One of them
// waits for a millisecond and can fail on a busy machine.
const healthChecks = 10

// persistent returns the error of a check that fails every time.
func persistent(check func() error) (err error) {
	for range healthChecks {
		if err = check(); err == nil {
			return nil
		}
	}
	return err
}

// healthResponse receives the result of a health check, which the server returns only
// over HTTP.
type healthResponse struct {
	header http.Header
	status int
	body   []byte
}

func (h *healthResponse) Header() http.Header    { return h.header }
func (h *healthResponse) WriteHeader(status int) { h.status = status }
func (h *healthResponse) Write(b []byte) (int, error) {
	h.body = append(h.body, b...)
	return len(b), nil
}

// serverLog receives the log of the embedded server: warnings and errors at
// their level, everything else at debug level.
type serverLog struct {
	log   *slog.Logger
	fatal chan string // the first fatal error
}

func (l *serverLog) Noticef(format string, v ...any) { l.debug(format, v) }
func (l *serverLog) Debugf(format string, v ...any)  { l.debug(format, v) }
func (l *serverLog) Tracef(format string, v ...any)  { l.debug(format, v) }
func (l *serverLog) Warnf(format string, v ...any) {
	if strings.HasPrefix(format, "Healthcheck failed") { // of WriteError, every second, whose caller gets the error
		l.debug(format, v)
		return
	}
	l.log.Warn(fmt.Sprintf(format, v...), "from", "nats")
}
func (l *serverLog) Errorf(format string, v ...any) {
	l.log.Error(fmt.Sprintf(format, v...), "from", "nats")
}

func (l *serverLog) debug(format string, v []any) {
	l.log.Debug(fmt.Sprintf(format, v...), "from", "nats")
}

func (l *serverLog) Fatalf(format string, v ...any) {
	l.Errorf(format, v...)
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}
