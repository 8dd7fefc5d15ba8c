package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"hubbub/protocol/hint"

	"hubbub/localserver/store/datafolder"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// startTimeout bounds the start of the embedded server, which replays
	// what is on disk.
	startTimeout = 30 * time.Second
	// memoryLimit bounds a store in memory.
	memoryLimit = 256 << 20
	// noLimit is a bound that no disk reaches: admit watches the free space.
	noLimit = 1 << 60
	// tendEvery is how often the embedded server is checked for failed writes.
	tendEvery = time.Second
	// redialPause is the time between two connection attempts.
	redialPause = 50 * time.Millisecond
)

// embedded is the NATS server in this process. After a failed write a NATS
// server writes no more to that stream until it is started again, also when the
// disk has space again; tend starts it again then. The connection to it
// survives this: it asks for a new one here.
type embedded struct {
	options *natsserver.Options
	log     *serverLog

	mu     sync.Mutex
	server *natsserver.Server // nil after a start that failed
}

// newEmbedded starts a server that stores everything below dir.
func newEmbedded(dir string, log *serverLog) (*embedded, error) {
	e := &embedded{log: log, options: &natsserver.Options{
		ServerName:         "hubbub",
		DontListen:         true,
		NoSigs:             true,
		JetStream:          true,
		StoreDir:           filepath.Join(dir, datafolder.JetStream),
		SyncAlways:         true, // by default an acknowledged write may wait two minutes for the disk
		JetStreamMaxMemory: memoryLimit,
		JetStreamMaxStore:  -1,
	}}
	if _, _, err := datafolder.Space(dir); err == nil {
		e.options.JetStreamMaxStore = noLimit
	}
	return e, e.start()
}

// start starts the server. A panic of it is an error.
func (e *embedded) start() (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
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
	if server, err = natsserver.NewServer(e.options.Clone()); err != nil {
		return err
	}
	server.SetLoggerV2(e.log, false, false, false)
	server.Start()
	if !server.ReadyForConnections(startTimeout) || !server.JetStreamEnabled() {
		return errors.New(e.log.cause())
	}
	e.server = server
	return nil
}

// stop stops the server. It waits until everything is written.
func (e *embedded) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server != nil {
		e.server.Shutdown()
		e.server.WaitForShutdown()
		e.server = nil
	}
}

var errNotRunning = errors.New("the embedded NATS server does not run")

// InProcessConn connects to the server that runs now.
func (e *embedded) InProcessConn() (net.Conn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server == nil {
		return nil, errNotRunning
	}
	return e.server.InProcessConn()
}

// writeError is not nil when a write has failed and the server writes no more.
func (e *embedded) writeError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server == nil {
		return errNotRunning
	}
	return lasting(func() error {
		health := healthAnswer{header: http.Header{}}
		r, err := http.NewRequest(http.MethodGet, "/healthz", nil)
		if err != nil {
			return err
		}
		e.server.HandleHealthz(&health, r)
		if health.status == 0 || health.status == http.StatusOK {
			return nil
		}
		return fmt.Errorf("the embedded NATS server is not healthy: %s", health.body)
	})
}

// healthChecks is how many health checks in a row have to fail. One of them
// waits for a millisecond and can fail on a busy machine.
const healthChecks = 10

// lasting returns the error of a check that fails every time.
func lasting(check func() error) (err error) {
	for range healthChecks {
		if err = check(); err == nil {
			return nil
		}
	}
	return err
}

// healthAnswer takes the answer of the server to a health check, which it gives
// over HTTP alone.
type healthAnswer struct {
	header http.Header
	status int
	body   []byte
}

func (h *healthAnswer) Header() http.Header    { return h.header }
func (h *healthAnswer) WriteHeader(status int) { h.status = status }
func (h *healthAnswer) Write(b []byte) (int, error) {
	h.body = append(h.body, b...)
	return len(b), nil
}

// tend starts the embedded server again after a failed write, as soon as the
// disk has space, until Close.
func (s *Store) tend() {
	defer s.background.Done()
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		err := s.embedded.writeError()
		if err == nil {
			continue
		}
		if free, _, err := datafolder.Space(s.dir); err != nil || free < startSpace {
			continue
		}
		s.log.Error("the store is started again after a failed write", "error", err)
		if err := s.restart(); err != nil && s.ctx.Err() == nil {
			s.log.Error("the store could not be started again", "error", err)
		}
	}
}

func (s *Store) restart() error {
	s.embedded.stop()
	if err := s.embedded.start(); err != nil {
		return err
	}
	// What was in memory is gone: it is set up again, into handles of no use.
	again := &Store{embedded: s.embedded, js: s.js, replicas: s.replicas}
	ctx, cancel := context.WithTimeout(s.ctx, startTimeout)
	defer cancel()
	return retry(ctx, func(ctx context.Context) error { return again.setUp(ctx, jetstream.FileStorage) })
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

// cause is the fatal error, if there was one.
func (l *serverLog) cause() string {
	select {
	case s := <-l.fatal:
		return s
	default:
		return "it was not ready in time"
	}
}
