package protocol

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// What Annotations keep at most. A person adds a few dozen; the bounds are
// there for a file that somebody else wrote.
const (
	MaxNameRunes = 64
	MaxNoteRunes = 200
	MaxMerges    = 4 * MaxLabels
	MaxBookmarks = 10_000
)

// annotationsVersion is the version of the JSON form of Annotations.
const annotationsVersion = 1

// Merge says that two labels are one person: what From said counts as Into's.
type Merge struct {
	From string `json:"from"`
	Into string `json:"into"`
}

// Bookmark is a place in the session that a person wants to find again.
type Bookmark struct {
	At   float64 `json:"at"`   // seconds of the stream clock
	Note string  `json:"note"` // may be empty
}

// Annotations are what people added to a session: what the labels are called,
// which of them are one person, whose lane is muted, and bookmarks. The zero
// value is a session without any.
//
// Annotations are a value that never changes: each method that adds something
// answers a new one and leaves the receiver as it was, so that any number of
// goroutines may read one. The events of the service are not touched; Apply
// and Turns show a timeline as its annotations want it.
type Annotations struct {
	names     map[string]string // by label
	merges    []Merge           // in the order in which they were made
	muted     []string          // labels, sorted
	bookmarks []Bookmark        // in order of At
}

// ErrNameInUse is in the error of Rename for a name that another label has.
var ErrNameInUse = errors.New("the name is in use")

// labelLike are names that a service may give to a label of its own later.
var labelLike = regexp.MustCompile(`^SPEAKER_\d+$`)

