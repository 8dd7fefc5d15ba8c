package offline

import "hubbub/localserver/engine/clustering"

// activityScale is the probability 1 in a window.
const activityScale = 255

// window is a clustering.Window in less memory.
type window struct {
	first    int     // frame of the recording
	speech   []uint8 // probability of each frame, in steps of 1/255
	speakers []localSpeaker
	clusters []segmentCluster
}

type localSpeaker struct {
	activity []uint8 // probability of each frame, in steps of 1/255
	segments []segment
}

// segment is a part of a local speaker without its embedding, which its cluster
// has. A window has at most 250 frames, and fewer clusters.
type segment struct {
	from, to uint8 // frames of the window
	cluster  uint8 // in window.clusters
}

// segmentCluster is a set of segments of one window that are taken for one person.
type segmentCluster struct {
	embedding quantisedEmbedding
	duration  float64 // seconds of single-speaker speech
	// fresh is the part of duration in the middle of the window: each second of
	// the recording is in the middle of one window.
	fresh   float64
	speaker int // noSpeaker until it is assigned
}

const noSpeaker = -1

// item is a segment while the clusters are formed.
type item struct {
	cluster     // that begins with this item
	first   int // item of the cluster that it is in
	local   int
	segment *clustering.Segment
	kept    *segment
	fresh   float64 // seconds
}

// durationOffset (seconds) makes segments without single-speaker speech count for
// something.
const durationOffset = 0.05

// keep makes the window that the second pass stores. Its middle is from frame
// first to frame end of the recording.
func (p *Params) keep(w *clustering.Window, first, end int) window {
	k := window{first: w.First, speech: quantise(w.SpeechProbability), speakers: make([]localSpeaker, len(w.Speakers))}
	var items []item
	for i := range w.Speakers {
		l := &w.Speakers[i]
		kept := make([]segment, len(l.Segments))
		k.speakers[i] = localSpeaker{quantise(l.Activity), kept}
		for j := range l.Segments {
			s := &l.Segments[j]
			kept[j] = segment{from: uint8(s.From), to: uint8(s.To)}
			from, to := w.Span(s)
			fresh := float64(max(0, min(to, end)-max(from, first))) * frameSeconds
			items = append(items, item{clusterOf(&s.Embedding, s.Duration+durationOffset), len(items), i, s, &kept[j], fresh})
		}
	}
	k.clusters = p.clusterSegments(w, items)
	return k
}

// clusterSegments joins the segments of a window into clusters, the most similar ones first,
// and never two that talk at once.
func (p *Params) clusterSegments(w *clustering.Window, items []item) []segmentCluster {
	count := len(items)
	for ; ; count-- {
		a, b := p.nearest(w, items)
		if a == b {
			break
		}
		items[a].add(&items[b].cluster)
		for i := range items {
			if items[i].first == b {
				items[i].first = a
			}
		}
	}
	clusters := make([]segmentCluster, 0, count)
	for i := range items {
		it := &items[i]
		if it.first == i {
			it.kept.cluster = uint8(len(clusters))
			clusters = append(clusters, segmentCluster{embedding: it.quantised(), duration: it.duration, speaker: noSpeaker})
		}
		n := items[it.first].kept.cluster
		it.kept.cluster = n
		clusters[n].fresh += it.fresh
	}
	return clusters
}

// nearest are the first items a < b of the two most similar clusters that may be joined;
// a = b when there are none.
func (p *Params) nearest(w *clustering.Window, items []item) (a, b int) {
	best := p.LinkageThreshold
	for i := range items {
		for j := range i {
			x, y := &items[i], &items[j]
			if x.first != i || y.first != j { // part of others
				continue
			}
			s := x.cosine(&y.cluster) + p.ShortBonus*max(0, 1-min(x.duration, y.duration))
			same, overlap := compare(w, items, i, j)
			if same {
				s += p.SameLocalBonus
			}
			if s > best && !overlap {
				a, b, best = j, i, s
			}
		}
	}
	return a, b
}

// compare reports of the clusters that begin with items i and j whether they have
// segments of one local speaker, and whether they talk at once.
func compare(w *clustering.Window, items []item, i, j int) (same, overlap bool) {
	for _, x := range items {
		for _, y := range items {
			if x.first != i || y.first != j {
				continue
			}
			if x.local == y.local {
				same = true
			} else if w.Overlap(x.local, x.segment, y.local, y.segment) {
				return same, true
			}
		}
	}
	return same, false
}

// assign gives each cluster the most similar speaker. Two that talk at once may
// get the same one: the decoder decides frame by frame.
func (w *window) assign(centroids []clustering.Embedding) {
	for i := range w.clusters {
		c, best := &w.clusters[i], -2.0
		for k := range centroids {
			if s := c.embedding.dot(&centroids[k]); s > best {
				c.speaker, best = k, s
			}
		}
	}
}

func quantise(p []float32) []uint8 {
	q := make([]uint8, len(p))
	for i, x := range p {
		q[i] = uint8(min(max(x, 0), 1)*activityScale + 0.5)
	}
	return q
}
