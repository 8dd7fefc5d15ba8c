package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"hubbub/localserver/engine"
	"hubbub/protocol/recovered"
)

// A snapshot holds the label of each of the engine's speakers and the engine's
// own snapshot of their voices. It is stored so that a later stream of the same
// account can continue with the same labels: when the stream ends, when a label
// is sent for the first time, and every few seconds while the stream runs. So a
// node that dies loses little, and no label that a client has seen is given to
// another person.

const (
	// snapshotInterval bounds how often the snapshot of a running stream is
	// stored.
	snapshotInterval = 5 * time.Second
	// supersedeTimeout bounds the wait for the end of a stream that another one
	// resumes.
	supersedeTimeout = 2 * time.Second
	// snapshotVersion is the first byte of a snapshot. One byte for each of the
	// engine's speakers follows, its label counted from 1 or 0 for none, plus
	// matchedBit, then the engine's snapshot.
	snapshotVersion = 2
	matchedBit      = 0x80
)

// Labels are the labels that a stream has given to the engine's speakers.
type Labels [engine.MaxSpeakers]Label

// Label is the label of one speaker.
type Label struct {
	Number int // counted from 1; 0 = none
	// Matched says that a start of the speaker had a match, in this stream or in one that
	// it continues: one without says that it was withdrawn.
	Matched bool
}

var errSnapshot = errors.New("the snapshot of the earlier stream cannot be used")

// Restore makes a new diarizer continue where a stored snapshot was taken, and
// returns the labels that its stream continues.
func Restore(d Diarizer, snapshot []byte) (labels Labels, err error) {
	const head = 1 + engine.MaxSpeakers
	if len(snapshot) < head || snapshot[0] != snapshotVersion {
		return labels, errSnapshot
	}
	var seen [engine.MaxSpeakers + 1]bool
	for i, raw := range snapshot[1:head] {
		label := Label{int(raw &^ matchedBit), raw&matchedBit != 0}
		if label.Number > engine.MaxSpeakers || label.Number > 0 && seen[label.Number] || label.Number == 0 && label.Matched {
			return labels, errSnapshot
		}
		seen[label.Number], labels[i] = true, label
	}
	if err := recovered.Guard(func() error { return d.RestoreSnapshot(snapshot[head:]) }); err != nil {
		return labels, fmt.Errorf("%w: %w", errSnapshot, err)
	}
	return labels, nil
}

// restore continues the labels of an earlier stream.
func (v *validator) restore(labels Labels) {
	for i, label := range labels {
		v.speakers[i].Label = label
		v.labels = max(v.labels, label.Number)
	}
}

// takeSnapshot gives the current snapshot to the snapshot writer.
func (s *Stream) takeSnapshot() {
	var snapshot []byte
	err := recovered.Guard(func() error {
		snapshot = append(make([]byte, 0, 32<<10), snapshotVersion)
		for _, sp := range s.validator.speakers {
			label := byte(sp.Number)
			if sp.Matched {
				label |= matchedBit
			}
			snapshot = append(snapshot, label)
		}
		snapshot = s.diarizer.AppendSnapshot(snapshot)
		return nil
	})
	if err != nil { // the next call of the diarizer will fail as well
		s.log.Error("panic in the engine", "error", err)
		return
	}
	s.snapshots.put(snapshot, s.received)
}

// Supersede ends the stream because another one resumes it, and waits until its
// last snapshot is stored, or ctx ends. A client that does not read is disconnected,
// so that the stream does not wait for it.
func (s *Stream) Supersede(ctx context.Context) {
	s.log.Info("stream is resumed by another one")
	s.supersede()
	ctx, cancel := context.WithTimeout(ctx, supersedeTimeout)
	defer cancel()
	defer time.AfterFunc(supersedeTimeout/2, func() { abort(s.conn) }).Stop()
	s.snapshots.wait(ctx)
}

// snapshotWriter stores the snapshots of one stream in a goroutine of its own:
// a slow store does not delay the stream, and gets the newest snapshot when it
// is back.
type snapshotWriter struct {
	store  Store
	id     string
	log    *slog.Logger
	next   time.Time          // of the next regular snapshot
	labels int                // labels in the newest snapshot
	queue  chan takenSnapshot // the newest snapshot that is not being written
	done   chan struct{}      // closed when nothing more is written
}

// takenSnapshot is a snapshot, and how much audio the stream had received.
type takenSnapshot struct {
	data     []byte
	received time.Duration
}

func startSnapshotWriter(s Store, id string, log *slog.Logger) *snapshotWriter {
	w := &snapshotWriter{store: s, id: id, log: log, next: time.Now().Add(snapshotInterval),
		queue: make(chan takenSnapshot, 1), done: make(chan struct{})}
	go w.run()
	return w
}

func (w *snapshotWriter) run() {
	defer close(w.done)
	failing := false
	for snapshot := range w.queue {
		ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
		err := w.store.PutSnapshot(ctx, w.id, snapshot.data, snapshot.received)
		cancel()
		if err != nil && !failing {
			w.log.Warn("the snapshot of a stream could not be stored; the next one replaces it", "error", err)
		}
		failing = err != nil
	}
}

// due reports whether a stream that has sent so many labels needs a snapshot.
func (w *snapshotWriter) due(labels int) bool {
	if labels == w.labels && time.Now().Before(w.next) {
		return false
	}
	w.labels, w.next = labels, time.Now().Add(snapshotInterval)
	return true
}

// put takes a snapshot. It never waits: it replaces a snapshot that has not been written
// yet.
func (w *snapshotWriter) put(snapshot []byte, received time.Duration) {
	for {
		select {
		case w.queue <- takenSnapshot{snapshot, received}:
			return
		default:
		}
		select {
		case <-w.queue:
		default:
		}
	}
}

// finish says that no more snapshots follow.
func (w *snapshotWriter) finish() { close(w.queue) }

// wait waits until every snapshot is written or given up, or ctx ends.
func (w *snapshotWriter) wait(ctx context.Context) { waitFor(ctx, w.done) }
