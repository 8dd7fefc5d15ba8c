package offline

import "math"

// Params are the parameters of the second pass. "Cosine" is the cosine of two
// embeddings, "duration" the length of single-speaker speech behind an embedding
// in seconds.
type Params struct {
	// LinkageThreshold is the cosine from which segments of one
	// window are one cluster; SameLocalBonus is added for those of one local
	// speaker, ShortBonus (cosine per second) for each second that the shorter
	// one lacks of 1 s.
	LinkageThreshold, SameLocalBonus, ShortBonus float64
	// MinCluster is the duration (seconds) from which a segment cluster takes part in the
	// clustering. Shorter ones are only assigned to its speakers.
	MinCluster float64
	// SpeakerThreshold is the cosine from which two clusters of
	// thresholdDuration or more are one speaker, and SpeakerSlope how much it
	// falls for each halving of the shorter one's duration.
	SpeakerThreshold, SpeakerSlope float64
	// CountMargin is how far the cosine of two clusters may exceed the threshold if
	// the number of speakers that was given says that they are two.
	CountMargin float64
	// MergeMargin is how far the cosine of two speakers must exceed the threshold
	// to be merged after all segments were assigned. The threshold of two speakers falls
	// by MinorSlope for each halving of the smaller one's speech below a sixteenth of the
	// other's, because much speech has more outliers, and by ContinuationBonus if the
	// smaller one often continues the other's speech (see continuation).
	MergeMargin, MinorSlope, ContinuationBonus float64
	// MinSpeaker is the duration (seconds) that makes a cluster a speaker. In a
	// short recording it is MinShare of all single-speaker speech, but at least
	// MinShortSpeaker (seconds).
	MinSpeaker, MinShare, MinShortSpeaker float64
	// SpeechThreshold is the probability of speech above which a frame is speech.
	SpeechThreshold float64
	// OverlapThreshold is how far the expected number of simultaneous speakers must
	// exceed 1 for a frame to be overlap.
	OverlapThreshold float64
}

// Default returns the Params that were tuned for the embedded weights.
func Default() Params {
	return Params{
		LinkageThreshold: 0.55, SameLocalBonus: 0.1, ShortBonus: 0.12,
		MinCluster: 0.4, SpeakerThreshold: 0.78, SpeakerSlope: 0.073, CountMargin: 0.1,
		MergeMargin: 0.03, MinorSlope: 0.08, ContinuationBonus: 0.2,
		MinSpeaker: 1.8, MinShare: 0.05, MinShortSpeaker: 1,
		SpeechThreshold: 0.5, OverlapThreshold: 0.45,
	}
}

const (
	// thresholdDuration is the duration (seconds) beyond which the threshold does
	// not rise.
	thresholdDuration = 20
	// shortestDuration is the duration (seconds) below which it does not fall.
	shortestDuration = 0.5
	// minorRatio is the ratio of two speakers' durations from which the threshold falls by
	// MinorSlope.
	minorRatio = 16
)

// excess is the cosine of two clusters less the threshold for their
// durations: above 0 they are one speaker.
func (p *Params) excess(a, b *cluster) float64 {
	d := min(max(min(a.duration, b.duration), shortestDuration), thresholdDuration)
	return a.cosine(b) - p.SpeakerThreshold + p.SpeakerSlope*math.Log2(thresholdDuration/d)
}

// mergeExcess is how far the cosine of two speakers exceeds the threshold to be merged.
func (p *Params) mergeExcess(a, b *cluster, continuation float64) float64 {
	ratio := max(a.duration, b.duration) / max(min(a.duration, b.duration), shortestDuration)
	return p.excess(a, b) + p.MinorSlope*math.Log2(max(1, ratio/minorRatio)) + p.ContinuationBonus*continuation - p.MergeMargin
}

// minSpeaker is the duration (seconds) that makes a cluster of items a speaker.
func (p *Params) minSpeaker(items []cluster) float64 {
	total := 0.0
	for i := range items {
		total += items[i].duration
	}
	return min(p.MinSpeaker, max(p.MinShortSpeaker, p.MinShare*total))
}
