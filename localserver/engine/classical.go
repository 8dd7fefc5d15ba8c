package engine

import "math"

// What the first listener goes by. Frames are of 10 ms.
const (
	windowFrames = 150 // one voice print
	hopFrames    = 25  // from one to the next
	smoothing    = 5   // frames of level
	historyLimit = 1024

	enoughToMatch = 40  // frames of speech in the window
	enoughToLearn = 80  // for a label's own print to follow
	enoughToFound = 100 // for a new label
	foundingHops  = 2   // like windows in a row that nobody else explains
	newVoiceMost  = 2.2 // distance from every label that always makes a voice new
	newVoiceLeast = 1.0 // and the one that never does; between them,
	timesUsual    = 2.2 // how many times the usual distance of a matched window
	learnUsual    = 0.05
	sameCandidate = 1.5 // distance inside which a new voice is still the same
	slowest       = 60  // windows that a label's print remembers
)

const printSize = 2 * cepstralOrder

// voicePrint holds means and deviations of the cepstra over a window's speech.
type voicePrint [printSize]float64

// spread is how far the windows of one and the same voice typically lie apart,
// by dimension of the print (measured on single speakers, 1.5 s of speech).
var spread = voicePrint{
	2.56, 1.33, 1.31, 0.86, 0.73, 0.67, 0.55, 0.48, 0.44, 0.40, 0.38, 0.34, 0.32, 0.29, 0.27, 0.27, 0.25, 0.24, 0.22,
	1.45, 0.67, 0.69, 0.47, 0.35, 0.31, 0.26, 0.23, 0.21, 0.19, 0.18, 0.17, 0.16, 0.14, 0.14, 0.13, 0.13, 0.13, 0.11,
}

// distance is about 1 between a window and the average of its own voice;
// deviations say less than means and count half.
func (p *voicePrint) distance(q *voicePrint) float64 {
	sum := 0.0
	for i := range p {
		d := (p[i] - q[i]) / spread[i]
		if i >= cepstralOrder {
			d *= math.Sqrt2 / 2
		}
		sum += d * d
	}
	return sum / (cepstralOrder * 1.5)
}

// cluster is a label's average print.
type cluster struct {
	print  voicePrint
	weight float64
}

func (c *cluster) learn(p *voicePrint) {
	c.weight = min(c.weight+1, slowest)
	for i := range p {
		c.print[i] += (p[i] - c.print[i]) / c.weight
	}
}

// moment is one analysed frame of 10 ms.
type moment struct {
	level   float64
	cepstra [cepstralOrder]float64
	speech  bool
	votes   [MaxSpeakers]float32
}

// classical is the first listener: a speech detector that follows the noise
// floor, statistics of cepstra over windows of 1.5 s, and online clustering of
// them. One voice at a time; what overlaps is given to one of the two.
type classical struct {
	cepstra     *cepstra
	detector    detector
	maxSpeakers int

	samples []float32 // not analysed yet
	heard   int       // samples

	history []moment
	first   int // number of history[0]
	judged  int // the first frame whose speech is not known
	window  int // the end of the next window

	clusters  []cluster
	usual     float64 // distance of a window from its label
	last      int     // the label of the latest window
	candidate cluster
	hops      int // windows that the candidate explains
	since     int // the first frame of the first of them
	frames    []voices
}

func newClassical(maxSpeakers int) *classical {
	return &classical{
		cepstra:     newCepstra(),
		maxSpeakers: maxSpeakers,
		samples:     make([]float32, 0, stepSamples+analysisWindow),
		history:     make([]moment, 0, historyLimit),
		window:      hopFrames,
		usual:       1,
		clusters:    make([]cluster, 0, MaxSpeakers),
		frames:      make([]voices, 0, historyLimit/2),
	}
}

