// Package store keeps what must outlive a request: streams with the tokens
// that open them, the events of each stream, snapshots of speakers, media, jobs with
// their queues, counters and keys.
//
// It is built on NATS JetStream, in one of three forms: embedded in the process
// and in memory, embedded and on disk with every write synced, or on a cluster
// of NATS servers with three replicas, shared by several nodes. The embedded
// server listens on no port.
//
// A call that returned nil has been written; on disk it survives a kill at any
// moment. Everything but secrets and keys expires, so that a store does not grow without
// bound: see streamTTL, eventTTL, snapshotTTL, MediaTTL and JobTTL.
//
// A call without a response is made again until its context ends, and finds out
// whether an earlier attempt was carried out. If that remains open, Unknown
// reports so.
//
// Each kind of record has files of its own, such as streams.go, journal.go for events, and
// media.go; kinds.go lists them with their limits. bucket.go has what they share: keys,
// compare-and-set and listing; retry.go repeats calls, space.go refuses what a full disk has
// no room for.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"hubbub/protocol/hint"

	"hubbub/localserver/store/datafolder"
	"hubbub/localserver/store/embedded"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// startTimeout bounds the set-up of the store. On a busy machine, nodes that were started at once on a new cluster needed more
// than half of it.
const startTimeout = time.Minute

var (
	// ErrNotFound is a stream, object, job or snapshot that does not exist or has
	// expired.
	ErrNotFound = errors.New("not found")
	// ErrConflict is a step that the current status or contents do not allow: another
	// caller has changed them.
	ErrConflict = errors.New("changed meanwhile")
	// ErrToken is a token that opens nothing: wrong, used, expired or of
	// another stream. It does not say which.
	ErrToken = errors.New("the token is not valid")
)

// Options say where the store is.
type Options struct {
	// Dir is the folder of a store on disk; it belongs to one process at a
	// time and is created if needed. "" keeps the store in memory.
	Dir string
	// URL names the servers of a NATS cluster, separated by commas, that hold
	// the store instead, shared by several nodes. "" means an embedded server.
	URL string
	// AccountStorage bounds the media of each account, in bytes. 0 means no
	// limit.
	AccountStorage int64
	// Logger receives the problems of the NATS servers; nil discards them.
	Logger *slog.Logger
	// OnError, unless nil, is called with the name of each call that fails.
	// Results that are part of normal operation, such as ErrNotFound, are no
	// failures.
	OnError func(call string)
}

// Store is JetStream, embedded or on a cluster. It is safe for concurrent use.
type Store struct {
	embedded *embedded.Server // nil on a cluster
	conn     *nats.Conn
	js       jetstream.JetStream
	lock     *datafolder.Lock // of folder
	folder   string           // the data folder, or one for this process
	scratch  bool             // folder is removed at the end
	onError  func(call string)
	log      *slog.Logger

	ctx        context.Context // canceled by Close
	cancel     context.CancelFunc
	background sync.WaitGroup
	probes     probes
	damaged    int64 // bytes of records

	lost context.Context // canceled by lose, with the cause
	lose context.CancelCauseFunc

	kinds    []kind   // of what is stored
	replicas int      // of everything
	tails    sync.Map // of the journals that this process writes: stream to tail; Finish forgets them
	ignored  sync.Map // keys of the records that cannot be read, when it was logged

	streams   bucket
	events    removable
	snapshots bucket
	media     mediaStore
	counters  bucket
	secrets   bucket
	jobs      bucket
	queued    removable
	queues    map[Queue]jetstream.Consumer

	// On a cluster only:
	quotas bucket
	leases bucket
	keys   bucket
}

