package offline

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"hubbub/localserver/engine/clustering"
)

const (
	// maxItems bounds the clusters of one agglomeration, whose cost grows with
	// their square. More are reduced in blocks first.
	maxItems = 1500
	// reduction is the factor by which a block is reduced.
	reduction = 3
	// assignments is how often all segment clusters are assigned and the speakers computed
	// anew, as in k-means.
	assignments = 4
)

// findSpeakers clusters the recording and assigns the segment clusters.
func (r *Recording) findSpeakers(ctx context.Context) ([]cluster, error) {
	items, err := r.reduce(ctx, r.items())
	if err != nil {
		return nil, err
	}
	speakers := r.cut(items)
	for merged := true; merged; speakers, merged = r.merge(speakers, func(int, int) float64 { return 0 }) {
		if err := r.assign(ctx, speakers); err != nil {
			return nil, err
		}
	}
	return speakers, nil
}

// merge merges the two speakers that exceed the threshold by most, if there are any and
// there may be fewer speakers.
func (r *Recording) merge(speakers []cluster, continuation func(a, b int) float64) (_ []cluster, merged bool) {
	a, b, best := 0, 0, 0.0
	for i := range speakers {
		for j := range i {
			if s := r.params.mergeExcess(&speakers[i], &speakers[j], continuation(i, j)); s > best {
				a, b, best = j, i, s
			}
		}
	}
	if a == b || len(speakers) <= r.options.min() {
		return speakers, false
	}
	speakers[a].add(&speakers[b])
	return slices.Delete(speakers, b, b+1), true
}

// items are the segment clusters that take part in the clustering, in order of time.
func (r *Recording) items() iter.Seq[cluster] {
	return func(yield func(cluster) bool) {
		for i := range r.windows {
			if i%1000 == 0 {
				r.report(clusteringShare * float64(i) / float64(len(r.windows)))
			}
			for j := range r.windows[i].clusters {
				c := &r.windows[i].clusters[j]
				if c.fresh > 0 && c.duration >= r.params.MinCluster && !yield(c.embedding.cluster(c.fresh)) {
					return
				}
			}
		}
	}
}

// reduce clusters more than maxItems items in blocks until there are no more than
// that. A block is clustered when the next one begins, so that the items of a long
// recording are not in memory at once.
func (r *Recording) reduce(ctx context.Context, items iter.Seq[cluster]) ([]cluster, error) {
	block := make([]cluster, 0, maxItems)
	var reduced []cluster
	flush := func() {
		_, left := agglomerate(block, max(1, len(block)/reduction), r.params.excess)
		reduced, block = append(reduced, left...), block[:0]
	}
	for item := range items {
		if len(block) == maxItems {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			flush()
		}
		block = append(block, item)
	}
	if reduced == nil {
		return block, nil
	}
	flush()
	if len(reduced) > maxItems {
		return r.reduce(ctx, slices.Values(reduced))
	}
	return reduced, nil
}

// assign assigns the clusters of all windows to the speakers and computes these from
// the clusters that they got, several times. The duration of a speaker stays that
// of the clustering: windows overlap.
func (r *Recording) assign(ctx context.Context, speakers []cluster) error {
	for range assignments {
		sums := make([]cluster, len(speakers))
		of := centroids(speakers)
		for i := range r.windows {
			if i%1000 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			w := &r.windows[i]
			w.assign(of)
			for _, g := range w.clusters {
				if g.speaker != noSpeaker && g.duration >= r.params.MinCluster {
					c := g.embedding.cluster(g.duration)
					sums[g.speaker].add(&c)
				}
			}
		}
		for k := range sums {
			if sums[k].duration > 0 {
				sums[k].duration = speakers[k].duration
				speakers[k] = sums[k]
			}
		}
	}
	return nil
}

func centroids(speakers []cluster) []clustering.Embedding {
	list := make([]clustering.Embedding, len(speakers))
	for k := range speakers {
		list[k] = speakers[k].centroid()
	}
	return list
}

// cut clusters items down to one and takes the state in which they are speakers:
// that of excess 0, or the last one with as many speakers. Where these are too
// few, merges are undone, but only those with an excess up to CountMargin: beyond
// it both parts are of one person. Where they are too many, those with least speech
// are no speakers, because merging two would mix two voices. The one with most speech
// comes first.
func (r *Recording) cut(items []cluster) []cluster {
	merges, _ := agglomerate(slices.Clone(items), 1, r.params.excess)
	// The number of speakers after each merge.
	counts := make([]int, len(merges)+1)
	duration := make([]float64, len(items))
	least := r.params.minSpeaker(items)
	speaker := func(i int) int {
		if duration[i] >= least {
			return 1
		}
		return 0
	}
	for i := range items {
		duration[i] = items[i].duration
		counts[0] += speaker(i)
	}
	natural := len(merges)
	for k, m := range merges {
		if m.score <= 0 {
			natural = min(natural, k)
		}
		counts[k+1] = counts[k] - speaker(m.into) - speaker(m.from)
		duration[m.into] += duration[m.from]
		counts[k+1] += speaker(m.into)
	}
	state := natural
	if counts[natural] < r.options.min() {
		for k := natural; k > 0 && merges[k-1].score <= r.params.CountMargin && counts[state] < r.options.min(); k-- {
			if counts[k-1] > counts[state] {
				state = k - 1
			}
		}
	} else {
		for k := range counts { // the last such state: what it joins late are remainders
			if counts[k] == counts[natural] {
				state = k
			}
		}
	}
	left := apply(slices.Clone(items), merges[:state])
	slices.SortStableFunc(left, func(a, b cluster) int { return cmp.Compare(b.duration, a.duration) })
	n := 0
	for n < min(len(left), r.options.max()) && (left[n].duration >= least || n < r.options.min()) {
		n++
	}
	return left[:n]
}
