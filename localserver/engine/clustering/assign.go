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
)

// assign assigns each segment of the window to the most similar speaker, two that talk
// at once to the same one if need be. Where nobody is similar enough, the segment has
// no speaker until one is created, unless no other is possible.
func (c *Clusterer) assign(w *Window) {
	c.assigned, c.scores = c.assigned[:0], c.scores[:0]
	rejection := c.p.RejectionThreshold
	if len(c.speakers) == c.max {
		rejection = -1
	}
	for i := range c.segments {
		s := &c.segments[i]
		var scores [MaxSpeakers]float64
		assigned, best := noSpeaker, 0.0
		for k := range c.speakers {
			if c.speakers[k].merged() {
				continue
			}
			scores[k] = (c.similarityTo(&s.embedding, k, w.First) - rejection) * (scoreOffset + s.Duration)
			if scores[k] > best {
				assigned, best = k, scores[k]
			}
		}
		if len(c.speakers) == 0 { // all speech will be that of the first speaker
			assigned = 0
		}
		c.scores = append(c.scores, scores)
		c.assigned = append(c.assigned, assigned)
	}
	for range continuityIterations {
		if !c.applyContinuity() {
			break
		}
	}
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
		distance := math.Abs(float64(o.Centre-s.Centre)) * FrameSeconds
		scores[c.assigned[j]] += c.p.ContinuityBonus * (scoreOffset + min(o.Duration, 1)) * math.Exp(-distance/continuityTime)
	}
	return scores
}
