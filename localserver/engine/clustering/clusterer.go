// Package clustering decides who the voices of a window are. Windows overlap
// and come one after another; a session's voices are numbered from 0 in the
// order in which they were founded.
//
// The frame of thought is online clustering with cannot-link constraints inside
// a window (Coria, Bredin, Ghannay, Rosset, "Overlap-aware low-latency online
// speaker diarization based on end-to-end local segmentation", ASRU 2021): two
// locals of one window are two people. Unlike there, thresholds depend on how
// much speech an embedding saw, because the cosine of one speaker with itself
// falls as the speech gets shorter; a voice is founded by enough lone speech
// only; and what a frame is taken for is weighed over all windows that have
// seen it, later ones more, until it is committed.
package clustering

import "math"

// MaxVoices is how many voices a session has at most.
const MaxVoices = 8

// Params are the thresholds of a Clusterer. Cosines are those of Embeddings,
// times are in seconds.
type Params struct {
	// Match is the cosine from which a local with MatchSpeech seconds of lone
	// speech is taken for a known voice; it grows by MatchSlope for each
	// doubling of the speech, between half a second and MatchMost.
	Match, MatchSpeech, MatchSlope, MatchMost float64
	// Found is how much lone speech founds a voice, FoundFirst the same for
	// the first voice of a session.
	Found, FoundFirst float64
	// Slack is how far under Match a local that cannot found a voice is still
	// taken for the nearest one.
	Slack float64
	// Continuity is what it is worth, in cosine, to be who one was taken for
	// in the windows before.
	Continuity float64
	// Learn is how much lone speech a local needs for its voice to learn from
	// it, LearnMargin how far above Match it must lie.
	Learn, LearnMargin float64
	// Memory is how many seconds of speech a voice remembers.
	Memory float64
	// PieceMargin is by how much a piece must sound more like another voice
	// than like its local's to change hands; PieceSpeech scales it up for
	// pieces shorter than a second.
	PieceMargin, PieceSpeech float64
	// SpeechOn is the probability from which a frame is speech, SecondOn the
	// share of a second voice from which two talk at once.
	SpeechOn, SecondOn float64
	// Edge is how far from the newest sample, in seconds, a window's opinion
	// has full weight.
	Edge float64
}

// Clusterer follows the voices of one session. The zero value is not usable.
type Clusterer struct {
	p      Params
	max    int
	voices []voice
	belief belief

	cos    [][MaxVoices]float64 // of each local with each voice
	value  [][MaxVoices]float64 // of taking the local for the voice
	found  []bool               // whether the local may found a voice
	who    []int
	best   []int
	bestOf float64
}

// New returns a Clusterer that founds at most most voices, 1 to MaxVoices.
func New(p Params, most int) *Clusterer {
	return &Clusterer{p: p, max: min(max(most, 1), MaxVoices)}
}

// Voices is how many voices have been founded.
func (c *Clusterer) Voices() int { return len(c.voices) }

// nobody is the voice of a local that is too short to say.
const nobody = -1

// Hear takes the next window and returns the voice of each of its locals, -1
// for one that is nobody yet. The result is valid until the next call.
func (c *Clusterer) Hear(w *Window) []int {
	c.belief.extend(w.First + len(w.Speech))
	c.weigh(w)
	c.assign(w)
	for k, v := range c.who {
		l := &w.Locals[k]
		switch {
		case v == nobody && c.found[k] && len(c.voices) < c.max:
			c.voices = append(c.voices, voice{})
			c.who[k] = len(c.voices) - 1
			c.voices[c.who[k]].learn(&l.Embedding, l.Lone, c.p.Memory)
		case v != nobody && l.Lone >= c.p.Learn && c.cos[k][v] >= c.threshold(l.Lone)+c.p.LearnMargin:
			c.voices[v].learn(&l.Embedding, min(l.Fresh, l.Lone), c.p.Memory)
		}
	}
	c.belief.add(w, c.who, c.moves(w), &c.p)
	return c.who
}

// threshold is the cosine from which lone speech of so many seconds is taken
// for a known voice.
func (c *Clusterer) threshold(lone float64) float64 {
	return c.p.Match + c.p.MatchSlope*math.Log2(min(max(lone, 0.5), c.p.MatchMost)/c.p.MatchSpeech)
}

