package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
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
	// URL names the servers of a NATS cluster, separated by commas, that keep
	// the store instead, for several nodes. "" means an embedded server.
	URL string
	// MaxBytes bounds an embedded store; 0 means what is usual: 256 MiB in
	// memory, most of the free room on a disk.
	MaxBytes int64
	// Logger receives the troubles of the NATS servers; nil discards them.
	Logger *slog.Logger
}

// Store is JetStream, embedded or on a cluster. It is safe for use by any
// number of goroutines.
type Store struct {
	server *natsserver.Server // nil on a cluster
	conn   *nats.Conn
	js     jetstream.JetStream
	lock   *folderLock // nil in memory
	scrap  string      // folder to remove at the end, "" on disk

	replicas int         // of everything
	troubled atomic.Bool // the last write failed
	heads    sync.Map    // of the journals that are written here: session to head

	sessions jetstream.KeyValue
	events   jetstream.Stream
	voices   jetstream.Stream
	leases   jetstream.KeyValue
	media    mediaStore
	counters jetstream.KeyValue
	secrets  jetstream.KeyValue
	places   jetstream.KeyValue // with leases and keys: only where several nodes are
	keys     jetstream.KeyValue

	leaseStream jetstream.Stream
	keyStream   jetstream.Stream
}

var (
	_ Sessions = (*Store)(nil)
	_ Journal  = (*Store)(nil)
)

// Open starts a store. A folder that another process uses is an error that
// says so and carries a hint.
func Open(ctx context.Context, o Options) (_ *Store, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{replicas: 1}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()

	if o.URL != "" {
		if o.Dir != "" { // what is not in the store is there
			if s.lock, err = lockFolder(o.Dir); err != nil {
				return nil, err
			}
		}
		s.replicas = clusterReplicas
		if err = s.join(o); err != nil {
			return nil, err
		}
		return s, s.layOutCluster(ctx)
	}
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
	if err = s.start(filepath.Join(dir, "jetstream"), o); err != nil {
		return nil, err
	}
	if err = s.layOut(ctx, storage); err != nil {
		return nil, fmt.Errorf("the store could not be opened: %w", err)
	}
	return s, nil
}

// start brings the embedded server up and connects to it without a port.
func (s *Store) start(dir string, options Options) error {
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
	switch {
	case options.MaxBytes > 0 && options.Dir == "":
		o.JetStreamMaxMemory = options.MaxBytes
	case options.MaxBytes > 0:
		o.JetStreamMaxStore = options.MaxBytes
	}
	var err error
	if s.server, err = natsserver.NewServer(o); err != nil {
		return fmt.Errorf("the store could not be set up: %w", err)
	}
	log := &serverLog{log: options.Logger, fatal: make(chan string, 1)}
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
	s.sessions, err = s.bucket(ctx, jetstream.KeyValueConfig{
		Bucket: "sessions", Storage: storage, TTL: SessionTTL, MaxValueSize: 1 << 20,
	})
	if err != nil {
		return err
	}
	s.events, err = s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: "EVENTS", Subjects: []string{eventSubject("*")}, Storage: storage, Replicas: s.replicas,
		// With replicas, reads go to their leader: see bucket.
		MaxAge: EventTTL, AllowDirect: s.replicas == 1,
	})
	if err != nil {
		return err
	}
	if err = s.layOutVoices(ctx, storage); err != nil {
		return err
	}
	if s.Shared() {
		for _, layOut := range []func(context.Context, jetstream.StorageType) error{s.layOutLeases, s.layOutPlaces, s.layOutKeys} {
			if err = layOut(ctx, storage); err != nil {
				return err
			}
		}
	}
	if err = s.layOutMedia(ctx, storage, s.replicas); err != nil {
		return err
	}
	return s.layOutCounters(ctx, storage, s.replicas)
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