// Open starts a store. If another process uses the folder, the error says so
// and carries a hint.
func Open(ctx context.Context, o Options) (_ *Store, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnError == nil {
		o.OnError = func(string) {}
	}
	s := &Store{replicas: 1, onError: o.OnError, log: o.Logger}
	s.lost, s.lose = context.WithCancelCause(context.Background())
	s.media.quota, s.media.readers = o.AccountStorage, map[string]int{}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	defer func() {
		if err == nil {
			return
		}
		_ = s.Close()
		switch full := datafolder.CheckSpace(o.Dir, leastReserve); {
		case hint.Of(err) != "":
		case full != nil:
			o.Logger.Error("the store could not be opened", "error", err)
			err = full // the likely cause
		case o.URL == "":
			err = hint.Add(err, "Check the data folder, or without one the folder for temporary files, and its disk.")
		}
	}()

	if err = s.lockFolder(o.Dir); err != nil {
		return nil, err
	}
	if o.URL != "" {
		err = s.openCluster(ctx, o)
	} else {
		err = s.openEmbedded(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// lockFolder locks the data folder, or a new one for this process.
func (s *Store) lockFolder(dir string) (err error) {
	s.folder = dir
	if s.scratch = dir == ""; s.scratch {
		datafolder.RemoveScratch()
		if s.folder, err = os.MkdirTemp("", datafolder.ScratchPrefix); err != nil {
			return hint.Add(fmt.Errorf("no temporary folder for the server: %w", err),
				"Make the folder for temporary files writable, or set TMPDIR.")
		}
	}
	s.lock, err = datafolder.Acquire(s.folder)
	return err
}

// Folder is the folder for files that this process alone uses: the data folder, or a
// temporary one that is removed at the end, also that of a process that was killed.
func (s *Store) Folder() string { return s.folder }

// Shared reports whether other nodes may use this store.
func (s *Store) Shared() bool { return s.embedded == nil }

// onDisk reports whether the store is in the data folder.
func (s *Store) onDisk() bool { return !s.Shared() && !s.scratch }

// closed handles the end of the connection to the NATS servers. The client
// closes it by itself after errors that a new connection would not cure.
func (s *Store) closed(conn *nats.Conn) {
	if s.ctx.Err() == nil {
		s.lose(fmt.Errorf("the connection was closed: %w", cmp.Or(conn.LastError(), nats.ErrConnectionClosed)))
	}
}

// Lost is closed when the store cannot be used any more until another process opens it,
// and Close was not called: the NATS client gives up the connection, or the embedded
// server hangs. Err says why.
func (s *Store) Lost() <-chan struct{} { return s.lost.Done() }

// Err is nil until the store is lost or closed.
func (s *Store) Err() error {
	err := context.Cause(s.lost)
	if err == nil && s.conn.IsClosed() {
		err = nats.ErrConnectionClosed
	}
	return err
}

// Close stops the store and releases its folder. It waits until everything is
// written. The folder of an embedded server that hangs remains locked.
func (s *Store) Close() error {
	s.cancel()
	s.background.Wait()
	if s.conn != nil {
		s.conn.Close()
	}
	if s.embedded != nil {
		if err := s.embedded.Stop(); err != nil {
			return err
		}
	}
	var errs []error
	if s.lock != nil {
		errs = append(errs, s.lock.Release())
	}
	if s.scratch {
		errs = append(errs, os.RemoveAll(s.folder))
	}
	return errors.Join(errs...)
}

// probeKey is a key that no secret has.
const probeKey = "probe"

// probeInterval is how often Ping writes at most: anybody may ask for it.
const probeInterval = time.Second

// probes is the outcome of the last write of a Ping.
type probes struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// Ping returns an error unless the store takes new work: it responds, has space
// above its reserve, and takes a write.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.Err(); err != nil { // newer than the last write
		return wrap("write to the store", err)
	}
	if err := s.admit(ctx, recordSpace, forStreams); err != nil {
		return err
	}
	if s.embedded != nil {
		if err := s.embedded.WriteError(); err != nil {
			return err
		}
	}
	p := &s.probes
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) < probeInterval {
		return p.err
	}
	err := wrap("write to the store", s.secrets.Put(ctx, probeKey, nil))
	if !errors.Is(err, context.Canceled) { // says nothing about the store
		p.at, p.err = time.Now(), err
	}
	return err
}

// Damaged returns how many bytes were not intact when the store was opened; media are checked
// then only after a crash.
func (s *Store) Damaged() int64 { return s.damaged }
