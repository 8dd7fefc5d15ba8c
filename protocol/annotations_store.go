package protocol

import "sync"

// undoSteps is how many changes can be undone.
const undoSteps = 100

// AnnotationsStore holds a session's annotations while people change them. Any
// goroutine may use it. It does no input or output: whoever keeps the
// annotations waits on Changes, takes Load and tells MarkSaved.
type AnnotationsStore struct {
	mu       sync.Mutex
	now      Annotations
	before   []Annotations // what Undo goes back to, oldest first
	revision int64
	saved    int64
	changes  chan struct{}
}

// NewAnnotationsStore begins with annotations that are saved already: none, or
// what a recording had.
func NewAnnotationsStore(a Annotations) *AnnotationsStore {
	return &AnnotationsStore{now: a, changes: make(chan struct{}, 1)}
}

// Load gives the annotations as they are now, and their revision, a number
// that grows with every change.
func (s *AnnotationsStore) Load() (Annotations, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.revision
}

// Update changes the annotations by f, which must not use the store. When f
// fails, nothing changes and the error is Update's.
func (s *AnnotationsStore) Update(f func(Annotations) (Annotations, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, err := f(s.now)
	if err != nil || next.Equal(s.now) {
		return err
	}
	if len(s.before) == undoSteps {
		s.before = append(s.before[:0], s.before[1:]...)
	}
	s.before = append(s.before, s.now)
	s.set(next)
	return nil
}

// Undo takes the newest change back; where there is none since the beginning,
// the newest merge. It answers the annotations before and after, and false
// when there was nothing to undo.
func (s *AnnotationsStore) Undo() (was, is Annotations, undone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was = s.now
	if n := len(s.before); n > 0 {
		s.set(s.before[n-1])
		s.before = s.before[:n-1]
		return was, s.now, true
	}
	next, _, ok := s.now.Unmerge()
	if ok {
		s.set(next)
	}
	return was, s.now, ok
}

func (s *AnnotationsStore) set(a Annotations) {
	s.now = a
	s.revision++
	select {
	case s.changes <- struct{}{}:
	default: // somebody has been told and has not looked yet
	}
}

// Changes tells of changes: one value stands for any number of them.
func (s *AnnotationsStore) Changes() <-chan struct{} { return s.changes }

// MarkSaved tells that the annotations of a revision are in a file.
func (s *AnnotationsStore) MarkSaved(revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved = max(s.saved, revision)
}

// Unsaved tells whether there are changes that no file has.
func (s *AnnotationsStore) Unsaved() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saved != s.revision
}
