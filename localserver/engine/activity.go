package engine

import (
	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/decoder"
)

// contextFrames is how far around a frame the decoder sees.
const contextFrames = decoder.Context * decoder.Split

// activity decides which speakers talk in each frame that is not committed.
type activity struct {
	clusterer *clustering.Clusterer
	decoder   *decoder.Decoder
	params    clustering.Params
	scores    clustering.Scores // decoded
	stale     bool              // there was a window since the scores were decoded
	sets      []speakerSet
}

// from returns the active speakers of the frames from first to the newest one, valid
// until the next call.
func (a *activity) from(first int) []speakerSet {
	if a.stale {
		a.clusterer.Discard(first - contextFrames)
		a.clusterer.Scores(first-contextFrames, &a.scores)
		if a.clusterer.Speakers() > 0 {
			a.decoder.Decode(&a.scores.Input)
		}
		a.stale = false
	}
	a.sets = a.sets[:0]
	for i := max(0, first-a.scores.First); i < len(a.scores.Frames); i++ {
		a.sets = append(a.sets, a.scores.Active(i, &a.params))
	}
	return a.sets
}
