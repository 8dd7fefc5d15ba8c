package protocol

import "sort"

// maxGaps bounds what is remembered of dropped audio.
const maxGaps = 1 << 14

// gaps maps the clock of the service, which counts the chunks that were sent,
// to the clock of the capture, which counts those that were heard. Its methods
// are not safe for concurrent use.
type gaps struct {
	steps []gapStep // in order of sent
}

// gapStep says that from the sent-th chunk on, the capture is ahead by so many
// chunks.
type gapStep struct{ sent, ahead int64 }

// add notes that chunk seq goes out as the sent-th, both counted from 0. Drops
// without a sent chunk between them are one step.
func (g *gaps) add(sent, seq int64) {
	ahead := seq - sent
	if n := len(g.steps); n > 0 && g.steps[n-1].ahead == ahead || n == 0 && ahead == 0 {
		return
	}
	if len(g.steps) == maxGaps {
		g.thin()
	}
	g.steps = append(g.steps, gapStep{sent: sent, ahead: ahead})
}

// thin forgets every second step of the older half: an old moment is then
// placed less exactly, the present one as before.
func (g *gaps) thin() {
	half := len(g.steps) / 2
	kept := g.steps[:0]
	for i, s := range g.steps {
		if i >= half || i%2 == 1 {
			kept = append(kept, s)
		}
	}
	g.steps = kept
}

// capture is the capture clock, in seconds, of a position on the service's.
// Where audio was dropped exactly there, a start lies after the gap and an end
// before it.
func (g *gaps) capture(seconds float64, end bool) float64 {
	at := seconds * SampleRate / ChunkSamples // in chunks
	const hair = 1e-6                         // timestamps are decimals, chunks are tenths
	i := sort.Search(len(g.steps), func(i int) bool {
		if end {
			return float64(g.steps[i].sent) >= at-hair
		}
		return float64(g.steps[i].sent) > at+hair
	})
	if i == 0 {
		return seconds
	}
	return Round1ms(seconds + float64(g.steps[i-1].ahead*ChunkSamples)/SampleRate)
}
