package clustering

import "math"

// speaker is one speaker of the session. A speaker is never deleted; a merged
// one keeps its number.
type speaker struct {
	sum            [Dim]float64
	duration       float64    // seconds of single-speaker speech behind sum
	centroid       normalised // sum, scaled to length 1
	selfSimilarity float64    // mean similarity of its stored segments to centroid; 0 = not known yet
}

// merged reports whether the speaker has been merged into another one.
func (s *speaker) merged() bool { return s.duration == 0 }

// add takes in an embedding of that many seconds; normalise must follow.
func (s *speaker) add(e *Embedding, seconds float64) {
	for i, x := range e {
		s.sum[i] += float64(x) * seconds
	}
	s.duration += seconds
}

// normalise computes the centroid.
func (s *speaker) normalise() {
	s.centroid.Embedding = Unit(&s.sum)
	s.centroid.normalise()
}

// similarityTo compares e with speaker k: the similarity to the centroid, and with
// weight NearestWeight the mean similarity to the nearest stored segments before a
// frame. Segments after that frame are left out, because they may be of the same
// speech as e.
func (c *Clusterer) similarityTo(e *normalised, k, before int) float64 {
	x := e.similarity(&c.speakers[k].centroid)
	if nearest, ok := c.memory.nearest(e, k, before); ok {
		x += c.p.NearestWeight * (nearest + c.p.NearestOffset - x)
	}
	return x
}

// threshold is the new-speaker threshold for a segment cluster of that duration
// and speaker s. It grows with both durations.
func (c *Clusterer) threshold(duration float64, s *speaker) float64 {
	t := c.p.NewSpeakerThreshold + c.p.ThresholdClusterSlope*math.Log2(max(duration, 0.5)) +
		c.p.ThresholdSpeakerSlope*math.Log2(min(max(s.duration, 1), c.p.ThresholdSpeakerMax)/c.p.ThresholdSpeakerMax)
	if s.selfSimilarity > 0 {
		t += c.p.ThresholdAdaptation * (s.selfSimilarity - c.p.AdaptationMargin - t)
	}
	return t
}

// largestExcess is the speaker with the largest excess: the similarity of the
// segment cluster less the new-speaker threshold. Only stored segments before a frame count.
func (c *Clusterer) largestExcess(g *segmentCluster, before int) (k int, excess float64) {
	k, excess = noSpeaker, math.Inf(-1)
	for i := range c.speakers {
		if c.speakers[i].merged() {
			continue
		}
		if x := c.similarityTo(&g.embedding, i, before) - c.threshold(g.duration, &c.speakers[i]); x > excess {
			k, excess = i, x
		}
	}
	return k, excess
}

// createSpeakers creates a speaker for each segment cluster that is far enough
// below the threshold of every speaker. Single segments are too short to decide
// it. Two consecutive windows, which cut the speech differently, must each have
// such a cluster: a single outlier then creates no speaker.
func (c *Clusterer) createSpeakers(w *Window) {
	confirmed := c.candidate
	c.candidate = false
	for i := range c.clusters {
		g := &c.clusters[i]
		nearest, excess := c.largestExcess(g, w.First)
		minDuration := c.p.NewSpeakerMinDuration
		if nearest == noSpeaker {
			minDuration = c.p.NewSpeakerDuration
		}
		margin := c.p.NewSpeakerMargin * max(0, 1-(g.duration-c.p.NewSpeakerDuration)/c.p.NewSpeakerMarginDecay)
		if excess < -margin && g.duration >= minDuration && len(c.speakers) < c.max {
			c.candidate = true
			if nearest != noSpeaker && !confirmed {
				continue
			}
			c.memory.append(storedSegment{g.embedding, g.duration, len(c.speakers), w.First + len(w.SpeechProbability), false})
			c.speakers = append(c.speakers, speaker{})
			c.speakers[len(c.speakers)-1].add(&g.embedding.Embedding, g.duration)
			c.speakers[len(c.speakers)-1].normalise()
		}
	}
}

// mergeMinSegments is how many stored segments each of two speakers needs to be
// merged: centroids of fewer are too noisy.
const mergeMinSegments = 6

// mergeSpeakers merges speakers that turn out to be one person. A person who
// sounds different for some seconds can get a second speaker; with more stored
// segments of both, their centroids become similar. The speaker with more speech
// remains, and the number of the other is not used again. Committed frames keep
// their labels.
func (c *Clusterer) mergeSpeakers() {
	for b := range c.speakers {
		for a := range b {
			x, y := &c.speakers[a], &c.speakers[b]
			if x.merged() || y.merged() || !c.samePerson(a, b) {
				continue
			}
			if x.duration >= y.duration {
				c.mergeInto(a, b)
			} else {
				c.mergeInto(b, a)
			}
		}
	}
}

// samePerson reports whether two speakers are to be merged.
func (c *Clusterer) samePerson(a, b int) bool {
	return c.speakers[a].centroid.similarity(&c.speakers[b].centroid) >= c.p.MergeThreshold &&
		min(c.memory.count(a), c.memory.count(b)) >= mergeMinSegments
}

// mergeInto merges speaker from into speaker to.
func (c *Clusterer) mergeInto(to, from int) {
	src, dst := &c.speakers[from], &c.speakers[to]
	for i, x := range src.sum {
		dst.sum[i] += x
	}
	dst.duration += src.duration
	dst.normalise()
	*src = speaker{}
	c.memory.move(from, to)
	c.aggregate.move(from, to)
}
