package protocol

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
)

// Bounds of Annotations. A person adds a few dozen; the bounds are for files of
// unknown origin.
const (
	MaxNameRunes = 64
	MaxNoteRunes = 200
	maxMerges    = 4 * MaxLabels
	maxMoves     = 1000
	maxBookmarks = 10_000
)

// annotationsVersion is the version of the JSON form of Annotations.
const annotationsVersion = 1

// Merge says that two labels are one person: turns of From are those of Into.
type Merge struct {
	From string `json:"from"`
	Into string `json:"into"`
}

// Move says that one turn belongs to another person: what From spoke between Start
// and End is a turn of To.
type Move struct {
	From  string  `json:"from"`  // label
	To    string  `json:"to"`    // label
	Start float64 `json:"start"` // seconds on the stream's clock
	End   float64 `json:"end"`
}

// covers reports whether a move moves a turn of From: whether the middle of the turn
// is in it.
func (m Move) covers(t Turn) bool {
	middle := (t.Start + t.End) / 2
	return middle >= m.Start && middle < m.End
}

// Bookmark is a time in the session, with a note.
type Bookmark struct {
	At   float64 `json:"at"`   // seconds on the stream's clock
	Note string  `json:"note"` // may be empty
}

// Annotations are what people add to a session: names of labels, merges of labels
// that are one person, turns that belong to another person, muted lanes, and
// bookmarks. The zero value has none.
//
// Annotations are immutable: each method that changes something returns a new
// value, so that any number of goroutines may read one. The events of the service
// stay as they are; Speakers applies annotations to a timeline.
type Annotations struct {
	names     map[string]string // by label
	merges    []Merge           // in order of their creation
	moves     []Move            // in order of their creation, with roots
	muted     []string          // labels, sorted
	bookmarks []Bookmark        // in order of At
}

// ErrNameInUse is in the error of Rename for a name of another label.
var ErrNameInUse = errors.New("the name is in use")

// labelLike matches names that a service may use as labels later.
var labelLike = regexp.MustCompile(`^SPEAKER_\d+$`)

// Rename names a label and all labels that were merged into it. The name is cleaned
// and cut to MaxNameRunes; an empty one removes the name. The name of another label
// is refused: one name for two lanes is a merge.
func (a Annotations) Rename(label, name string) (Annotations, error) {
	label = a.Root(label)
	name = Clean(name, MaxNameRunes)
	if name == a.Name(label) { // perhaps by a merge
		return a, nil
	}
	if name == label {
		name = ""
	}
	if labelLike.MatchString(name) {
		return a, fmt.Errorf("%w: %s is a label of the service", ErrNameInUse, name)
	}
	for other := range a.names {
		if root := a.Root(other); root != label && a.Name(root) == name {
			return a, fmt.Errorf("%w: %s is %s", ErrNameInUse, name, root)
		}
	}
	names := map[string]string{}
	for other, has := range a.names {
		if a.Root(other) != label || name != "" { // also the name of a merged label
			names[other] = has
		}
	}
	if name != "" {
		names[label] = name
	}
	if len(names) > MaxLabels {
		return a, fmt.Errorf("more than %d names", MaxLabels)
	}
	a.names = names
	return a, nil
}

// Name is the name of a label: that of the label that it was merged into, or else
// that of another label merged into that one, or else the label itself.
func (a Annotations) Name(label string) string {
	label = a.Root(label)
	if name, ok := a.names[label]; ok {
		return name
	}
	for _, m := range a.merges {
		if name, ok := a.names[m.From]; ok && a.Root(m.From) == label {
			return name
		}
	}
	return label
}

// Names are the names by label; the map is a copy.
func (a Annotations) Names() map[string]string { return maps.Clone(a.names) }

// Merge merges two labels into one person, with the name of the second. It changes
// nothing if they are one person already.
func (a Annotations) Merge(from, into string) (Annotations, error) {
	from, into = a.Root(from), a.Root(into)
	if from == into {
		return a, nil
	}
	if len(a.merges) >= maxMerges {
		return a, fmt.Errorf("more than %d merges", maxMerges)
	}
	a.merges = append(slices.Clip(a.merges), Merge{From: from, Into: into})
	return a, nil
}

// unmerge removes the newest merge; false when there is none.
func (a Annotations) unmerge() (Annotations, bool) {
	n := len(a.merges)
	if n == 0 {
		return a, false
	}
	a.merges = a.merges[: n-1 : n-1]
	return a, true
}

// Merges are all merges in order of their creation.
func (a Annotations) Merges() []Merge { return slices.Clone(a.merges) }

