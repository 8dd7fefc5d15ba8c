package clustering

import "math"

const (
	// clingTime is how fast, in seconds, the support of a piece for another one
	// of its local falls with the time between them.
	clingTime = 1.5
	// clingRounds bounds how often the pieces look at each other again.
	clingRounds = 3
	// doubtLeast is how much lone speech, in seconds, a group needs to be doubted:
	// less says as little against a voice as for it.
	doubtLeast = 0.6
)

// assign gives each piece the voice that it sounds most like, the most certain
// first, and no voice to two pieces that talk at once.
func (c *Clusterer) assign(w *Window) {
	c.who, c.worth = c.who[:0], c.worth[:0]
	least := c.p.Nobody
	if len(c.voices) == c.max {
		least = -1 // a voice too many gets the nearest label
	}
	for i := range c.pieces {
		p := &c.pieces[i]
		var cos [MaxVoices]float64
		doubt := len(c.voices) < c.max && c.doubtful(p)
		for v := range c.voices {
			if doubt || c.voices[v].gone() {
				continue
			}
			cos[v] = c.like(&p.Embedding, v, w.First, c.p.Near) - least
			cos[v] *= 0.3 + p.Lone
		}
		c.worth = append(c.worth, cos)
		c.who = append(c.who, nobody)
	}
	if len(c.voices) == 0 { // whoever begins will be the first voice
		for i := range c.who {
			if !c.clash(w, i, 0) {
				c.who[i] = 0
			}
		}
		c.divide(w)
		return
	}
	for {
		k, v, best := nobody, nobody, 0.0
		for i := range c.pieces {
			for j := range c.voices {
				if c.who[i] == nobody && c.worth[i][j] > best {
					k, v, best = i, j, c.worth[i][j]
				}
			}
		}
		if k == nobody {
			break
		}
		if c.clash(w, k, v) {
			c.worth[k][v] = 0
			continue
		}
		c.who[k] = v
	}
	for range clingRounds {
		if !c.cling(w) {
			break
		}
	}
	c.divide(w)
}

// doubtful tells whether a piece is of a group that is neither known nor new yet.
func (c *Clusterer) doubtful(p *piece) bool {
	for k := range c.groups {
		if g := &c.groups[k]; g.first == p.group {
			return g.lone >= doubtLeast && g.above < -c.p.Doubt
		}
	}
	return false
}

// cling lets the pieces of one local support each other: what the network hears
// as one voice mostly is one, and a second of speech alone is often taken for
// somebody else's. A piece that sounds like another voice beyond doubt still
// goes there. It tells whether anything changed.
func (c *Clusterer) cling(w *Window) (changed bool) {
	for i := range c.pieces {
		worth := c.supported(i)
		best := c.who[i]
		for v := range c.voices {
			if c.worth[i][v] > 0 && (best == nobody || worth[v] > worth[best]) && !c.clash(w, i, v) {
				best = v
			}
		}
		changed = changed || best != c.who[i]
		c.who[i] = best
	}
	return changed
}

// supported is what piece i is worth to each voice, with the support of the other
// pieces of its local.
func (c *Clusterer) supported(i int) [MaxVoices]float64 {
	p, worth := &c.pieces[i], c.worth[i]
	for j := range c.pieces {
		o := &c.pieces[j]
		if j == i || o.local != p.local || c.who[j] == nobody {
			continue
		}
		apart := math.Abs(float64(o.centre-p.centre)) * frameSeconds
		worth[c.who[j]] += c.p.Cling * (0.3 + min(o.Lone, 1)) * math.Exp(-apart/clingTime)
	}
	return worth
}

// divide says how much of each piece is whose: one window's word on a piece that
// sounds like two voices should not weigh as much as another's who is sure of it. It is
// the softmax of what the piece is worth to those voices that it may be taken for.
func (c *Clusterer) divide(w *Window) {
	c.shares = c.shares[:0]
	for i, who := range c.who {
		var share [MaxVoices]float32
		if who != nobody {
			worth := c.supported(i)
			most := worth[who]
			for v := range worth {
				if v != who && (c.worth[i][v] <= 0 || c.clash(w, i, v)) {
					worth[v] = math.Inf(-1)
				}
				most = max(most, worth[v])
			}
			sum := 0.0
			for v, x := range worth {
				worth[v] = math.Exp((x - most) / c.p.Temperature)
				sum += worth[v]
			}
			for v, x := range worth {
				share[v] = float32(x / sum)
			}
		}
		c.shares = append(c.shares, share)
	}
}

// clash tells whether another piece that is voice v talks while piece k does.
func (c *Clusterer) clash(w *Window, k, v int) bool {
	for i, who := range c.who {
		if who == v && c.pieces[i].local != c.pieces[k].local && c.together(w, &c.pieces[i], &c.pieces[k]) {
			return true
		}
	}
	return false
}
