package voices

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
	"hubbub/protocol/hint"
)

// MaxSeconds is the longest speech that a voice is learnt from.
const MaxSeconds = voiceprint.MaxSeconds

// Learner learns voices of the speakers of one session, and corrects what it has
// learnt when its user corrects their names. Any goroutine may use it.
type Learner struct {
	store Store
	asks  atomic.Bool
	list  atomic.Pointer[[]Voice]                                // that are stored, as far as this session knows
	make  func(samples []float32) (voiceprint.Voiceprint, error) // voiceprint.Make

	mu      sync.Mutex
	learnt  map[string]learnt // by label
	deleted map[string]Voice  // by label: learnt before, and deleted by Correct
}

// learnt is a voice that was learnt in this session.
type learnt struct {
	voice  Voice
	before *Voice // that it has replaced; nil = none
}

// NewLearner is the learner of a session that begins now.
func NewLearner(s Store) *Learner {
	l := &Learner{store: s, make: voiceprint.Make, learnt: map[string]learnt{}, deleted: map[string]Voice{}}
	l.asks.Store(s.Asks())
	l.read()
	return l
}

// read reads the list of stored voices. One that cannot be read is empty.
func (l *Learner) read() {
	list, _ := l.store.List()
	l.list.Store(&list)
}

// Stored reports, at once, whether a voice of this name is stored.
func (l *Learner) Stored(name string) bool {
	return slices.ContainsFunc(*l.list.Load(), func(v Voice) bool { return v.Name == name })
}

// Folder is where the voices are stored.
func (l *Learner) Folder() string { return l.store.Dir }

// Asks reports, at once, whether the user may be asked to remember a voice.
func (l *Learner) Asks() bool { return l.asks.Load() }

// Never makes this and later sessions ask no more.
func (l *Learner) Never() error {
	l.asks.Store(false)
	return l.store.Never()
}

// Learn stores the voice of a label's speaker under a name, from audio in which
// no other speaker talks: 16 kHz, mono, at most MaxSeconds. It returns one
// line that says what is stored and where.
func (l *Learner) Learn(label, name string, samples []float32) (string, error) {
	if err := protocol.CheckVoiceprintLabel(name); err != nil {
		return "", hint.Add(fmt.Errorf("the voiceprint of %q cannot be stored: the name %w", name, err), "Choose another name.")
	}
	v, err := l.make(samples)
	if err != nil {
		return "", hint.Add(fmt.Errorf("no voiceprint of %s: %w", name, err), "Try again when the speaker has talked longer without others.")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.read()
	if _, err := l.forget(label); err != nil { // one of an earlier attempt
		return "", err
	}
	if err := l.put(label, New(name, v, "")); err != nil {
		return "", err
	}
	delete(l.deleted, label)
	is := "is"
	if l.learnt[label].before != nil {
		is = "replaces the earlier one,"
	}
	return fmt.Sprintf("a voiceprint of %s %s stored in %s; no audio is stored", name, is, l.store.Dir), nil
}

// put stores a voice for a label, and keeps what it replaces.
func (l *Learner) put(label string, v Voice) error {
	replaced, err := l.store.Put(v)
	if err != nil {
		return err
	}
	entry := learnt{voice: v}
	if len(replaced) > 0 {
		entry.before = &replaced[0]
	}
	l.learnt[label] = entry
	return nil
}

// forget restores what was stored before a label was learnt. It reports whether the voice
// was still stored: one that was removed or replaced from elsewhere stays so.
func (l *Learner) forget(label string) (stored bool, err error) {
	entry, found := l.learnt[label]
	if !found {
		return false, nil
	}
	for other, e := range l.learnt {
		if other != label && e.before != nil && e.voice.Name == entry.voice.Name && e.before.Voiceprint == entry.voice.Voiceprint {
			// Another label has replaced the voice, and must not restore it.
			e.before = entry.before
			l.learnt[other] = e
			delete(l.learnt, label)
			return true, nil
		}
	}
	now, found, err := l.store.Get(entry.voice.Name)
	if stored = found && now.Voiceprint == entry.voice.Voiceprint; stored {
		err = l.store.Remove(entry.voice.Name)
	}
	if err != nil {
		return false, err
	}
	delete(l.learnt, label)
	if stored && entry.before != nil {
		_, err = l.store.Put(*entry.before)
	}
	return stored, err
}

// Correct applies the present names to what was learnt: a voice gets the new name
// of its speaker, and is deleted if the speaker has none, or was merged into
// another one that was learnt. When that is undone, the voice is stored again. It
// returns one line that says what has changed, "" for nothing.
func (l *Learner) Correct(annotations protocol.Annotations) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.read()
	var done []string
	var failed error
	before, moved := maps.Clone(l.learnt), map[string]Voice{}
	// name is the name under which the voice of a label is to be stored; "" = not at all.
	name := func(label string) string {
		root, name := annotations.Root(label), annotations.Name(label)
		_, same := before[root]
		if merged := root != label && same; merged || name == root || protocol.CheckVoiceprintLabel(name) != nil {
			return ""
		}
		return name
	}
	for _, label := range slices.Sorted(maps.Keys(l.deleted)) {
		if v := l.deleted[label]; name(label) == v.Name {
			moved[label] = v
			done = append(done, "the voiceprint of "+v.Name+" is stored again")
		}
	}
	for _, label := range slices.Sorted(maps.Keys(before)) {
		v, is := l.learnt[label].voice, name(label)
		if is == v.Name {
			continue
		}
		stored, err := l.forget(label)
		failed = errors.Join(failed, err)
		if err != nil || !stored {
			continue
		}
		if is == "" {
			l.deleted[label] = v
			done = append(done, "the voiceprint of "+v.Name+" is no longer stored")
			continue
		}
		done = append(done, fmt.Sprintf("the voiceprint of %s is stored as %s now", v.Name, is))
		v.Name = is
		moved[label] = v
	}
	// After all are forgotten: two speakers may have exchanged their names.
	for _, label := range slices.Sorted(maps.Keys(moved)) {
		delete(l.deleted, label)
		failed = errors.Join(failed, l.put(label, moved[label]))
	}
	return strings.Join(done, "; "), failed
}
