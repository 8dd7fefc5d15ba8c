package store

import (
	"context"
	"errors"
	"fmt"
	"math"

	"hubbub/localserver/store/datafolder"
	"hubbub/localserver/store/embedded"
	"hubbub/protocol/diskspace"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// The reserve is what new streams must leave free for those that run: a
	// twentieth of the disk or of the memory, within these bounds and at most an
	// eighth of it.
	leastReserve = 8 << 20
	mostReserve  = 256 << 20
	// recordSpace is what a new stream or job is counted as: the largest input.
	recordSpace = 256 << 10
	// smallRequest is how many bytes the record of a new stream or job has in ordinary use.
	smallRequest = 4 << 10
	// startSpace is the free disk space, in bytes, that a start needs, and a deletion.
	startSpace = 1 << 20
)

// errFull is a store without space for new work.
var errFull = errors.New("the store is full")

// reserve is how much of a total new work must leave free, in bytes.
func reserve(total int64) int64 {
	return min(max(total/20, leastReserve), mostReserve, total/8)
}

// space returns how many bytes an embedded store can still write, and out of
// how many. A cluster enforces limits of its own: there it is unlimited.
func (s *Store) space(ctx context.Context) (free, total int64, err error) {
	if !s.onDisk() {
		info, err := s.js.AccountInfo(ctx)
		if err != nil {
			return 0, 0, wrap("measure the store", err)
		}
		return embedded.MemoryLimit - int64(info.Memory), embedded.MemoryLimit, nil
	}
	if free, total, err = diskspace.Of(s.folder); err != nil { // it is not known here
		return math.MaxInt64, math.MaxInt64, nil
	}
	return free, total, nil
}

// How many reserves new work must leave free: media and large requests leave one for new
// streams, and most of it for streams that resume another one.
const (
	forStreams = 1.0
	forResumed = 1.25
	forMedia   = 2.0
)

// admit fails with errFull if new work of n bytes would leave less than some
// reserves free. What finishes running streams does not ask.
func (s *Store) admit(ctx context.Context, n int64, reserves float64) error {
	if s.Shared() {
		return nil
	}
	free, total, err := s.space(ctx)
	if err != nil {
		return err
	}
	return within(free, total, n, reserves)
}

// admitRequest admits a new stream or job whose record has so many bytes. Records are stored
// for two days, and no quota counts them. So large ones leave space for small ones, those that
// resume a stream the least: one account cannot stop the streams of all.
func (s *Store) admitRequest(ctx context.Context, size int, resumes bool) error {
	switch {
	case size <= smallRequest:
		return s.admit(ctx, recordSpace, forStreams)
	case resumes: // with its voiceprints
		return s.admit(ctx, recordSpace, forResumed)
	}
	return s.admit(ctx, recordSpace, forMedia)
}

// AdmitDeletion fails with errFull while the disk has no space for what a deletion writes.
// The embedded server does not respond to a write that fails, and if it then removes
// something, it hangs (embedded.ErrHangs).
func (s *Store) AdmitDeletion() error { return s.checkDisk(startSpace) }

// checkDisk fails with errFull if the disk has less than so many bytes free.
func (s *Store) checkDisk(need int64) error {
	if !s.onDisk() {
		return nil
	}
	if err := datafolder.CheckSpace(s.folder, need); err != nil {
		return fmt.Errorf("%w: %w", errFull, err)
	}
	return nil
}

// removable is a NATS stream of which nothing is removed while its disk has no space.
type removable struct {
	jetstream.Stream
	store *Store
}

func (r removable) Purge(ctx context.Context, opts ...jetstream.StreamPurgeOpt) error {
	if err := r.store.AdmitDeletion(); err != nil {
		return err
	}
	return r.Stream.Purge(ctx, opts...)
}

// Info is that of the leader. While there is none, a NATS server also returns that of a replica,
// which may be behind.
func (r removable) Info(ctx context.Context, opts ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	info, err := r.Stream.Info(ctx, opts...)
	if err == nil && info.Cluster != nil && info.Cluster.Leader == "" {
		return nil, nats.ErrNoResponders
	}
	return info, err
}

// SecureDeleteMsg removes a message and overwrites its bytes, for which the NATS server writes
// another copy of its block. It would take a message whose bytes could not be overwritten for
// removed, until it is started again.
func (r removable) SecureDeleteMsg(ctx context.Context, seq uint64) error {
	need := int64(startSpace)
	if r.store.onDisk() {
		need += datafolder.LargestBlock(r.store.folder, r.CachedInfo().Config.Name)
	}
	if err := r.store.checkDisk(need); err != nil {
		return err
	}
	return r.Stream.SecureDeleteMsg(ctx, seq)
}

// AdmitFile fails if n more bytes in a file of a folder would take the space
// that streams need. It is for files that the store does not write, on its disk.
func AdmitFile(dir string, n int64) error {
	free, total, err := diskspace.Of(dir)
	if err != nil { // it is not known here
		return nil
	}
	return within(free, total, n, forStreams)
}

func within(free, total, n int64, reserves float64) error {
	if keep := int64(reserves * float64(reserve(total))); free-n < keep {
		return fmt.Errorf("%w: %d KiB are free, %d KiB are reserved", errFull, max(free, 0)>>10, keep>>10)
	}
	return nil
}

// Full reports whether an error says that there is no space.
func Full(err error) bool {
	return errors.Is(err, errFull) || hasCode(err, codeNoMemory, codeNoRoom, codeNotStored, codeResources)
}
