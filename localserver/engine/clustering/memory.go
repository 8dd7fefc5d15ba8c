package clustering

// memory stores the segments of the session, so that their speakers can be
// decided again: a speaker that is created late gets the segments that were
// assigned to others before, and a wrong assignment does not stay in a centroid.
// This is k-means with a growing number of clusters (DP-means: Kulis and Jordan,
// "Revisiting k-means: new algorithms via Bayesian nonparametrics", ICML 2012),
// except that new clusters are created from segment clusters only.
type memory struct {
	segments  []storedSegment // in order of time
	end       int             // where the stored speech ends, in frames of the stream
	converged bool            // another reassign would change nothing
}

// storedSegment is one segment of the memory.
type storedSegment struct {
	embedding normalised
	duration  float64 // seconds of single-speaker speech
	speaker   int     // or noSpeaker
	// at is its centre, in frames of the stream; of a cluster that created a speaker, the
	// end of its window; of a restored segment, beforeStream.
	at        int
	continues bool // one local speaker says it and the segment stored before it without a pause
}

const (
	// memoryLag is how old a segment is, in frames, when it is stored: the
	// networks have then seen what follows it.
	memoryLag = 75
	// memoryMax bounds the memory: 600 segments take 0.3 MB.
	memoryMax = 600
	// maxStoredOverlap is the part of a segment that may be stored already.
	maxStoredOverlap = 0.3
	// selfSimilarityDuration is the speech (seconds) from which the mean
	// similarity of a speaker's segments to the centroid is known. Of two or three
	// segments, each is too large a part of the centroid.
	selfSimilarityDuration = 5
	// nearestSegments is the number of stored segments that are compared with
	// an embedding. A single one may be assigned wrongly.
	nearestSegments = 3
)

// add stores the segments of a window that are centred memoryLag frames or more before
// its end and have at least MemoryMinDuration seconds. Windows overlap and cut the same
// speech at different places, so a segment that is stored already in part is left
// out: otherwise a speaker would be similar to itself because the same second
// counts twice. add reports whether anything was stored.
func (m *memory) add(w *Window, segments []segment, p *Params) (added bool) {
	end := w.First + len(w.SpeechProbability) - memoryLag
	for {
		var next *segment
		for i := range segments {
			s := &segments[i]
			from, to := w.Span(s.Segment)
			stored := m.end - from
			if s.Duration >= p.MemoryMinDuration && w.First+s.Centre < end && to > m.end &&
				float64(stored) <= maxStoredOverlap*float64(to-from) && (next == nil || s.Centre < next.Centre) {
				next = s
			}
		}
		if next == nil {
			break
		}
		m.segments = append(m.segments, storedSegment{next.embedding, next.Duration, noSpeaker, w.First + next.Centre, m.continues(w, next)})
		_, m.end = w.Span(next.Segment)
		added = true
	}
	if len(m.segments) > memoryMax {
		m.thin()
	}
	m.converged = m.converged && !added
	return added
}

// append stores one segment.
func (m *memory) append(s storedSegment) {
	m.segments = append(m.segments, s)
	m.converged = false
}

// move assigns all segments of one speaker to another.
func (m *memory) move(from, to int) {
	for i := range m.segments {
		if s := &m.segments[i]; s.speaker == from {
			s.speaker = to
		}
	}
	m.converged = false
}

// thin deletes every second segment of the older half of each speaker.
func (m *memory) thin() {
	var count, seen [MaxSpeakers + 1]int
	for i := range m.segments {
		count[m.segments[i].speaker+1]++
	}
	kept := m.segments[:0]
	continuous := true // all since the last kept segment are linked
	for _, s := range m.segments {
		k := s.speaker + 1
		seen[k]++
		continuous = continuous && s.continues
		if seen[k] <= count[k]/2 && seen[k]%2 != 0 {
			continue
		}
		s.continues, continuous = continuous, true
		kept = append(kept, s)
	}
	m.segments = kept
	m.converged = false
}

// reassign assigns each stored segment to the most similar speaker, links
// included, and computes each speaker from its segments. It is one iteration of
// k-means; each window does one, until nothing changes any more.
func (m *memory) reassign(speakers []speaker, p *Params) {
	if m.converged {
		return
	}
	m.converged = true
	for i := range m.segments {
		s := &m.segments[i]
		assigned, best := noSpeaker, p.RejectionThreshold
		for k := range speakers {
			if x := s.embedding.similarity(&speakers[k].centroid) + m.linkScore(i, k, p); x > best {
				assigned, best = k, x
			}
		}
		m.converged = m.converged && assigned == s.speaker
		s.speaker = assigned
	}
	for k := range speakers {
		updated := m.speaker(k)
		if updated.duration < 1 {
			continue // too little to replace the embedding that created the speaker
		}
		updated.normalise()
		if updated.duration >= selfSimilarityDuration {
			for i := range m.segments {
				if s := &m.segments[i]; s.speaker == k {
					updated.selfSimilarity += s.duration * s.embedding.similarity(&updated.centroid) / updated.duration
				}
			}
		}
		m.converged = m.converged && updated.sum == speakers[k].sum
		speakers[k] = updated
	}
}

// speaker is what the stored segments of speaker k add up to; normalise must follow.
func (m *memory) speaker(k int) (sum speaker) {
	for i := range m.segments {
		if s := &m.segments[i]; s.speaker == k {
			sum.add(&s.embedding.Embedding, s.duration)
		}
	}
	return sum
}

// nearest is the mean similarity of e to those stored segments of speaker k before
// a frame that are most similar to it; ok is false when there are fewer than
// nearestSegments.
func (m *memory) nearest(e *normalised, k, before int) (mean float64, ok bool) {
	top := [nearestSegments]float64{-2, -2, -2}
	n := 0
	for i := range m.segments {
		s := &m.segments[i]
		if s.speaker != k || s.at >= before {
			continue
		}
		n++
		x := s.embedding.similarity(e)
		for j := range top {
			if x > top[j] {
				x, top[j] = top[j], x
			}
		}
	}
	for _, x := range top {
		mean += x / nearestSegments
	}
	return mean, n >= nearestSegments
}

// count is the number of stored segments of speaker k.
func (m *memory) count(k int) (n int) {
	for i := range m.segments {
		if m.segments[i].speaker == k {
			n++
		}
	}
	return n
}
