package clustering

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Params are the thresholds of a Clusterer. Cosines are those of Embeddings,
// times are in seconds.
type Params struct {
	// Match is the cosine from which a group with one second of lone speech is
	// taken for a voice that has been heard for MatchOld seconds. It grows by
	// MatchSlope for each doubling of the group's speech up to MatchMost
	// seconds, and falls by OldSlope for each halving of the voice's.
	Match, MatchSlope, MatchMost, MatchOld, OldSlope float64
	// Adapt is how far the threshold of a voice follows the voice itself: 0 not
	// at all, 1 all the way to AdaptMargin below the mean cosine of its pieces
	// with it. A clean line or a steady voice resembles itself more than a far
	// one does, and then less of a difference means another person.
	Adapt, AdaptMargin float64
	// Found is how much lone speech founds a voice, FoundFirst the same for
	// the first voice of a session.
	Found, FoundFirst float64
	// FoundMargin is how far below the threshold of every known voice a group
	// must lie to found one when it has just Found seconds; FoundSure is how
	// many seconds more make up for the margin. Between the two it is left open
	// whose it is.
	FoundMargin, FoundSure float64
	// FoundLeast is the lone speech with which a voice can be founded early, by
	// somebody who is different beyond doubt: FoundSteep more of a margin for
	// each second that is missing to Found, none of it for who sounds like nobody.
	FoundLeast, FoundSteep float64
	// FoundAgain is the cosine from which a group is the one that wanted to found a
	// voice in the window before, so that it may.
	FoundAgain float64
	// Nobody is the cosine under which a piece is taken for no voice at all.
	Nobody float64
	// Near and GroupNear are which part of the likeness of a piece, and of a group,
	// to a voice its nearest pieces make, the rest being the cosine with its
	// centre; NearMore is how much is added to their cosine, which is lower.
	Near, GroupNear, NearMore float64
	// Remember is how much lone speech a piece needs to be remembered, Recall
	// the cosine from which a remembered piece counts for a voice.
	Remember, Recall float64
	// Join is the likeness from which pieces of a window are one voice: their
	// cosine, JoinSame more for pieces of one local and JoinOther less for
	// pieces of two, JoinShort more for each second that the shorter one lacks
	// of one.
	Join, JoinSame, JoinOther, JoinShort float64
	// Coherence is how alike, in cosine, the pieces of a group must be to it
	// for the group to found a voice.
	Coherence float64
	// Split is how much more alike, in mean cosine, pieces of one half of a
	// voice's memory must be than pieces of two halves for it to be two people;
	// SplitAlike is how much of the halves' likeness is asked for on top.
	// SplitAgain is by what factor the voice's memory must have grown since it was
	// last looked at: who asks often enough hears a yes.
	Split, SplitAlike, SplitAgain float64
	// SpeechOn is the probability from which a frame is speech, SecondOn the
	// share of a second voice from which two talk at once.
	SpeechOn, SecondOn float64
	// Cling is how much the pieces of one local support each other when it is
	// decided whose they are.
	Cling float64
	// Edge is how far from the newest sample, in seconds, a window's opinion
	// has full weight.
	Edge float64
}

// Default returns the Params that the embedded weights were tuned with.
func Default() Params {
	return Params{
		Match: 0.534, MatchSlope: 0.08, MatchMost: 3.82, MatchOld: 18.4, OldSlope: 0.089,
		Adapt: 0.298, AdaptMargin: 0.33,
		Found: 1.2, FoundFirst: 1.65, FoundMargin: 0.07, FoundSure: 2.26, FoundLeast: 0.891, FoundSteep: 0.334, FoundAgain: 0.6,
		Nobody: 0.276, Near: 0.426, GroupNear: 0.166, NearMore: 0.138,
		Remember: 0.62, Recall: 0.204,
		Join: 0.364, JoinSame: 0.102, JoinOther: 0.058, JoinShort: 0.118,
		Coherence: 0.538,
		Split:     0.161, SplitAlike: 0.1, SplitAgain: 1.35,
		SpeechOn: 0.683, SecondOn: 0.5,
		Cling: 0.155,
		Edge:  0.82,
	}
}

// Set changes one parameter by its name, in any case, for tuning.
func (p *Params) Set(name string, value float64) error {
	v := reflect.ValueOf(p).Elem()
	field := v.FieldByNameFunc(func(f string) bool { return strings.EqualFold(f, name) })
	if !field.IsValid() {
		return fmt.Errorf("no parameter %q; there are %s", name, strings.Join(Names(), ", "))
	}
	field.SetFloat(value)
	return nil
}

// Get returns one parameter by its name, in any case.
func (p *Params) Get(name string) (float64, bool) {
	field := reflect.ValueOf(p).Elem().FieldByNameFunc(func(f string) bool { return strings.EqualFold(f, name) })
	if !field.IsValid() {
		return 0, false
	}
	return field.Float(), true
}

// Names lists the parameters.
func Names() []string {
	t := reflect.TypeFor[Params]()
	var names []string
	for i := range t.NumField() {
		names = append(names, t.Field(i).Name)
	}
	slices.Sort(names)
	return names
}
