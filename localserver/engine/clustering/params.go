package clustering

// Params are the parameters of a Clusterer. "Cosine" is the cosine of two
// embeddings, "similarity" the normalised one (cohort.go), "duration" the length of
// single-speaker speech behind an embedding in seconds.
type Params struct {
	// New-speaker threshold: the similarity of a segment cluster to a speaker
	// from which the cluster belongs to that speaker.

	// NewSpeakerThreshold is the threshold (similarity) for a cluster of 1 s and a
	// speaker of ThresholdSpeakerMax seconds.
	NewSpeakerThreshold float64
	// ThresholdClusterSlope is how much the threshold rises (similarity) for each
	// doubling of the cluster's duration. Embeddings of short speech have a lower
	// similarity to their own speaker.
	ThresholdClusterSlope float64
	// ThresholdSpeakerSlope is how much the threshold falls (similarity) for each
	// halving of the speaker's duration below ThresholdSpeakerMax (seconds).
	ThresholdSpeakerSlope, ThresholdSpeakerMax float64
	// ThresholdAdaptation is how far the threshold moves (0 to 1) towards the
	// speaker's self-similarity, the mean similarity of its stored
	// segments to its centroid, less AdaptationMargin (similarity).
	ThresholdAdaptation, AdaptationMargin float64

	// Creating speakers.

	// NewSpeakerDuration is the duration (seconds) of a cluster that creates a
	// speaker at NewSpeakerMargin, and the minimum for the first speaker of a
	// session.
	NewSpeakerDuration float64
	// NewSpeakerMargin is how far below the threshold of every speaker (similarity)
	// a cluster must lie to create one. It falls linearly to 0 over
	// NewSpeakerMarginDecay seconds beyond NewSpeakerDuration, and rises as fast
	// for shorter clusters.
	NewSpeakerMargin, NewSpeakerMarginDecay float64
	// NewSpeakerMinDuration is the duration (seconds) below which no cluster
	// creates a speaker.
	NewSpeakerMinDuration float64

	// Assigning segments to speakers.

	// RejectionThreshold is the similarity below which a segment, of a window or
	// stored, is of none of the speakers.
	RejectionThreshold float64
	// NearestWeight is the weight (0 to 1) of the nearest stored segments in the
	// similarity to a speaker; the rest is that to the centroid.
	NearestWeight float64
	// NearestOffset is added to the mean similarity to the nearest stored
	// segments, which is lower than that to a centroid.
	NearestOffset float64
	// ContinuityBonus is how much the segments of one local speaker raise each
	// other's score for the speaker they are assigned to (similarity seconds).
	ContinuityBonus float64

	// Segment memory.

	// MemoryMinDuration is the duration (seconds) from which a segment is
	// stored.
	MemoryMinDuration float64
	// LinkBonus is added to the similarity of a stored segment with the
	// speaker of an adjacent one when one local speaker says both without a pause.
	LinkBonus float64

	// Clustering the segments of one window (average linkage).

	// LinkageThreshold is the mean cosine from which two segment clusters are joined.
	// It is not normalised: all segments of a window share one channel and one room.
	LinkageThreshold float64

	// Merging speakers.

	// MergeThreshold is the similarity of two centroids from which two speakers are
	// merged.
	MergeThreshold float64

	// Score aggregation over windows.

	// SpeechThreshold is the mean probability of speech above which a frame is
	// speech.
	SpeechThreshold float64
	// OverlapThreshold is how far the expected number of simultaneous speakers must
	// exceed 1 for a frame to be overlap.
	OverlapThreshold float64
	// SpeakerShareThreshold is the share of a frame's speech (0 to 1) that the
	// most likely speaker needs to get its label.
	SpeakerShareThreshold float64
	// EdgeRamp is the distance from the newest sample (seconds) from which a
	// window's scores have full weight; towards the newest sample the weight
	// falls linearly to 0.
	EdgeRamp float64
}

// Default returns the Params that were tuned for the embedded weights.
func Default() Params {
	return Params{
		NewSpeakerThreshold:   0.61,
		ThresholdClusterSlope: 0.1,
		ThresholdSpeakerSlope: 0.075, ThresholdSpeakerMax: 18.4,
		ThresholdAdaptation: 0.35, AdaptationMargin: 0.231,

		NewSpeakerDuration: 1.2,
		NewSpeakerMargin:   0.087, NewSpeakerMarginDecay: 2,
		NewSpeakerMinDuration: 0.8315,

		RejectionThreshold: 0.47,
		NearestWeight:      0.25, NearestOffset: 0.08,
		ContinuityBonus: 0.167,

		MemoryMinDuration: 0.62,
		LinkBonus:         0.09,

		LinkageThreshold: 0.53,

		MergeThreshold: 0.72,

		SpeechThreshold: 0.64, OverlapThreshold: 0.46,
		SpeakerShareThreshold: 0.25,
		EdgeRamp:              0.82,
	}
}
