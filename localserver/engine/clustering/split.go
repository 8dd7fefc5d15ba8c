package clustering

// A voice that took in a second person while both were new, when a few seconds
// of each could have been one person, is found out later: what is remembered of
// it falls into two heaps, and pieces of the same heap are much more alike than
// pieces of two. It is pairs of pieces that are compared: how far the heaps'
// means lie apart, in widths of the heaps, tells much less (see the README).

const (
	// heapPieces and heapSpeech are how many pieces and seconds a heap needs.
	heapPieces, heapSpeech = 6, 4.0
	// heapRounds bounds the iterations of 2-means.
	heapRounds = 10
)

// heap is one of the two parts of a voice's memory.
type heap struct {
	sum    [Dim]float64
	weight float64
	count  int
}

// add takes in an item, or with a negative sign takes it out.
func (h *heap) add(it *item, sign float64) {
	for i, x := range it.embedding {
		h.sum[i] += sign * it.weight * float64(x)
	}
	h.weight += sign * it.weight
	h.count += int(sign)
}

// centre is the heap's mean, scaled to length 1.
func (h *heap) centre() (e Embedding) {
	v := voice{sum: h.sum}
	v.scale()
	return v.centre
}

// split looks whether what is remembered of voice v is two people's, and if so
// gives the one who is remembered less to a new voice.
func (m *memory) split(voices []voice, v int, p *Params) (fresh voice, ok bool) {
	a, b := m.poles(&voices[v], v)
	if a == nobody {
		return fresh, false
	}
	var heaps [2]heap
	m.side = resize(m.side, len(m.items))
	for i := range m.items {
		m.side[i] = 0
	}
	heaps[0].add(&m.items[a], 1)
	heaps[1].add(&m.items[b], 1)
	for range heapRounds {
		centres := [2]Embedding{heaps[0].centre(), heaps[1].centre()}
		var next [2]heap
		moved := false
		for i := range m.items {
			it := &m.items[i]
			if it.voice != v {
				continue
			}
			k := int8(0)
			if it.embedding.Dot(&centres[1]) > it.embedding.Dot(&centres[0]) {
				k = 1
			}
			moved = moved || k != m.side[i]
			m.side[i] = k
			next[k].add(it, 1)
		}
		heaps = next
		if !moved {
			break
		}
	}
	if !m.differ(heaps[:], v, p) {
		return fresh, false
	}
	less := int8(0)
	if heaps[1].weight < heaps[0].weight {
		less = 1
	}
	for i := range m.items {
		if it := &m.items[i]; it.voice == v && m.side[i] == less {
			fresh.add(&it.embedding, it.weight)
		}
	}
	fresh.scale()
	stay := voice{sum: heaps[1-less].sum, weight: heaps[1-less].weight}
	stay.scale()
	voices[v] = stay
	return fresh, true
}

// count is how many pieces are remembered of voice v.
func (m *memory) count(v int) (n int) {
	for i := range m.items {
		if m.items[i].voice == v {
			n++
		}
	}
	return n
}

// differ tells whether two heaps are two people's: whether pieces of one heap are
// more alike than pieces of both, the more the more alike the heaps are.
func (m *memory) differ(heaps []heap, v int, p *Params) bool {
	for k := range heaps {
		if heaps[k].count < heapPieces || heaps[k].weight < heapSpeech {
			return false
		}
	}
	a, b := heaps[0].centre(), heaps[1].centre()
	crossings := m.crossings(func(i int) int8 {
		if m.items[i].voice == v {
			return m.side[i]
		}
		return nobody
	})
	if p.onePerson(a.Dot(&b), min(heaps[0].count, heaps[1].count), crossings) {
		return false
	}
	between := 0.0
	for i, x := range heaps[0].sum {
		between += x * heaps[1].sum[i] / (heaps[0].weight * heaps[1].weight)
	}
	within := min(m.within(&heaps[0], v, 0), m.within(&heaps[1], v, 1))
	return within-between >= p.Split+p.SplitAlike*between
}

// within is the mean cosine of the pieces of heap k with each other.
func (m *memory) within(h *heap, v int, k int8) float64 {
	var norm, own float64
	for _, x := range h.sum {
		norm += x * x
	}
	for i := range m.items {
		if it := &m.items[i]; it.voice == v && m.side[i] == k {
			own += it.weight * it.weight
		}
	}
	return (norm - own) / max(h.weight*h.weight-own, 1e-9)
}

// poles are the item of a voice that is least like it, and the one that is
// least like that.
func (m *memory) poles(o *voice, v int) (a, b int) {
	a, b = nobody, nobody
	least := 2.0
	for i := range m.items {
		if it := &m.items[i]; it.voice == v {
			if cos := it.embedding.Dot(&o.centre); cos < least {
				a, least = i, cos
			}
		}
	}
	if a == nobody {
		return nobody, nobody
	}
	least = 2.0
	for i := range m.items {
		if it := &m.items[i]; it.voice == v && i != a {
			if cos := it.embedding.Dot(&m.items[a].embedding); cos < least {
				b, least = i, cos
			}
		}
	}
	if b == nobody {
		return nobody, nobody
	}
	return a, b
}