// Root is the label that a label was merged into, across all merges; a label that
// was not merged is its own root.
func (a Annotations) Root(label string) string {
	label = Label(label)
	// A merge has two roots, so that one pass in order follows any chain, and
	// there are no cycles.
	for _, m := range a.merges {
		if m.From == label {
			label = m.Into
		}
	}
	return label
}

// MoveTurn gives what one person spoke between start and end, in seconds, to
// another person. It changes nothing if they are one person.
func (a Annotations) MoveTurn(from string, start, end float64, to string) (Annotations, error) {
	from, to, start, end = a.Root(from), a.Root(to), Round1ms(start), Round1ms(end)
	switch {
	case !(start >= 0 && end > start && end <= MaxTimestamp): // also NaN
		return a, fmt.Errorf("no turn can be from %g to %g s", start, end)
	case from == to:
		return a, nil
	case len(a.moves) >= maxMoves:
		return a, fmt.Errorf("more than %d turns of other speakers", maxMoves)
	}
	a.moves = append(slices.Clip(a.moves), Move{from, to, start, end})
	return a, nil
}

// Moves are all moves of turns in order of their creation.
func (a Annotations) Moves() []Move { return slices.Clone(a.moves) }

// Owner is the label that stands for the person to whom a turn belongs.
func (a Annotations) Owner(t Turn) string {
	owner := a.Root(t.Speaker)
	for _, m := range a.moves {
		if a.Root(m.From) == owner && m.covers(t) {
			owner = a.Root(m.To)
		}
	}
	return owner
}

// Mute sets whether the lane of a label is muted: drawn faintly, and excluded from
// the shares of talk time. Exports include it.
func (a Annotations) Mute(label string, muted bool) Annotations {
	label = a.Root(label)
	i, has := slices.BinarySearch(a.muted, label)
	switch {
	case muted == has, muted && len(a.muted) >= MaxLabels:
	case muted:
		a.muted = slices.Insert(slices.Clone(a.muted), i, label)
	default:
		a.muted = slices.Delete(slices.Clone(a.muted), i, i+1)
	}
	return a
}

// Muted reports whether the lane of a label is muted.
func (a Annotations) Muted(label string) bool {
	_, has := slices.BinarySearch(a.muted, a.Root(label))
	return has
}

// MutedLabels are all labels that are muted, sorted; the slice is the caller's.
func (a Annotations) MutedLabels() []string { return slices.Clone(a.muted) }

// Bookmark adds a bookmark at a time in seconds and replaces one at the same
// millisecond. The note is cleaned and cut to MaxNoteRunes.
func (a Annotations) Bookmark(at float64, note string) (Annotations, error) {
	if !(at >= 0 && at <= MaxTimestamp) { // also NaN
		return a, fmt.Errorf("no bookmark can be at %g s", at)
	}
	b := Bookmark{At: Round1ms(at), Note: Clean(note, MaxNoteRunes)}
	i, has := slices.BinarySearchFunc(a.bookmarks, b.At, byAt)
	if !has && len(a.bookmarks) >= maxBookmarks {
		return a, fmt.Errorf("more than %d bookmarks", maxBookmarks)
	}
	a.bookmarks = slices.Clone(a.bookmarks)
	if has {
		a.bookmarks[i] = b
	} else {
		a.bookmarks = slices.Insert(a.bookmarks, i, b)
	}
	return a, nil
}

// Unbookmark removes the bookmark at a time, to the millisecond.
func (a Annotations) Unbookmark(at float64) Annotations {
	if i, has := slices.BinarySearchFunc(a.bookmarks, Round1ms(at), byAt); has {
		a.bookmarks = slices.Delete(slices.Clone(a.bookmarks), i, i+1)
	}
	return a
}

// Bookmarks are all bookmarks in order of time. The slice is shared: read only.
func (a Annotations) Bookmarks() []Bookmark { return a.bookmarks }

func byAt(b Bookmark, at float64) int { return cmp.Compare(b.At, at) }

// Since are the annotations of the part of the session that begins at a time in
// seconds, on a clock that begins there. whole says that nothing is missing.
func (a Annotations) Since(at float64) (part Annotations, whole bool) {
	if at == 0 {
		return a, true
	}
	part = a
	part.moves, part.bookmarks = nil, nil
	for _, m := range a.moves {
		if m.Start, m.End = Round1ms(max(m.Start-at, 0)), Round1ms(m.End-at); m.End > 0 {
			part.moves = append(part.moves, m)
		}
	}
	for _, b := range a.bookmarks {
		if b.At = Round1ms(b.At - at); b.At >= 0 {
			part.bookmarks = append(part.bookmarks, b)
		}
	}
	return part, len(part.moves) == len(a.moves) && len(part.bookmarks) == len(a.bookmarks)
}

