package clustering

import "math"

const (
	// scoreOffset (seconds) is added to a segment's duration when its
	// similarity is weighted: short segments count for something.
	scoreOffset = 0.3
	// continuityTime is the time constant (seconds) with which the continuity
	// bonus decays with the distance of two segments.
	continuityTime = 1.5
	// continuityIterations bounds how often the continuity bonus is applied.
	continuityIterations = 3
	// minAbstention is the duration (seconds) that a segment cluster needs for
	// its segments to get no label: less says as little against a speaker as
	// for one.
	minAbstention = 0.6
)

// assign assigns each segment of the window to the most similar speaker, two that talk
// at once to the same one if need be. Then it computes the shares.
func (c *Clusterer) assign(w *Window) {
	c.assigned, c.scores = c.assigned[:0], c.scores[:0]
	rejection := c.p.RejectionThreshold
	if len(c.speakers) == c.max {
		rejection = -1 // no new speaker is possible: the nearest one in any case
	}
	for i := range c.segments {
		s := &c.segments[i]
		var scores [MaxSpeakers]float64
		abstain := len(c.speakers) < c.max && c.abstains(s)
		for k := range c.speakers {
			if abstain || c.speakers[k].merged() {
				continue
			}
			scores[k] = c.similarityTo(&s.embedding, k, w.First) - rejection
			scores[k] *= scoreOffset + s.Duration
		}
		c.scores = append(c.scores, scores)
		c.assigned = append(c.assigned, noSpeaker)
	}
	for i := range c.assigned {
		if len(c.speakers) == 0 { // all speech will be that of the first speaker
			c.assigned[i] = 0
			continue
		}
		best := 0.0
		for k, score := range c.scores[i] {
			if score > best {
				c.assigned[i], best = k, score
			}
		}
	}
	for range continuityIterations {
		if !c.applyContinuity() {
			break
		}
	}
	c.computeShares()
}

// abstains reports whether the segment's cluster is neither known nor new yet.
func (c *Clusterer) abstains(s *segment) bool {
	for i := range c.clusters {
		if g := &c.clusters[i]; g.first == s.cluster {
			return g.duration >= minAbstention && g.excess < -c.p.AbstentionMargin
		}
	}
	return false
}

// applyContinuity assigns the segments again with the continuity bonus. Segments
// of one local speaker are mostly of one person, and the embedding of one second
// alone is often wrong; a segment that is much more similar to another speaker
// still goes there. It reports whether anything changed.
func (c *Clusterer) applyContinuity() (changed bool) {
	for i := range c.segments {
		scores := c.scoresWithContinuity(i)
		best := c.assigned[i]
		for k := range c.speakers {
			if c.scores[i][k] > 0 && (best == noSpeaker || scores[k] > scores[best]) {
				best = k
			}
		}
		changed = changed || best != c.assigned[i]
		c.assigned[i] = best
	}
	return changed
}

// scoresWithContinuity are the scores of segment i with the continuity bonus of
// the other segments of its local speaker.
func (c *Clusterer) scoresWithContinuity(i int) [MaxSpeakers]float64 {
	s, scores := &c.segments[i], c.scores[i]
	for j := range c.segments {
		o := &c.segments[j]
		if j == i || o.local != s.local || c.assigned[j] == noSpeaker {
			continue
		}
		distance := math.Abs(float64(o.Centre-s.Centre)) * frameSeconds
		scores[c.assigned[j]] += c.p.ContinuityBonus * (scoreOffset + min(o.Duration, 1)) * math.Exp(-distance/continuityTime)
	}
	return scores
}

// computeShares divides each assigned segment among the speakers that it can
// belong to, by a softmax of the scores. A window that is uncertain then counts
// less in the aggregate than one that is not.
func (c *Clusterer) computeShares() {
	c.shares = c.shares[:0]
	for i, assigned := range c.assigned {
		var share [MaxSpeakers]float32
		if assigned != noSpeaker {
			scores := c.scoresWithContinuity(i)
			best := scores[assigned]
			for k := range scores {
				if k != assigned && c.scores[i][k] <= 0 {
					scores[k] = math.Inf(-1)
				}
				best = max(best, scores[k])
			}
			sum := 0.0
			for k, x := range scores {
				scores[k] = math.Exp((x - best) / c.p.Temperature)
				sum += scores[k]
			}
			for k, x := range scores {
				share[k] = float32(x / sum)
			}
		}
		c.shares = append(c.shares, share)
	}
}
