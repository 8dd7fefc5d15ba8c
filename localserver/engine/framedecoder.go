package engine

import (
	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/decoder"
)

// contextFrames is how far around a frame the decoder sees.
const contextFrames = decoder.Context * decoder.Split

// frameDecoder decides which speakers talk in each frame that is not committed.
type frameDecoder struct {
	clusterer *clustering.Clusterer
	decoder   *decoder.Decoder
	params    clustering.Params
	input     clustering.DecoderInput // decoded
	stale     bool                    // there was a window since the input was decoded
	sets      []speakerSet
}

// decide returns the active speakers of the frames from first to the newest one, valid
// until the next call.
func (d *frameDecoder) decide(first int) []speakerSet {
	if d.stale {
		d.clusterer.Discard(first - contextFrames)
		d.clusterer.DecoderInput(first-contextFrames, &d.input)
		if d.clusterer.Speakers() > 0 {
			d.decoder.Decode(&d.input.Input)
		}
		d.stale = false
	}
	d.sets = d.sets[:0]
	for i := max(0, first-d.input.First); i < len(d.input.Frames); i++ {
		d.sets = append(d.sets, d.input.Active(i, &d.params))
	}
	return d.sets
}
