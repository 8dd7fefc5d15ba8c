package localserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"hubbub/localserver/engine"
	"hubbub/localserver/store"
)

// What a stream's engine knows of the voices in it is kept in the store, so
// that a later stream of the same account can go on with the same labels: when
// the stream ends, at once when a label is told for the first time, and every few
// seconds while it runs, so that a node that dies takes little with it, and a
// label that somebody has seen only in the moment before it is written.

const (
	// voicesEvery bounds how often the voices of a running stream are written.
	voicesEvery = 5 * time.Second
	// supersedeTimeout bounds the wait for the end of a stream that another
	// one takes up.
	supersedeTimeout = 2 * time.Second
	// ledgerForm is the first byte of what is kept; a label for each of the
	// engine's speakers follows, counted from 1, then the engine's own form.
	ledgerForm = 1
)

// rememberer is a Diarizer whose voices can be kept: engine.Engine.
type rememberer interface {
	AppendVoices(out []byte) []byte
	RestoreVoices(snapshot []byte) error
}

// voiceKeeper writes the voices of one stream beside it: a store that is slow
// does not hold the stream up, and gets the newest snapshot when it is back.
// All methods may be called on nil, which keeps nothing.
type voiceKeeper struct {
	store store.Voices
	id    string
	log   *slog.Logger
	next  time.Time     // when the worker looks again
	told  int           // labels at that time
	sum   uint32        // of the newest snapshot
	queue chan []byte   // holds the newest one that is not being written
	done  chan struct{} // closed when nothing more is written
}

func newVoiceKeeper(s store.Voices, id string, log *slog.Logger) *voiceKeeper {
	k := &voiceKeeper{store: s, id: id, log: log, next: time.Now().Add(voicesEvery),
		queue: make(chan []byte, 1), done: make(chan struct{})}
	go k.run()
	return k
}

func (k *voiceKeeper) run() {
	defer close(k.done)
	for snapshot := range k.queue {
		ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
		err := k.store.KeepVoices(ctx, k.id, snapshot)
		cancel()
		if err != nil {
			k.log.Warn("the voices of a stream could not be kept", "error", err)
		}
	}
}

// due tells whether it is time for a snapshot of a stream that has told so many
// labels.
func (k *voiceKeeper) due(labels int) bool {
	if k == nil || labels == k.told && time.Now().Before(k.next) {
		return false
	}
	k.told, k.next = labels, time.Now().Add(voicesEvery)
	return true
}

// put takes a snapshot that differs from the one before. It never waits: one
// that has not been written yet makes room.
func (k *voiceKeeper) put(snapshot []byte) {
	sum := crc32.ChecksumIEEE(snapshot)
	if sum == k.sum {
		return
	}
	k.sum = sum
	for {
		select {
		case k.queue <- snapshot:
			return
		default:
		}
		select {
		case <-k.queue:
		default:
		}
	}
}

// finish says that there is no more.
func (k *voiceKeeper) finish() {
	if k != nil {
		close(k.queue)
	}
}

// wait waits until everything is written or given up, or ctx ends.
func (k *voiceKeeper) wait(ctx context.Context) {
	if k == nil {
		return
	}
	select {
	case <-k.done:
	case <-ctx.Done():
	}
}

// keepVoices takes a snapshot of the stream's voices.
func (s *session) keepVoices() {
	if s.voices == nil {
		return
	}
	var snapshot []byte
	err := guarded(func() {
		snapshot = s.diarizer.(rememberer).AppendVoices(s.ledger.appendLabels(make([]byte, 0, 32<<10)))
	})
	if err != nil { // the engine's next call will say so as well
		s.log.Error("panic in the engine", "error", err)
		return
	}
	s.voices.put(snapshot)
}

// appendLabels appends which label each of the engine's speakers has.
func (l *ledger) appendLabels(out []byte) []byte {
	out = append(out, ledgerForm)
	for i := range l.voices {
		out = append(out, byte(l.voices[i].label))
	}
	return out
}

// resumption is what a stream takes up of an earlier one.
type resumption struct {
	ledger ledger
	engine []byte
}

var errVoices = errors.New("the voices of the earlier stream cannot be used")

// parseVoices takes apart what keepVoices wrote.
func parseVoices(raw []byte) (r resumption, err error) {
	const head = 1 + engine.MaxSpeakers
	if len(raw) < head || raw[0] != ledgerForm {
		return r, errVoices
	}
	for i, label := range raw[1:head] {
		if int(label) > engine.MaxSpeakers || label > 0 && slices.Contains(raw[1:1+i], label) {
			return r, errVoices
		}
		r.ledger.voices[i].label = int(label)
		r.ledger.labels = max(r.ledger.labels, int(label))
	}
	r.engine = raw[head:]
	return r, nil
}

// resumable is the id of the stream that the body of POST /v1/live asks to go
// on with, if its voices are there and the caller's; else "".
func (s *Server) resumable(ctx context.Context, account string, input json.RawMessage) string {
	var asked struct {
		Resume any `json:"resume"`
	}
	_ = json.Unmarshal(input, &asked) // an object, but perhaps of other meaning
	text, _ := asked.Resume.(string)
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text {
		return ""
	}
	rec, err := s.sessions.Get(ctx, text)
	if err != nil || rec.Account != account {
		return ""
	}
	if old, ok := s.running.Load(text); ok && old.(*session).voices != nil {
		return text // it writes them down when it is taken up
	}
	raw, err := s.voices.ReadVoices(ctx, text)
	if err == nil {
		_, err = s.restore(raw)
	}
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			s.log.Warn("a stream cannot be taken up", "stream", text, "error", err)
		}
		return ""
	}
	return text
}

// restored makes the engine of a stream that goes on with the voices of an
// earlier one. That one ends, should it still be open: its client has lost it.
func (s *Server) restored(ctx context.Context, earlier string) (Diarizer, ledger, error) {
	if old, ok := s.running.Load(earlier); ok {
		old := old.(*session)
		old.log.Info("stream taken up by another one")
		cutOff(old.conn)
		ctx, cancel := context.WithTimeout(ctx, supersedeTimeout)
		defer cancel()
		old.voices.wait(ctx)
	}
	raw, err := s.voices.ReadVoices(ctx, earlier)
	if err != nil {
		return nil, ledger{}, err
	}
	d, err := s.restore(raw)
	if err != nil {
		return nil, ledger{}, err
	}
	r, err := parseVoices(raw)
	return d, r.ledger, err
}

// restore makes an engine that knows the voices of a snapshot.
func (s *Server) restore(raw []byte) (Diarizer, error) {
	r, err := parseVoices(raw)
	if err != nil {
		return nil, err
	}
	d, err := s.newDiarizer()
	if err != nil {
		return nil, err
	}
	m, ok := d.(rememberer)
	if !ok {
		return nil, errVoices
	}
	if broken := guarded(func() { err = m.RestoreVoices(r.engine) }); broken != nil {
		err = broken
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errVoices, err)
	}
	return d, nil
}
