// Package clustering decides who the voices of a window are. Windows overlap
// and come one after another; a session's voices are numbered from 0 in the
// order in which they were founded.
//
// The frame of thought is online clustering with cannot-link constraints inside
// a window (Coria, Bredin, Ghannay, Rosset, "Overlap-aware low-latency online
// speaker diarization based on end-to-end local segmentation", ASRU 2021): two
// voices that talk at once are two people. Unlike there, the network's local
// voices are only a hint: their pieces are compared first. Thresholds depend on how
// much speech an embedding saw, because the cosine of one speaker with itself
// falls as the speech gets shorter; a voice is founded by enough lone speech
// only; and what a frame is taken for is weighed over all windows that have
// seen it, later and surer ones more, until it is committed.
package clustering

import (
	"math"
	"slices"
)

// MaxVoices is how many voices a session has at most.
const MaxVoices = 8

// Clusterer follows the voices of one session. The zero value is not usable.
type Clusterer struct {
	p      Params
	max    int
	voices []voice
	belief belief
	memory memory
	asked  [MaxVoices]int // pieces of each voice when it was last looked at as two

	// Groups that wanted to found a voice, in this window and in the one before.
	candidates, earlier []Embedding

	// Of the window at hand.
	pieces []piece
	alike  []float64 // likeness of each piece with each
	groups []group
	worth  [][MaxVoices]float64 // worth of taking each piece for each voice
	who    []int                // the voice of each piece
	shares [][MaxVoices]float32 // how much of each piece is whose
}

// New returns a Clusterer that founds at most most voices, 1 to MaxVoices.
func New(p Params, most int) *Clusterer {
	return &Clusterer{p: p, max: min(max(most, 1), MaxVoices)}
}

// Voices is how many voices have been founded.
func (c *Clusterer) Voices() int { return len(c.voices) }

// memoryLag is how old a piece is, in frames, when it is remembered: the
// networks have seen what came after it. memoryMost bounds the memory: 600
// pieces of a second are 0.3 MB.
const (
	memoryLag  = 75
	memoryMost = 600
)

// nobody is the voice of a piece that sounds like none.
const nobody = -1

// Hear takes the next window.
func (c *Clusterer) Hear(w *Window) {
	c.belief.extend(w.First + len(w.Speech))
	c.regroup(w)
	more := c.memory.remember(w, c.pieces, memoryLag, memoryMost, c.p.Remember)
	c.meet(w)
	c.memory.reconsider(c.voices, &c.p)
	if more {
		c.merge()
		c.part()
	}
	c.assign(w)
	c.belief.add(w, c.pieces, c.shares, &c.p)
}

// threshold is the cosine from which a group with so much lone speech is taken
// for a voice: short speech resembles itself less, on either side.
func (c *Clusterer) threshold(lone float64, v *voice) float64 {
	t := c.p.Match + c.p.MatchSlope*math.Log2(min(max(lone, 0.5), c.p.MatchMost)) +
		c.p.OldSlope*math.Log2(min(max(v.weight, 1), c.p.MatchOld)/c.p.MatchOld)
	if v.self > 0 {
		t += c.p.Adapt * (v.self - c.p.AdaptMargin - t)
	}
	return t
}

// meet lets groups with enough speech found voices. Single pieces do not: they
// say too little. A group has to ask in two windows in a row, each of which cut its
// speech anew: what was odd for a moment only does not ask again.
func (c *Clusterer) meet(w *Window) {
	c.candidates, c.earlier = c.earlier[:0], c.candidates
	for k := range c.groups {
		g := &c.groups[k]
		v, above := c.nearest(g, w.First)
		g.above = above
		need, least := c.p.Found, c.p.FoundLeast
		if v == nobody {
			need, least = c.p.FoundFirst, c.p.FoundFirst
		}
		margin := c.p.FoundMargin * max(0, 1-(g.lone-need)/c.p.FoundSure)
		if g.lone < need && !c.unheard(g) {
			margin = c.p.FoundMargin + c.p.FoundSteep*(need-g.lone)
		}
		if v != nobody && c.inside(w, g, v) {
			margin += c.p.FoundInside
		}
		if above < -margin && g.lone >= least && g.coherence >= c.p.Coherence && len(c.voices) < c.max {
			c.candidates = append(c.candidates, g.embedding)
			if v != nobody && !c.hasAsked(&g.embedding) {
				continue
			}
			g.above = 0 // it is a voice of its own now
			c.memory.items = append(c.memory.items, item{g.embedding, g.lone, len(c.voices), w.First + len(w.Speech), unlinked})
			c.voices = append(c.voices, voice{})
			c.voices[len(c.voices)-1].add(&g.embedding, g.lone)
			c.voices[len(c.voices)-1].scale()
			c.memory.settled = false
		}
	}
}

// hasAsked tells whether a group like e wanted to found a voice in the window before.
func (c *Clusterer) hasAsked(e *Embedding) bool {
	return slices.ContainsFunc(c.earlier, func(o Embedding) bool { return e.Dot(&o) > c.p.FoundAgain })
}

// unheard tells whether the group sounds like no voice at all, so that its pieces
// would get no label.
func (c *Clusterer) unheard(g *group) bool {
	for i := range c.voices {
		if g.embedding.Dot(&c.voices[i].centre) >= c.p.Nobody {
			return false
		}
	}
	return true
}

// part gives people of their own to the voices that turn out to be two.
func (c *Clusterer) part() {
	for v := 0; v < len(c.voices) && len(c.voices) < c.max; v++ {
		n := c.memory.count(v)
		c.asked[v] = min(c.asked[v], n)
		if float64(n) < c.p.SplitAgain*float64(c.asked[v]) {
			continue
		}
		c.asked[v] = n
		if fresh, ok := c.memory.split(c.voices, v, &c.p); ok {
			c.voices = append(c.voices, fresh)
			c.memory.settled = false
		}
	}
}

// nearest is the voice that the group exceeds the threshold of by most, or
// falls short of by least, by what was said before a frame.
func (c *Clusterer) nearest(g *group, before int) (v int, above float64) {
	v, above = nobody, math.Inf(-1)
	for i := range c.voices {
		if c.voices[i].gone() {
			continue
		}
		if x := c.like(&g.embedding, i, before, c.p.GroupNear) - c.threshold(g.lone, &c.voices[i]); x > above {
			v, above = i, x
		}
	}
	return v, above
}

// like is how alike e and voice v are. Nobody sounds the same all the time: beside
// the cosine with the voice's centre, the pieces nearest to e have a part in it,
// of those said before a frame, or speech would be compared with itself.
func (c *Clusterer) like(e *Embedding, v, before int, part float64) float64 {
	x := e.Dot(&c.voices[v].centre)
	if near, ok := c.memory.near(e, v, before); ok {
		x += part * (near + c.p.NearMore - x)
	}
	return x
}

// Opinion appends to out who is thought to talk in each frame from first on,
// a bit for each voice, up to the newest frame of any window.
func (c *Clusterer) Opinion(first int, out []uint8) []uint8 {
	return c.belief.read(first, &c.p, out)
}

// Forget says that frames before first will not be asked for again.
func (c *Clusterer) Forget(first int) { c.belief.forget(first) }
