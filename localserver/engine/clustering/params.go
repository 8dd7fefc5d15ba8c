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
	// FoundInside is how much more of a margin it needs for who begins in the middle of
	// the speech of the known voice that is most like it.
	FoundInside float64
	// Doubt is how far a group may lie below the threshold of the nearest voice for its
	// pieces to be taken for any: between this and FoundMargin it is open who talks, and
	// no label is better than another one's.
	Doubt float64
	// Nobody is the cosine under which a piece is taken for no voice at all.
	Nobody float64
	// Near and GroupNear are which part of the likeness of a piece, and of a group,
	// to a voice its nearest pieces make, the rest being the cosine with its
	// centre; NearMore is how much is added to their cosine, which is lower.
	Near, GroupNear, NearMore float64
	// Remember is how much lone speech a piece needs to be remembered, Recall
	// the cosine from which a remembered piece counts for a voice.
	Remember, Recall float64
	// Link is how much more a remembered piece counts for the voice of the piece
	// before or after it when one local goes on from the one to the other, LinkOther
	// which part of that it counts less when it takes up what another local said.
	Link, LinkOther float64
	// Join is the likeness from which pieces of a window are one voice: their
	// cosine, JoinSame more for pieces of one local, JoinLink more again where the
	// local does not pause in between, and JoinOther less for pieces of two, JoinShort
	// more for each second that the shorter one lacks of one.
	Join, JoinSame, JoinLink, JoinOther, JoinShort float64
	// Coherence is how alike, in cosine, the pieces of a group must be to it
	// for the group to found a voice.
	Coherence float64
	// Split is how much more alike, in mean cosine, pieces of one half of a
	// voice's memory must be than pieces of two halves for it to be two people;
	// SplitAlike is how much of the halves' likeness is asked for on top.
	// SplitAgain is by what factor the voice's memory must have grown since it was
	// last looked at: who asks often enough hears a yes.
	Split, SplitAlike, SplitAgain float64
	// Merge is the cosine of two voices' centres from which they are one person, and
	// MergeLinked the same where each goes on in the middle of the other's speech; the
	// halves of a voice of which that is true are not two.
	Merge, MergeLinked float64
	// Temperature is how much more a piece must be worth to one voice than to another
	// for e times the share.
	Temperature float64
	// SpeechOn is the probability from which a frame is speech, SecondOn how many more
	// than one must talk, in the mean of what the windows expect, for it to be two.
	SpeechOn, SecondOn float64
	// VoiceLeast is which share of a frame's speech the likeliest voice needs for the
	// frame to get its label, SecondLeast the same for the second one of two at once.
	// Agree is which share the likeliest needs, for one talker, of what all voices have
	// together: windows that leave open who talks do not count in it.
	VoiceLeast, SecondLeast, Agree float64
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
		Match: 0.48, MatchSlope: 0.12, MatchMost: 3.82, MatchOld: 18.4, OldSlope: 0.075,
		Adapt: 0.277, AdaptMargin: 0.231,
		Found: 1.392, FoundFirst: 1.446, FoundMargin: 0.087, FoundSure: 1.2, FoundLeast: 0.8315, FoundSteep: 0.319, FoundAgain: 0.6, FoundInside: 0.055,
		Doubt: 0.035, Nobody: 0.318, Near: 0.35, GroupNear: 0.156, NearMore: 0.138,
		Remember: 0.62, Recall: 0.23, Link: 0.09, LinkOther: 0.5,
		Join: 0.52, JoinSame: 0.052, JoinLink: 0.035, JoinOther: 0.0553, JoinShort: 0.118,
		Coherence: 0.5475,
		Split:     0.22, SplitAlike: 0.102, SplitAgain: 1.35, Merge: 0.626, MergeLinked: 0.42,
		Temperature: 0.1,
		SpeechOn:    0.69, SecondOn: 0.52, VoiceLeast: 0.25, SecondLeast: 0.1, Agree: 0.45,
		Cling: 0.167,
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
