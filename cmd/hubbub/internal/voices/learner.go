package voices

import (
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

	mu     sync.Mutex
	learnt map[string]*learnt // by label
	ours   map[string]string  // by name: the voiceprint that this session has stored
	before map[string]*Voice  // by the names of ours: what was stored before; nil = none
}

// learnt is a voice that was learnt in this session.
type learnt struct {
	voice  Voice // its name is the last one under which it was stored
	stored bool
}

// NewLearner is the learner of a session that begins now.
func NewLearner(s Store) *Learner {
	l := &Learner{store: s, make: voiceprint.Make, learnt: map[string]*learnt{}, ours: map[string]string{}, before: map[string]*Voice{}}
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
func (l *Learner) Stored(name string) bool { return index(*l.list.Load(), name) >= 0 }

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
	if err := l.refresh(); err != nil {
		return "", err
	}
	earlier := maps.Clone(l.learnt)
	l.learnt[label] = &learnt{New(name, v, ""), true}
	if err := l.apply(); err != nil {
		l.learnt = earlier
		return "", err
	}
	is := "is"
	if l.before[name] != nil {
		is = "replaces the earlier one,"
	}
	return fmt.Sprintf("a voiceprint of %s %s stored in %s; no audio is stored", name, is, l.store.Dir), nil
}

// refresh gives up the voices that were removed or replaced from elsewhere: they stay so.
func (l *Learner) refresh() error {
	list, err := l.store.List()
	if err != nil {
		return err
	}
	for name, voiceprint := range l.ours {
		if i := index(list, name); i < 0 || list[i].Voiceprint != voiceprint {
			delete(l.ours, name)
			delete(l.before, name)
			maps.DeleteFunc(l.learnt, func(_ string, e *learnt) bool { return e.stored && e.voice.Name == name })
		}
	}
	return nil
}

// apply stores the voices that are to be stored, and restores what was stored before under names
// that have none any more. It follows refresh.
func (l *Learner) apply() error {
	want := map[string]Voice{}
	for _, label := range slices.Sorted(maps.Keys(l.learnt)) {
		if e := l.learnt[label]; e.stored {
			want[e.voice.Name] = e.voice
		}
	}
	for name := range l.ours {
		if _, used := want[name]; used {
			continue
		}
		err := l.store.Remove(name)
		if err == nil && l.before[name] != nil {
			_, err = l.store.Put(*l.before[name])
		}
		if err != nil {
			return err
		}
		delete(l.ours, name)
		delete(l.before, name)
	}
	for name, v := range want {
		if l.ours[name] == v.Voiceprint {
			continue
		}
		replaced, err := l.store.Put(v)
		if err != nil {
			return err
		}
		if _, again := l.ours[name]; !again && len(replaced) > 0 {
			l.before[name] = &replaced[0]
		}
		l.ours[name] = v.Voiceprint
	}
	return nil
}

// Correct applies the present names to what was learnt: a voice gets the new name
// of its speaker, and is deleted if the speaker has none, or was merged into
// another one whose voice is stored. When that is undone, the voice is stored again. One that was
// removed or replaced from elsewhere stays so. It returns one line that says what has
// changed, "" for nothing.
func (l *Learner) Correct(annotations protocol.Annotations) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.read()
	if err := l.refresh(); err != nil {
		return "", err
	}
	has := map[string]bool{} // the labels whose voices are stored
	for label, e := range l.learnt {
		has[label] = e.stored
	}
	var done []string
	for _, label := range slices.Sorted(maps.Keys(l.learnt)) {
		e, root, is := l.learnt[label], annotations.Root(label), annotations.Name(label)
		merged := root != label && has[root]
		named := !merged && is != root && protocol.CheckVoiceprintLabel(is) == nil
		switch was := e.voice.Name; {
		case e.stored && !named:
			e.stored = false
			done = append(done, "the voiceprint of "+was+" is no longer stored")
		case e.stored && is != was:
			e.voice.Name = is
			done = append(done, fmt.Sprintf("the voiceprint of %s is stored as %s now", was, is))
		case !e.stored && named && is == was:
			e.stored = true
			done = append(done, "the voiceprint of "+was+" is stored again")
		}
	}
	return strings.Join(done, "; "), l.apply()
}