func (c *classical) hear(samples []float32) {
	c.heard += len(samples)
	c.samples = append(c.samples, samples...)
	for ; len(c.samples) >= analysisWindow; c.samples = c.samples[:copy(c.samples, c.samples[analysisHop:])] {
		if len(c.history) == cap(c.history) {
			half := historyLimit / 4
			c.first += half
			c.history = c.history[:copy(c.history, c.history[half:])]
		}
		c.history = append(c.history, moment{})
		m := &c.history[len(c.history)-1]
		m.level = c.cepstra.frame(c.samples, &m.cepstra)
	}
	end := c.first + len(c.history)
	for ; c.judged+smoothing/2 < end; c.judged++ {
		level, n := 0.0, 0
		for f := max(c.judged-smoothing/2, c.first); f <= c.judged+smoothing/2; f++ {
			level += c.at(f).level
			n++
		}
		c.at(c.judged).speech = c.detector.speech(level / float64(n))
	}
	for ; c.window <= c.judged; c.window += hopFrames {
		c.identify(max(0, c.window-windowFrames), c.window)
	}
}

func (c *classical) at(frame int) *moment { return &c.history[frame-c.first] }

// identify gives the speech of one window a label.
func (c *classical) identify(begin, end int) {
	p, speech := c.print(begin, end)
	if speech < enoughToMatch {
		return
	}
	best, distance := -1, math.Inf(1)
	for k := range c.clusters {
		if d := c.clusters[k].print.distance(&p); d < distance {
			best, distance = k, d
		}
	}
	switch {
	case best < 0:
		if speech >= enoughToLearn {
			c.found(&p, begin)
			best = 0
		}
	case distance < min(newVoiceMost, max(newVoiceLeast, timesUsual*c.usual)):
		c.hops = 0
		if speech >= enoughToLearn {
			c.clusters[best].learn(&p)
			c.usual += learnUsual * (distance - c.usual)
		}
	case speech >= enoughToFound && len(c.clusters) < c.maxSpeakers:
		if c.hops == 0 || c.candidate.print.distance(&p) > sameCandidate {
			c.candidate, c.hops, c.since = cluster{}, 0, begin+windowFrames/2
		}
		c.candidate.learn(&p)
		if c.hops++; c.hops == foundingHops {
			best = len(c.clusters)
			c.found(&c.candidate.print, c.since)
			c.vote(c.since, end, best, 4)
			c.hops = 0
		}
	}
	if best >= 0 {
		c.last = best
		c.vote(begin, end, best, 1)
	}
}

func (c *classical) found(p *voicePrint, since int) {
	c.clusters = append(c.clusters, cluster{*p, foundingHops})
}

// vote counts most in the middle of the window, where the print is surest to
// be of the one who talks.
func (c *classical) vote(begin, end, label int, weight float32) {
	for f := max(begin, c.first); f < end; f++ {
		c.at(f).votes[label] += weight * float32(min(f-begin, end-1-f)+5)
	}
}

// print is taken over the frames of a window that hold speech.
func (c *classical) print(begin, end int) (p voicePrint, speech int) {
	var square [cepstralOrder]float64
	for f := begin; f < end; f++ {
		m := c.at(f)
		if !m.speech {
			continue
		}
		speech++
		for i, x := range m.cepstra {
			p[i] += x
			square[i] += x * x
		}
	}
	if speech == 0 {
		return p, 0
	}
	n := float64(speech)
	for i := range square {
		p[i] /= n
		p[cepstralOrder+i] = math.Sqrt(max(0, square[i]/n-p[i]*p[i]))
	}
	return p, speech
}

// opinion joins two frames of 10 ms each. The newest, not analysed yet, are
// thought to go on as they are.
func (c *classical) opinion(frame int) []voices {
	c.frames = c.frames[:0]
	for f := frame; f < c.heard/frameSamples; f++ {
		var now voices
		if i := min(2*f, c.judged-1); i >= 0 && (c.at(i).speech || c.at(min(i+1, c.judged-1)).speech) {
			now = 1 << c.winner(c.at(i))
		}
		c.frames = append(c.frames, now)
	}
	return c.frames
}

func (c *classical) winner(m *moment) int {
	best := -1
	for k, votes := range m.votes {
		if votes > 0 && (best < 0 || votes > m.votes[best]) {
			best = k
		}
	}
	if best < 0 {
		return c.last
	}
	return best
}
