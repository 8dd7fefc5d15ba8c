// Package embedded runs a NATS server with JetStream in this process. It listens on no
// port and stores everything below one folder.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"hubbub/protocol/diskspace"
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
	// checkTimeout bounds a check: for less, the disk may be slow. stopTimeout bounds the
	// end of the server: service managers wait longer.
	checkTimeout = 2 * time.Minute
	stopTimeout  = 30 * time.Second
	// noLimit is a bound that no disk reaches: the store watches the free space.
	noLimit = 1 << 60
)

// Server is the NATS server in this process. After a failed write a NATS server
// writes no more to that stream until it is started again, also when the disk has
// space again. A connection to it survives Restart: it asks for a new one here.
type Server struct {
	options *natsserver.Options
	log     *slog.Logger
	checked atomic.Pointer[error] // the outcome of the last Check
	timeout timeouts

	mu     sync.Mutex
	server *natsserver.Server // nil after a start that failed
}

// compactionInterval is how often the disk space of deleted messages is freed. What is deleted just before an orderly
// end uses it until a crash makes a server read all blocks: one that starts otherwise does not know those without
// messages (nats-server 2.15, fileStore.recoverFullState).
const compactionInterval = 10 * time.Second

// timeouts are what tests shorten.
type timeouts struct{ check, stop time.Duration }

// ErrHangs is a server that does not return from a call, and may never do so: if the disk
// is full when it removes messages, it waits for a lock of its own (nats-server 2.15,
// fileStore.PurgeEx). Only the end of the process helps.
var ErrHangs = errors.New("the embedded NATS server does not respond")

// Start starts a server that stores everything below dir. After an error it returns a
// server that does not run.
func Start(dir string, log *slog.Logger) (*Server, error) {
	s := &Server{log: log, timeout: timeouts{checkTimeout, stopTimeout}, options: &natsserver.Options{
		ServerName:         "hubbub",
		DontListen:         true,
		NoSigs:             true,
		JetStream:          true,
		StoreDir:           filepath.Join(dir, datafolder.JetStream),
		SyncAlways:         true, // by default an acknowledged write may wait two minutes for the disk
		SyncInterval:       compactionInterval,
		JetStreamMaxMemory: MemoryLimit,
		JetStreamMaxStore:  -1,
	}}
	if _, _, err := diskspace.Of(dir); err == nil {
		s.options.JetStreamMaxStore = noLimit
	}
	return s, s.start()
}

// start starts the server. A panic of it is an error.
func (s *Server) start() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var server *natsserver.Server
	guard, err := datafolder.NewGuard(filepath.Dir(s.options.StoreDir))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the NATS server panicked: %v", p)
		}
		if err != nil {
			err = hint.Add(fmt.Errorf("the store could not be started: %w", err),
				"Check that its folder is writable and its disk has space; `hubbub store check` finds damaged files.")
			if server != nil {
				server.Shutdown()
				server.WaitForShutdown()
			}
			if released := guard.Release(); released != nil {
				s.log.Error("the folder of the store could not be cleaned", "error", released)
			}
		}
	}()
	if err != nil {
		return err
	}
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
	if err := guard.Check(); err != nil {
		return err
	}
	if err := guard.Release(); err != nil { // or what is deleted from now on would remain on the disk
		return err
	}
	s.server = server
	return nil
}

// Restart stops the server and starts it again.
func (s *Server) Restart() error {
	err := s.Stop()
	if err == nil {
		err = datafolder.CheckAccess(filepath.Dir(s.options.StoreDir))
	}
	if err != nil {
		return err
	}
	return s.start()
}

// Stop stops the server. It waits until everything is written. The error is ErrHangs.
func (s *Server) Stop() error {
	return s.within(context.Background(), s.timeout.stop, func() error {
		if s.server != nil {
			s.server.Shutdown()
			s.server.WaitForShutdown()
			s.server = nil
		}
		return nil
	})
}

// within makes a call that may never return, with the lock held. After a while the error
// is ErrHangs, and the call goes on. A time in which the whole process was stopped counts
// as a second.
func (s *Server) within(ctx context.Context, timeout time.Duration, call func() error) error {
	if err := s.WriteError(); errors.Is(err, ErrHangs) {
		return err
	}
	done := make(chan error, 1)
	go func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		done <- call()
	}()
	for ; timeout > 0; timeout -= time.Second {
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(timeout, time.Second)):
		}
	}
	return ErrHangs
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
	_, err := s.server.GlobalAccount().RestoreStreamV2(config, snapshot)
	return err
}

// Check finds out whether a write has failed, so that the server writes no more, or
// whether it hangs.
func (s *Server) Check(ctx context.Context) error {
	err := s.within(ctx, s.timeout.check, func() error {
		if s.server == nil {
			return errNotRunning
		}
		return persistent(s.health)
	})
	s.checked.Store(&err)
	return err
}

// WriteError is what the last Check returned.
func (s *Server) WriteError() error {
	if err := s.checked.Load(); err != nil {
		return *err
	}
	return nil
}

// health makes one health check.
func (s *Server) health() error {
	if h := s.server.Healthz(nil); h.StatusCode != http.StatusOK {
		return fmt.Errorf("the embedded NATS server is not healthy: %s", h.Error)
	}
	return nil
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
