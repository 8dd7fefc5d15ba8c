package clustering

// memory keeps what the session has heard, piece by piece, so that who said it
// can be thought over: a voice founded late takes back what was given to others
// before, and one mistake does not stay in a voice for ever. It is k-means with
// a changing number of centres (DP-means: Kulis and Jordan, "Revisiting
// k-means: new algorithms via Bayesian nonparametrics", ICML 2012), except that
// founding is left to more than one piece at a time.
type memory struct {
	items   []item
	until   int    // where the speech that has been taken ends, in frames of the stream
	settled bool   // reconsidering again would change nothing
	side    []int8 // of each item, while a voice is looked at as two
}

// selfSpeech is how much lone speech, in seconds, tells how alike the pieces of
// a voice are: of two or three each is too large a part of the mean itself.
const selfSpeech = 5

// item is one remembered piece.
type item struct {
	embedding Embedding
	weight    float64 // seconds of lone speech
	voice     int     // or nobody
	at        int     // its middle, in frames of the stream
	link      link    // to the item before it
}

// nearest is how many pieces of a voice are asked how alike they are. One alone
// may be somebody else's.
const nearest = 3

// overlapMost is which part of a piece may be speech that was remembered before.
const overlapMost = 0.3

// remember takes the pieces of a window that are settled: those centred lag
// frames or more behind the newest. Windows cut the same speech at other places,
// in a growing turn a little later each time; what was taken before is not taken
// again, or a voice would resemble itself because it is the same second twice.
// It tells whether there was anything new.
func (m *memory) remember(w *Window, pieces []piece, lag, most int, least float64) (more bool) {
	end := w.First + len(w.Speech) - lag
	for {
		var next *piece
		for i := range pieces {
			p := &pieces[i]
			from, to := w.Span(p.Piece)
			known := m.until - from
			if p.Lone >= least && w.First+p.centre < end && to > m.until &&
				float64(known) <= overlapMost*float64(to-from) && (next == nil || p.centre < next.centre) {
				next = p
			}
		}
		if next == nil {
			break
		}
		m.items = append(m.items, item{next.Embedding, next.Lone, nobody, w.First + next.centre, m.link(w, next)})
		_, m.until = w.Span(next.Piece)
		more = true
	}
	if len(m.items) > most {
		m.thin()
	}
	m.settled = m.settled && !more
	return more
}

// thin forgets every second item of each voice's older half, so that the
// latest are remembered best and the first ones not lost.
func (m *memory) thin() {
	var count, seen [MaxVoices + 1]int
	for i := range m.items {
		count[m.items[i].voice+1]++
	}
	kept := m.items[:0]
	forgotten, through := false, true // since the last one kept: any, and all without a pause
	for _, it := range m.items {
		v := it.voice + 1
		seen[v]++
		through = through && it.link == goesOn
		if seen[v] <= count[v]/2 && seen[v]%2 != 0 {
			forgotten = true
			continue
		}
		if forgotten && !through {
			it.link = unlinked
		}
		kept = append(kept, it)
		forgotten, through = false, true
	}
	m.items = kept
}

// reconsider gives each item the voice that it is nearest to, those being nearer
// that the items linked to it have, and each voice the centre of its items. It is
// one round of k-means, and the next window's is the next one, until no item and
// no centre moves any more.
func (m *memory) reconsider(voices []voice, p *Params) {
	if m.settled {
		return
	}
	m.settled = true
	for i := range m.items {
		it := &m.items[i]
		who, best := nobody, p.Recall
		for v := range voices {
			if x := it.embedding.Dot(&voices[v].centre) + m.pull(i, v, p); x > best {
				who, best = v, x
			}
		}
		m.settled = m.settled && who == it.voice
		it.voice = who
	}
	for v := range voices {
		fresh := voice{}
		for i := range m.items {
			if m.items[i].voice == v {
				fresh.add(&m.items[i].embedding, m.items[i].weight)
			}
		}
		if fresh.weight < 1 {
			continue
		}
		fresh.scale()
		if fresh.weight >= selfSpeech {
			for i := range m.items {
				if it := &m.items[i]; it.voice == v {
					fresh.self += it.weight * it.embedding.Dot(&fresh.centre) / fresh.weight
				}
			}
		}
		m.settled = m.settled && fresh.sum == voices[v].sum
		voices[v] = fresh
	}
}

// near is the mean cosine of e with the pieces of voice v that are most like it,
// of those said before a frame; ok is false when there are too few.
func (m *memory) near(e *Embedding, v, before int) (cos float64, ok bool) {
	top := [nearest]float64{-1, -1, -1}
	n := 0
	for i := range m.items {
		it := &m.items[i]
		if it.voice != v || it.at >= before {
			continue
		}
		n++
		x := it.embedding.Dot(e)
		for k := range top {
			if x > top[k] {
				x, top[k] = top[k], x
			}
		}
	}
	for _, x := range top {
		cos += x / nearest
	}
	return cos, n >= nearest
}
