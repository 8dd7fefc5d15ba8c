package clustering

// A voice that was founded by somebody who was known already, because a second or
// two of another sentence or another microphone sounded like nobody, is found out
// later: the more is remembered of both, the more alike their centres become. What
// was committed stays, but the person goes on under one label only.

// mergePieces is how many pieces of each of two voices must be remembered for
// them to be compared: centres of fewer say too little.
const mergePieces = 6

// merge makes one voice of two that turn out to be one person. It is the one of
// which more has been heard that stays. The other keeps its number, which is never
// given to anybody else; where no number would be left for somebody new, all stays
// as it is.
func (c *Clusterer) merge() {
	if len(c.voices) == c.max {
		return
	}
	for b := range c.voices {
		for a := range b {
			x, y := &c.voices[a], &c.voices[b]
			if x.gone() || y.gone() || !c.onePerson(a, b) {
				continue
			}
			if x.weight >= y.weight {
				c.absorb(a, b)
			} else {
				c.absorb(b, a)
			}
		}
	}
}

// onePerson tells whether two voices are one person's: because they sound alike, or,
// where they sound less so, because each goes on in the middle of the other's speech.
func (c *Clusterer) onePerson(a, b int) bool {
	cos := c.voices[a].centre.Dot(&c.voices[b].centre)
	if cos < c.p.MergeLinked { // so are most pairs
		return false
	}
	crossings := c.memory.crossings(func(i int) int8 {
		switch c.memory.items[i].voice {
		case a:
			return 0
		case b:
			return 1
		}
		return nobody
	})
	return c.p.onePerson(cos, min(c.memory.count(a), c.memory.count(b)), crossings)
}

// onePerson decides by how alike two centres are, how many pieces there are of the
// one with fewer, and how many go on in the other's speech.
func (p *Params) onePerson(cos float64, fewer, crossings int) bool {
	interwoven := float64(crossings) >= linkedShare*float64(fewer)
	return fewer >= mergePieces && (cos >= p.Merge || cos >= p.MergeLinked && interwoven)
}

// absorb gives all that voice leave has to voice stay.
func (c *Clusterer) absorb(stay, leave int) {
	from, to := &c.voices[leave], &c.voices[stay]
	for i, x := range from.sum {
		to.sum[i] += x
	}
	to.weight += from.weight
	to.scale()
	*from = voice{}
	for i := range c.memory.items {
		if it := &c.memory.items[i]; it.voice == leave {
			it.voice = stay
		}
	}
	c.belief.move(leave, stay)
	c.asked[stay] = c.memory.count(stay)
	c.memory.settled = false
}
