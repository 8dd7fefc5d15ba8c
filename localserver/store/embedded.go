package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"hubbub/localserver/store/backup"
	"hubbub/localserver/store/datafolder"
	"hubbub/localserver/store/embedded"
	"hubbub/protocol/diskspace"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// writeCheckInterval is how often the embedded server is checked for failed writes.
	writeCheckInterval = time.Second
	// redialPause is the time between two connection attempts.
	redialPause = 50 * time.Millisecond
	// restartPause is the time after a restart that failed.
	restartPause = 10 * time.Second
)

// openEmbedded starts an embedded server on the data folder, or in memory.
func (s *Store) openEmbedded(ctx context.Context, o Options) (err error) {
	storage := jetstream.MemoryStorage // JetStream needs a folder even so
	if o.Dir != "" {
		storage = jetstream.FileStorage
		if err = datafolder.CheckSpace(o.Dir, startSpace); err == nil {
			s.damaged, err = datafolder.Repair(o.Dir, o.Logger)
		}
		if err != nil {
			return err
		}
	}
	if s.embedded, err = embedded.Start(s.folder, o.Logger); err != nil {
		return err
	}
	if err = s.connect("", "the connection to the embedded NATS server failed", nats.InProcessServer(s.embedded),
		nats.ReconnectWait(redialPause), nats.ReconnectJitter(0, 0)); err != nil {
		return fmt.Errorf("the store does not respond: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout) // without a deadline, each call has 5 s: too little for a slow disk
	defer cancel()
	if err = s.setUp(ctx, storage); err != nil {
		return fmt.Errorf("the store could not be opened: %w", err)
	}
	// The lock excludes other processes: unfinished writes are of an earlier one.
	if _, err := s.sweepEntries(ctx, allExpired); err != nil {
		o.Logger.Warn("what was left of uploads could not be removed yet", "error", err)
	}
	if o.Dir != "" {
		s.background.Go(func() { s.restartAfterFailure(s.embedded) })
	}
	return nil
}

// restartAfterFailure restarts the embedded server after each failed write, as soon as
// the disk has space, until Close. If the server hangs, the store is lost.
func (s *Store) restartAfterFailure(server interface {
	Check(ctx context.Context) error
	Restart() error
}) {
	tick := time.NewTicker(writeCheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		err := server.Check(s.ctx)
		if err == nil || s.ctx.Err() != nil {
			continue
		}
		pause := writeCheckInterval
		if !errors.Is(err, embedded.ErrHangs) {
			if free, _, err := diskspace.Of(s.folder); err != nil || free < startSpace {
				continue
			}
			s.log.Error("the store is started again after a failed write", "error", err)
			if err = server.Restart(); err != nil {
				s.log.Error("the store could not be started again", "error", err)
				pause = restartPause
			}
		}
		if errors.Is(err, embedded.ErrHangs) {
			s.lose(err)
			return
		}
		tick.Reset(pause)
	}
}

// Backup writes a backup of the store and the other files of its data folder, which it is
// in, for backup.Restore. The store is used as before meanwhile. What was acknowledged when
// Backup was called is in it.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	s.media.backups.Add(1) // the records of media are read before their bytes
	defer s.media.backups.Add(-1)
	return backup.Write(ctx, s.js, s.folder, w)
}

// BackupFolder writes a backup of a data folder that no server uses.
func BackupFolder(ctx context.Context, dir string, w io.Writer) error {
	if _, err := os.Stat(datafolder.Streams(dir)); err != nil {
		return datafolder.NoStore(dir)
	}
	s, err := Open(ctx, Options{Dir: dir})
	if err != nil {
		return err
	}
	return errors.Join(s.Backup(ctx, w), s.Close())
}