// weigh says for each local what it is worth to take it for each voice: how
// far its cosine lies above the threshold, and how much of it was that voice
// before; more speech counts more.
func (c *Clusterer) weigh(w *Window) {
	c.cos, c.value, c.found = c.cos[:0], c.value[:0], c.found[:0]
	for k := range w.Locals {
		l := &w.Locals[k]
		var cos, value [MaxVoices]float64
		threshold := c.threshold(l.Lone)
		weight := 0.2 + min(l.Lone, 3)
		for v := range c.voices {
			cos[v] = l.Embedding.Dot(&c.voices[v].centre)
			value[v] = weight * (cos[v] - threshold + c.p.Continuity*c.belief.share(w.First, l.Active, v))
		}
		need := c.p.Found
		if len(c.voices) == 0 {
			need = c.p.FoundFirst
		}
		c.cos = append(c.cos, cos)
		c.value = append(c.value, value)
		c.found = append(c.found, l.Lone >= need && len(c.voices) < c.max)
		if !c.found[k] { // it cannot be new: nobody is worth less than a near miss
			for v := range c.voices {
				c.value[k][v] += weight * c.p.Slack
			}
		}
		if len(c.voices) >= c.max && l.Lone >= need { // a voice too many gets the nearest label
			for v := range c.voices {
				c.value[k][v] += weight
			}
		}
	}
}

// assign finds the best one-to-one choice of voices. There are three locals
// and eight voices at most, so all choices are tried.
func (c *Clusterer) assign(w *Window) {
	c.who, c.best = c.who[:0], c.best[:0]
	for range w.Locals {
		c.who = append(c.who, nobody)
		c.best = append(c.best, nobody)
	}
	c.bestOf = 0 // everybody nobody, or new
	c.try(0, 0, 0)
	copy(c.who, c.best)
}

func (c *Clusterer) try(k int, taken uint, sum float64) {
	if k == len(c.who) {
		if sum > c.bestOf {
			c.bestOf = sum
			copy(c.best, c.who)
		}
		return
	}
	c.who[k] = nobody
	c.try(k+1, taken, sum)
	for v := range c.voices {
		if taken>>v&1 == 0 && c.value[k][v] > 0 {
			c.who[k] = v
			c.try(k+1, taken|1<<v, sum+c.value[k][v])
		}
	}
	c.who[k] = nobody
}

// move is a stretch of a local that sounds like another voice than the local.
type move struct {
	local, from, to, voice int
}

// moves lists the pieces that change hands.
func (c *Clusterer) moves(w *Window) []move {
	var out []move
	for k := range w.Locals {
		for i := range w.Locals[k].Pieces {
			p := &w.Locals[k].Pieces[i]
			own := c.who[k]
			if own == nobody || len(c.voices) < 2 {
				continue
			}
			home := p.Embedding.Dot(&c.voices[own].centre)
			to, most := own, home
			for v := range c.voices {
				if cos := p.Embedding.Dot(&c.voices[v].centre); cos > most {
					to, most = v, cos
				}
			}
			length := float64(p.To-p.From) * frameSeconds
			if to != own && most-home > c.p.PieceMargin+c.p.PieceSpeech*max(0, 1-length) && !c.talks(w, to, p) {
				out = append(out, move{k, p.From, p.To, to})
			}
		}
	}
	return out
}

// talks tells whether another local of the window that is this voice talks
// during the piece: one voice cannot be two people at once.
func (c *Clusterer) talks(w *Window, v int, p *Piece) bool {
	for k, who := range c.who {
		if who != v {
			continue
		}
		var sum float32
		for _, a := range w.Locals[k].Active[p.From:p.To] {
			sum += a
		}
		return float64(sum) > 0.3*float64(p.To-p.From)
	}
	return false
}

// Opinion appends to out who is thought to talk in each frame from first on,
// a bit for each voice, up to the newest frame of any window.
func (c *Clusterer) Opinion(first int, out []uint8) []uint8 {
	return c.belief.read(first, &c.p, out)
}

// Forget says that frames before first will not be asked for again.
func (c *Clusterer) Forget(first int) { c.belief.forget(first) }
