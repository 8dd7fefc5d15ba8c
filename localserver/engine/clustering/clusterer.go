// Package clustering assigns the local speakers of overlapping windows to the
// speakers of a session: online clustering with a growing number of speakers.
//
// It follows Coria, Bredin, Ghannay and Rosset, "Overlap-aware low-latency
// online speaker diarization based on end-to-end local segmentation" (ASRU
// 2021). The main differences: Local speakers are cut into segments of about a
// second, which are clustered again, because the network sometimes puts two people
// into one output. The constraint that local speakers who talk at once are different
// people holds in this clustering alone, not in the assignment to speakers: the
// network sometimes finds two people where there is one. The thresholds depend on the
// duration of speech behind an embedding. Only a minimum of single-speaker
// speech, in two consecutive windows, creates a speaker. What is known of a speaker is
// computed from stored segments that can be reassigned. Similarities are normalised
// with a cohort. Speakers of one person are merged. A decoder (package decoder) decides
// which speakers talk.
//
// The scores of all windows that cover a frame are aggregated until the frame is
// committed.
package clustering

import "hubbub/localserver/engine/decoder"

// MaxSpeakers is the largest number of speakers in one session.
const MaxSpeakers = 8

// noSpeaker is the speaker of a segment that is assigned to none.
const noSpeaker = -1

// Clusterer clusters one session. Speakers are numbered from 0 in the order of
// their creation. The zero value is not usable.
type Clusterer struct {
	p          Params
	max        int
	speakers   []speaker
	memory     memory
	aggregate  aggregate
	multiscale []MultiscaleEmbedding // in order of time
	candidate  bool                  // the previous window had a segment cluster that met the criteria for a new speaker

	// Of the current window; each slice but clusters has one element per segment.
	segments []segment
	cosines  []float64 // of each pair of segments
	clusters []segmentCluster
	scores   [][MaxSpeakers]float64 // of each segment for each speaker
	assigned []int                  // speaker, or noSpeaker
}

// New returns a Clusterer that creates at most maxSpeakers speakers, 1 to
// MaxSpeakers.
func New(p Params, maxSpeakers int) *Clusterer {
	return &Clusterer{p: p, max: min(max(maxSpeakers, 1), MaxSpeakers)}
}

// Speakers is the number of speakers created so far, merged ones included.
func (c *Clusterer) Speakers() int { return len(c.speakers) }

// Merged reports whether speaker k was merged into another one.
func (c *Clusterer) Merged(k int) bool { return c.speakers[k].merged() }

// Add takes the next window.
func (c *Clusterer) Add(w *Window) {
	c.aggregate.extend(w.First + len(w.SpeechProbability))
	c.clusterSegments(w)
	added := c.memory.add(w, c.segments, &c.p)
	c.createSpeakers(w)
	c.memory.reassign(c.speakers, &c.p)
	if added {
		c.mergeSpeakers()
	}
	c.assign(w)
	c.aggregate.add(w, c.segments, c.assigned, &c.p)
	c.addMultiscale(w)
}

// Discard releases the whole steps before frame first: DecoderInput is not called for them again.
func (c *Clusterer) Discard(first int) {
	first = first / decoder.Split * decoder.Split
	c.aggregate.discard(first)
	c.discardMultiscale(first)
}
