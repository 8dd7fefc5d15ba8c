package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// startTimeout bounds the start of the embedded server, which replays
	// what is on disk.
	startTimeout = 30 * time.Second
	// memoryLimit bounds a store in memory.
	memoryLimit = 256 << 20
)

// Options say where the store is.
type Options struct {
	// Dir is the folder of a store on disk; it belongs to one process at a
	// time and is made if it is not there. "" keeps the store in memory.
	Dir string
	// Logger receives the troubles of the embedded server; nil discards them.
	Logger *slog.Logger
}

// Store is an embedded JetStream. It is Sessions, Tokens and Journal, and safe
// for use by any number of goroutines.
type Store struct {
	server *natsserver.Server
	conn   *nats.Conn
	js     jetstream.JetStream
	lock   *folderLock // nil in memory
	scrap  string      // folder to remove at the end, "" on disk

	sessions jetstream.KeyValue
	tokens   jetstream.KeyValue
	events   jetstream.Stream
	media    mediaStore
	counters jetstream.KeyValue
	secrets  jetstream.KeyValue
}

var (
	_ Sessions = (*Store)(nil)
	_ Tokens   = (*Store)(nil)
	_ Journal  = (*Store)(nil)
)

// Open starts a store. A folder that another process uses is an error that
// says so and carries a hint.
func Open(ctx context.Context, o Options) (_ *Store, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()

	dir, storage := o.Dir, jetstream.FileStorage
	if dir == "" {
		storage = jetstream.MemoryStorage
		// JetStream wants a folder even for what never leaves memory.
		if dir, err = os.MkdirTemp("", "hubbub-store-"); err != nil {
			return nil, &hinted{fmt.Errorf("no room for the store: %w", err),
				"Make the folder for temporary files writable, or set TMPDIR."}
		}
		s.scrap = dir
	} else if s.lock, err = lockFolder(dir); err != nil {
		return nil, err
	}
	if err = s.start(filepath.Join(dir, "jetstream"), o.Logger); err != nil {
		return nil, err
	}
	if err = s.layOut(ctx, storage); err != nil {
		return nil, fmt.Errorf("the store could not be opened: %w", err)
	}
	return s, nil
}

// start brings the embedded server up and connects to it without a port.
func (s *Store) start(dir string, logger *slog.Logger) error {
	o := &natsserver.Options{
		ServerName:         "hubbub",
		DontListen:         true,
		NoSigs:             true,
		JetStream:          true,
		StoreDir:           dir,
		SyncAlways:         true, // by default an acknowledged write may wait two minutes for the disk
		JetStreamMaxMemory: memoryLimit,
		JetStreamMaxStore:  -1,
	}
	var err error
	if s.server, err = natsserver.NewServer(o); err != nil {
		return fmt.Errorf("the store could not be set up: %w", err)
	}
	log := &serverLog{log: logger, fatal: make(chan string, 1)}
	s.server.SetLoggerV2(log, false, false, false)
	s.server.Start()
	if !s.server.ReadyForConnections(startTimeout) || !s.server.JetStreamEnabled() {
		return &hinted{fmt.Errorf("the store could not be started: %s", log.cause()),
			"Check that its folder is writable and has room."}
	}
	s.conn, err = nats.Connect("", nats.InProcessServer(s.server), nats.Name("hubbub"),
		nats.MaxReconnects(-1))
	if err != nil {
		return fmt.Errorf("the store does not answer: %w", err)
	}
	s.js, err = jetstream.New(s.conn)
	return err
}

// layOut makes the buckets and the stream of events, or finds them.
func (s *Store) layOut(ctx context.Context, storage jetstream.StorageType) error {
	var err error
	s.sessions, err = s.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: "sessions", Storage: storage, TTL: SessionTTL, MaxValueSize: 1 << 20,
	})
	if err != nil {
		return err
	}
	s.tokens, err = s.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		// The marker that a redeemed token leaves has to outlive the token.
		Bucket: "tokens", Storage: storage, TTL: 2 * TokenTTL, MaxValueSize: 1 << 10,
	})
	if err != nil {
		return err
	}
	s.events, err = s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: "EVENTS", Subjects: []string{eventSubject("*")}, Storage: storage,
		MaxAge: EventTTL, AllowDirect: true,
	})
	if err != nil {
		return err
	}
	if err = s.layOutMedia(ctx, storage, 1); err != nil {
		return err
	}
	return s.layOutCounters(ctx, storage, 1)
}

// Ping asks the store for a sign of life.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.js.AccountInfo(ctx)
	return err
}

// Close stops the store and gives its folder back. It waits until everything
// is written.
func (s *Store) Close() error {
	if s.conn != nil {
		s.conn.Close()
	}
	if s.server != nil {
		s.server.Shutdown()
		s.server.WaitForShutdown()
	}
	var errs []error
	if s.lock != nil {
		errs = append(errs, s.lock.release())
	}
	if s.scrap != "" {
		errs = append(errs, os.RemoveAll(s.scrap))
	}
	return errors.Join(errs...)
}
