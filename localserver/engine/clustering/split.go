package clustering

import "math"

// A voice that took in a second person while both were new, when a few seconds
// of each could have been one person, is found out later: what is remembered of
// it falls into two heaps that lie apart by much more than either is wide. How
// wide they are is measured, not set: synthetic voices and clean lines make
// narrow heaps, a far microphone wide ones.

const (
	// heapPieces and heapSpeech are how many pieces and seconds a heap needs.
	heapPieces, heapSpeech = 5, 4.0
	// heapRounds bounds the iterations of 2-means.
	heapRounds = 10
	// heapWidth is the least width of a heap, in cosine: few pieces look
	// narrower than they are.
	heapWidth = 0.03
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

// cos is the cosine of an embedding with the heap's centre. own says that the
// embedding is part of the heap with this weight: it is not compared to itself.
func (h *heap) cos(e *Embedding, own float64) float64 {
	var dot, norm float64
	for i, x := range e {
		s := h.sum[i] - own*float64(x)
		dot += s * float64(x)
		norm += s * s
	}
	if norm <= 0 {
		return 0
	}
	return dot / math.Sqrt(norm)
}

// split looks whether what is remembered of voice v is two people's, and if so
// gives the one who is remembered less to a new voice. apart is how many widths
// the heaps must lie apart.
func (m *memory) split(voices []voice, v int, apart float64) (fresh voice, ok bool) {
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
	for k := range heaps {
		if heaps[k].count < heapPieces || heaps[k].weight < heapSpeech {
			return fresh, false
		}
	}
	if min(m.distance(heaps[:], v, 0), m.distance(heaps[:], v, 1)) < apart {
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

// distance is how far heap k lies from the other one, in widths: the difference
// of its pieces' mean cosines with either, over their deviation.
func (m *memory) distance(heaps []heap, v int, k int8) float64 {
	var own, other, own2, other2 float64
	for i := range m.items {
		it := &m.items[i]
		if it.voice != v || m.side[i] != k {
			continue
		}
		w := it.weight / heaps[k].weight
		x, y := heaps[k].cos(&it.embedding, it.weight), heaps[1-k].cos(&it.embedding, 0)
		own, own2 = own+w*x, own2+w*x*x
		other, other2 = other+w*y, other2+w*y*y
	}
	width := math.Sqrt(max(0, own2-own*own)/2 + max(0, other2-other*other)/2)
	return (own - other) / max(width, heapWidth)
}