// Equal reports whether two annotations are equal.
func (a Annotations) Equal(b Annotations) bool {
	return maps.Equal(a.names, b.names) && slices.Equal(a.merges, b.merges) && slices.Equal(a.moves, b.moves) &&
		slices.Equal(a.muted, b.muted) && slices.Equal(a.bookmarks, b.bookmarks)
}

// annotationsJSON is the JSON form.
type annotationsJSON struct {
	Version   int               `json:"version"`
	Names     map[string]string `json:"names"`
	Merges    []Merge           `json:"merges"`
	Moves     []Move            `json:"moves,omitempty"`
	Muted     []string          `json:"muted"`
	Bookmarks []Bookmark        `json:"bookmarks"`
}

// MarshalJSON returns the same bytes for equal annotations.
func (a Annotations) MarshalJSON() ([]byte, error) {
	return json.Marshal(annotationsJSON{
		Version: annotationsVersion,
		Names:   maps.Collect(maps.All(a.names)), // {} and [] instead of null
		Merges:  append([]Merge{}, a.merges...), Moves: a.moves,
		Muted: append([]string{}, a.muted...), Bookmarks: append([]Bookmark{}, a.bookmarks...),
	})
}

// UnmarshalJSON reads the form of MarshalJSON, which may have been edited by hand:
// each entry is added by its method, and ignored if that refuses it. A newer
// version is an error.
func (a *Annotations) UnmarshalJSON(raw []byte) error {
	var r annotationsJSON
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("annotations are not as expected: %w", WrongType(err))
	}
	if r.Version < 1 || r.Version > annotationsVersion {
		return fmt.Errorf("annotations of version %d, known is %d", r.Version, annotationsVersion)
	}
	read := Annotations{names: map[string]string{}}
	for _, label := range slices.Sorted(maps.Keys(r.Names)) {
		// Not by Rename: two merged labels may have the same name.
		if name := Clean(r.Names[label], MaxNameRunes); name != "" && !labelLike.MatchString(name) && len(read.names) < MaxLabels {
			read.names[Label(label)] = name
		}
	}
	for _, label := range r.Muted { // and moves, before the merges, which hide labels
		read = read.Mute(label, true)
	}
	for _, m := range r.Moves {
		read, _ = read.MoveTurn(m.From, m.Start, m.End, m.To)
	}
	for _, m := range r.Merges {
		read, _ = read.Merge(m.From, m.Into)
	}
	for _, b := range r.Bookmarks {
		read, _ = read.Bookmark(b.At, b.Note)
	}
	*a = read
	return nil
}

// undoSteps is the number of changes that can be undone.
const undoSteps = 100

// AnnotationsStore holds the annotations of a session while people change them. It
// is safe for concurrent use. It does no input or output: a writer waits on
// Changes, calls Load and then MarkSaved.
type AnnotationsStore struct {
	mu       sync.Mutex
	now      Annotations
	before   []Annotations // for Undo, oldest first
	revision int64
	saved    Annotations
	savedAt  int64                  // their revision
	saves    func(Annotations) bool // see SavedBy
	changes  chan struct{}
}

// NewAnnotationsStore returns a store with annotations that are saved already: none,
// or those of a recording.
func NewAnnotationsStore(a Annotations) *AnnotationsStore {
	return &AnnotationsStore{now: a, saved: a, changes: make(chan struct{}, 1)}
}

// Load returns the current annotations and their revision, a number that grows with
// every change.
func (s *AnnotationsStore) Load() (Annotations, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.revision
}

// Update changes the annotations by f, which must not use the store. If f returns an
// error, nothing changes and Update returns it.
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

// Undo undoes the newest change; without one, the newest merge. It returns the
// annotations before and after, and false when there was nothing to undo.
func (s *AnnotationsStore) Undo() (was, is Annotations, undone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was = s.now
	if n := len(s.before); n > 0 {
		s.set(s.before[n-1])
		s.before = s.before[:n-1]
		return was, s.now, true
	}
	next, ok := s.now.unmerge()
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
	default: // the receiver has not received the last one
	}
}

// Changes signals changes: one value stands for any number of them.
func (s *AnnotationsStore) Changes() <-chan struct{} { return s.changes }

// MarkSaved says which annotations are saved, and their revision. An older one than the last changes
// nothing: its writer took longer.
func (s *AnnotationsStore) MarkSaved(a Annotations, revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision >= s.savedAt {
		s.saved, s.savedAt = a, revision
	}
}

// SavedBy says that a writer saves all changes before the program ends, of annotations
// for which saves is true; nil = none does.
func (s *AnnotationsStore) SavedBy(saves func(Annotations) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saves = saves
}

// Unsaved reports whether the annotations differ from those that are saved, and no writer is
// about to save them.
func (s *AnnotationsStore) Unsaved() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.now.Equal(s.saved) && (s.saves == nil || !s.saves(s.now))
}
