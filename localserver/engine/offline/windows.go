package offline

import "hubbub/localserver/engine/clustering"

// activityScale is the probability 1 in a window.
const activityScale = 255

// active reports whether a probability is above clustering.ActiveThreshold.
func active(activity uint8) bool {
	return float32(activity) > activityScale*clustering.ActiveThreshold
}

// window is a clustering.Window in less memory.
type window struct {
	first    int     // frame of the recording
	speech   []uint8 // probability of each frame, in steps of 1/255
	speakers []localSpeaker
	clusters []windowCluster
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

// windowCluster is a set of segments of one window that are taken for one person.
type windowCluster struct {
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
	local, index int // of the segment
	cluster      int
	fresh        float64 // seconds
}

// keep makes the window that the second pass stores. Its middle is from frame
// first to frame end of the recording.
func (p *Params) keep(w *clustering.Window, first, end int) window {
	k := window{first: w.First, speech: quantise(w.SpeechProbability), speakers: make([]localSpeaker, len(w.Speakers))}
	var items []item
	var clusters []cluster
	for i := range w.Speakers {
		l := &w.Speakers[i]
		k.speakers[i] = localSpeaker{quantise(l.Activity), make([]segment, len(l.Segments))}
		for j := range l.Segments {
			s := &l.Segments[j]
			k.speakers[i].segments[j] = segment{from: uint8(s.From), to: uint8(s.To)}
			from, to := w.Span(s)
			from, to = max(from, first), min(to, end)
			items = append(items, item{i, j, len(items), float64(max(0, to-from)) * frameSeconds})
			clusters = append(clusters, clusterOf(&s.Embedding, s.Duration+durationOffset))
		}
	}
	p.clusterWindow(&k, items, clusters)
	return k
}

// durationOffset (seconds) makes segments without single-speaker speech count for
// something.
const durationOffset = 0.05

// clusterWindow joins the segments of a window into clusters, the most similar ones first,
// and never two that talk at once.
func (p *Params) clusterWindow(w *window, items []item, clusters []cluster) {
	for {
		a, b, best := 0, 0, p.LinkageThreshold
		for i := range items {
			for j := range i {
				if items[i].cluster != i || items[j].cluster != j { // part of others
					continue
				}
				s := clusters[i].cosine(&clusters[j]) + p.ShortBonus*max(0, 1-min(clusters[i].duration, clusters[j].duration))
				same, overlap := w.compare(items, i, j)
				if same {
					s += p.SameLocalBonus
				}
				if s > best && !overlap {
					a, b, best = j, i, s
				}
			}
		}
		if a == b {
			break
		}
		clusters[a].add(&clusters[b])
		for i := range items {
			if items[i].cluster == b {
				items[i].cluster = a
			}
		}
	}
	count := 0
	for i := range items {
		if items[i].cluster == i {
			count++
		}
	}
	w.clusters = make([]windowCluster, 0, count)
	number := make([]int, len(items)) // of the cluster that began with an item
	for i := range items {
		it := &items[i]
		if it.cluster == i {
			number[i] = len(w.clusters)
			w.clusters = append(w.clusters, windowCluster{embedding: clusters[i].quantised(), duration: clusters[i].duration, speaker: noSpeaker})
		}
		n := number[it.cluster]
		w.clusters[n].fresh += it.fresh
		w.speakers[it.local].segments[it.index].cluster = uint8(n)
	}
}

// compare reports of the clusters that begin with items i and j whether they have
// segments of one local speaker, and whether they talk at once.
func (w *window) compare(items []item, i, j int) (same, overlap bool) {
	for _, x := range items {
		for _, y := range items {
			if x.cluster != i || y.cluster != j {
				continue
			}
			if x.local == y.local {
				same = true
			} else if w.overlap(x.local, &w.speakers[x.local].segments[x.index], y.local, &w.speakers[y.local].segments[y.index]) {
				return same, true
			}
		}
	}
	return same, false
}

// overlap reports whether segment x of local speaker a and segment y of b talk at
// once.
func (w *window) overlap(a int, x *segment, b int, y *segment) bool {
	both := 0
	for i := int(max(x.from, y.from)); i < int(min(x.to, y.to)); i++ {
		if active(w.speakers[a].activity[i]) && active(w.speakers[b].activity[i]) {
			both++
		}
	}
	return both >= clustering.MinOverlap
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