// Rename calls a label, and all that was merged into it, by a name of any
// script. Control characters are taken out of the name and what is longer than
// MaxNameRunes is cut; an empty rest takes the label's name away. A name that
// another label has is refused: two lanes of one name are a merge.
func (a Annotations) Rename(label, name string) (Annotations, error) {
	label = a.Root(label)
	name = Clean(name, MaxNameRunes)
	if name == a.Name(label) {
		return a, nil
	}
	if name == label {
		name = ""
	}
	if name != "" {
		if labelLike.MatchString(name) {
			return a, fmt.Errorf("%w: %s is how the service calls speakers", ErrNameInUse, name)
		}
		for other := range a.names {
			if root := a.Root(other); root != label && a.Name(root) == name {
				return a, fmt.Errorf("%w: %s is %s", ErrNameInUse, name, root)
			}
		}
	}
	names := map[string]string{}
	for other, has := range a.names {
		if a.Root(other) != label || name != "" { // no name: nor one that a merged label brought along
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

// Name is what a label is called: the name of the label that it was merged
// into; where that has none, the one that a merged label brought along; else
// the label itself.
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

// Names are the names that were given, by label; the map is the caller's.
func (a Annotations) Names() map[string]string { return maps.Clone(a.names) }

// Merge makes two labels one person, who has the name of the second. Labels
// that are one person already stay as they are.
func (a Annotations) Merge(from, into string) (Annotations, error) {
	from, into = a.Root(from), a.Root(into)
	if from == into {
		return a, nil
	}
	if len(a.merges) >= MaxMerges {
		return a, fmt.Errorf("more than %d merges", MaxMerges)
	}
	a.merges = append(slices.Clip(a.merges), Merge{From: from, Into: into})
	return a, nil
}

// Unmerge takes the newest merge back, and answers which that was; false when
// there is none.
func (a Annotations) Unmerge() (Annotations, Merge, bool) {
	n := len(a.merges)
	if n == 0 {
		return a, Merge{}, false
	}
	last := a.merges[n-1]
	a.merges = a.merges[: n-1 : n-1]
	return a, last, true
}

// Merges are all merges in the order in which they were made.
func (a Annotations) Merges() []Merge { return slices.Clone(a.merges) }

// Root is the label that a label was merged into, in the end; a label that was
// not merged is its own root.
func (a Annotations) Root(label string) string {
	label = Label(label)
	// A merge only ever takes a root into another, so that one pass in their
	// order follows any chain, and none can run in a circle.
	for _, m := range a.merges {
		if m.From == label {
			label = m.Into
		}
	}
	return label
}

// Mute sets whether a label's lane is muted: drawn faintly, and left out of the
// shares of talk time. Exports are complete all the same.
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

// Muted tells whether a label, or the one that it was merged into, is muted.
func (a Annotations) Muted(label string) bool {
	_, has := slices.BinarySearch(a.muted, a.Root(label))
	return has
}

// Bookmark adds a bookmark at a position in seconds; one at the same
// millisecond is replaced. The note is cleaned as a name is, and cut to
// MaxNoteRunes.
func (a Annotations) Bookmark(at float64, note string) (Annotations, error) {
	if !(at >= 0 && at <= MaxTimestamp) { // also NaN
		return a, fmt.Errorf("no bookmark can be at %g s", at)
	}
	b := Bookmark{At: Round1ms(at), Note: Clean(note, MaxNoteRunes)}
	i, has := slices.BinarySearchFunc(a.bookmarks, b.At, byAt)
	if !has && len(a.bookmarks) >= MaxBookmarks {
		return a, fmt.Errorf("more than %d bookmarks", MaxBookmarks)
	}
	a.bookmarks = slices.Clone(a.bookmarks)
	if has {
		a.bookmarks[i] = b
	} else {
		a.bookmarks = slices.Insert(a.bookmarks, i, b)
	}
	return a, nil
}

// Unbookmark takes the bookmark at that position away, to the millisecond.
func (a Annotations) Unbookmark(at float64) Annotations {
	if i, has := slices.BinarySearchFunc(a.bookmarks, Round1ms(at), byAt); has {
		a.bookmarks = slices.Delete(slices.Clone(a.bookmarks), i, i+1)
	}
	return a
}

// Bookmarks are all bookmarks in order of time. The slice is shared: read only.
func (a Annotations) Bookmarks() []Bookmark { return a.bookmarks }

func byAt(b Bookmark, at float64) int { return cmp.Compare(b.At, at) }

// Empty tells that nothing was added.
func (a Annotations) Empty() bool {
	return len(a.names) == 0 && len(a.merges) == 0 && len(a.muted) == 0 && len(a.bookmarks) == 0
}

// Equal tells whether two sessions have the same annotations.
func (a Annotations) Equal(b Annotations) bool {
	return maps.Equal(a.names, b.names) && slices.Equal(a.merges, b.merges) &&
		slices.Equal(a.muted, b.muted) && slices.Equal(a.bookmarks, b.bookmarks)
}

// annotationsJSON is the file form, in the order in which it is written.
type annotationsJSON struct {
	Version   int               `json:"version"`
	Names     map[string]string `json:"names"`
	Merges    []Merge           `json:"merges"`
	Muted     []string          `json:"muted"`
	Bookmarks []Bookmark        `json:"bookmarks"`
}

// MarshalJSON writes the same annotations as the same bytes.
func (a Annotations) MarshalJSON() ([]byte, error) {
	w := annotationsJSON{annotationsVersion, a.names, a.merges, a.muted, a.bookmarks}
	if w.Names == nil {
		w.Names = map[string]string{}
	}
	if w.Merges == nil {
		w.Merges = []Merge{}
	}
	if w.Muted == nil {
		w.Muted = []string{}
	}
	if w.Bookmarks == nil {
		w.Bookmarks = []Bookmark{}
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote. Somebody may have changed it by
// hand: each entry goes through the method that adds it, and one that is
// refused is passed over. A file of a newer version is an error.
func (a *Annotations) UnmarshalJSON(raw []byte) error {
	var r annotationsJSON
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("annotations are not as expected: %w", err)
	}
	if r.Version < 1 || r.Version > annotationsVersion {
		return fmt.Errorf("annotations of version %d, known is %d", r.Version, annotationsVersion)
	}
	read := Annotations{names: map[string]string{}}
	for _, label := range slices.Sorted(maps.Keys(r.Names)) {
		// Not by Rename: of two labels that were merged, both may have the name.
		if name := Clean(r.Names[label], MaxNameRunes); name != "" && !labelLike.MatchString(name) && len(read.names) < MaxLabels {
			read.names[Label(label)] = name
		}
	}
	for _, label := range r.Muted { // before the merges, which hide labels
		read = read.Mute(label, true)
	}
	for _, m := range r.Merges {
		if next, err := read.Merge(m.From, m.Into); err == nil {
			read = next
		}
	}
	for _, b := range r.Bookmarks {
		if next, err := read.Bookmark(b.At, b.Note); err == nil {
			read = next
		}
	}
	*a = read
	return nil
}
