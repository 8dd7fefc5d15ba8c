package store

import (
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"hubbub/localserver/store/datafolder"
)

// kind is a NATS stream of the store, and the bucket whose values it holds; nil if it is none.
// Its names are those of data folders and clusters that exist: they stay, whatever the code
// calls it.
type kind struct {
	jetstream.StreamConfig
	to     *removable
	bucket *bucket
}

// allKinds are what every store has. Counters are in memory, so that a request costs no disk
// write; those of a store that is not shared are empty, because a server alone counts by itself.
func (s *Store) allKinds(storage jetstream.StorageType) []kind {
	var mediaBytes, snapshotBytes int64 // 0 = no limit
	if storage == jetstream.MemoryStorage {
		mediaBytes, snapshotBytes = MediaMemory+chunksOverhead, snapshotMemory
	}
	return []kind{
		{to: &s.events, StreamConfig: jetstream.StreamConfig{
			Name: "EVENTS", Subjects: []string{"hubbub.events.*"}, Storage: storage, MaxAge: eventTTL}},
		{to: &s.media.chunks, StreamConfig: jetstream.StreamConfig{
			Name: datafolder.MediaStream, Subjects: []string{"hubbub.media.*.*"}, Storage: storage, MaxAge: mediaAge,
			// A full store accepts nothing new rather than removing something.
			MaxBytes: mediaBytes, Discard: jetstream.DiscardNew}},
		{to: &s.queued, StreamConfig: jetstream.StreamConfig{
			Name: jobStream, Subjects: []string{"hubbub.jobs.*.*"}, Storage: storage, MaxAge: queueAge,
			Retention: jetstream.WorkQueuePolicy, MaxMsgs: maxQueuedTotal, MaxMsgsPerSubject: maxQueued,
			MaxMsgSize: maxJob, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true}},
		bucketKind(&s.streams, "sessions", storage, streamTTL, 1<<20, 0),
		bucketKind(&s.snapshots, "voices", storage, snapshotTTL, maxSnapshot, snapshotBytes),
		bucketKind(&s.media.names, "media", storage, mediaAge, 16<<10, 0),
		bucketKind(&s.jobs, "jobs", storage, jobAge, maxJob, 0),
		bucketKind(&s.secrets, "secrets", storage, 0, 1<<10, 0),
		bucketKind(&s.counters, "counters", jetstream.MemoryStorage, counterTTL, useBytes*MaxCounted, 0),
	}
}

// sharedKinds are what the nodes of a cluster have in addition. Leases are in memory, because
// they are renewed every second or so.
func (s *Store) sharedKinds(storage jetstream.StorageType) []kind {
	return []kind{
		bucketKind(&s.leases, "leases", jetstream.MemoryStorage, leaseTTL, 1<<10, 0),
		bucketKind(&s.quotas, "places", storage, streamTTL, 1<<20, 0),
		bucketKind(&s.keys, "keys", storage, 0, 16<<10, 0),
	}
}

// bucketKind is a bucket. ttl is that of a value from its last write, 0 if it does not expire.
// maxBytes bounds all values, of which the oldest are removed, 0 = no limit.
func bucketKind(to *bucket, name string, storage jetstream.StorageType, ttl time.Duration, maxValue int32, maxBytes int64) kind {
	to.prefix = "$KV." + name + "."
	return kind{to: &to.stream, bucket: to, StreamConfig: jetstream.StreamConfig{
		Name: "KV_" + name, Subjects: []string{to.prefix + ">"}, Storage: storage, MaxAge: ttl,
		MaxMsgsPerSubject: 1, MaxMsgSize: maxValue, MaxBytes: maxBytes, AllowRollup: true, DenyDelete: true}}
}

// setUp creates everything, or finds it: all at once, because on a cluster a creation may get
// no response when another node makes the same one.
func (s *Store) setUp(ctx context.Context, storage jetstream.StorageType) error {
	s.kinds = s.allKinds(storage)
	if s.Shared() {
		s.kinds = append(s.kinds, s.sharedKinds(storage)...)
	}
	var group errgroup.Group
	for _, k := range s.kinds {
		group.Go(func() error { return s.setUpKind(ctx, k) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return s.setUpQueues(ctx)
}

// setUpKind creates a NATS stream, or finds it. With replicas, reads go to their leader:
// another replica may be behind, and then a record that was just acknowledged would not be
// found. So it is no CreateOrUpdateKeyValue, which always allows direct reads.
func (s *Store) setUpKind(ctx context.Context, k kind) error {
	k.Replicas, k.AllowDirect = s.replicas, s.replicas == 1
	stream, err := s.js.CreateOrUpdateStream(ctx, k.StreamConfig)
	*k.to = removable{stream, s}
	if err == nil && k.bucket != nil {
		k.bucket.kv, err = s.js.KeyValue(ctx, strings.TrimPrefix(k.Name, "KV_"))
	}
	return err
}
