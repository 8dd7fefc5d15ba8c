package offline

import (
	"cmp"
	"math/bits"
	"slices"

	"hubbub/localserver/engine/decoder"
)

// scores are the probabilities of speech and of each speaker in every frame. Those of
// one page of the recording at a time are computed, when one of its frames is asked
// for: all of them would need more memory than the windows.
type scores struct {
	inputs
	decoder *decoder.Decoder
	count   int // frames of the windows

	page  int           // the computed page, pageFrames long; -1 at first
	first int           // frame of input
	input decoder.Input // decoded
}

const (
	// pageFrames is 20 s, so that what the decoder needs of 20 speakers stays small.
	pageFrames = 1000
	// secondProbability is the probability that the second speaker of an overlap needs.
	secondProbability = 0.1
)

// at is frame i, and the probability of each speaker to talk in it, valid until the
// next call. A frame after those of the windows continues the last one.
func (s *scores) at(i int) (decoder.Frame, []float32) {
	i = min(i, s.count-1)
	if page := i / pageFrames; page != s.page {
		s.page, s.first = page, max(0, page*pageFrames-decoder.Context)
		s.read(s.first, min(s.count, (page+1)*pageFrames+decoder.Context), &s.input)
		s.decoder.Decode(&s.input)
	}
	i -= s.first
	return s.input.Frames[i], s.input.Scores[i*s.input.Speakers:][:s.input.Speakers]
}

// active is the set of speakers of frame i, bit k for speaker k: as many as talk, the
// most likely ones. alone is the set of the most likely one.
func (s *scores) active(i int, p *Params) (set, alone uint32) {
	f, of := s.at(i)
	first, second := decoder.Likely(of)
	if first < 0 || float64(f.Speech) <= p.SpeechThreshold {
		return 0, 0
	}
	alone = 1 << first
	if second >= 0 && float64(f.SpeakerCount) > 1+p.OverlapThreshold && of[second] > secondProbability {
		return alone | 1<<second, alone
	}
	return alone, alone
}

// turns makes turns of the sets of speakers in all frames, in order of their
// start. Exclusive turns do not overlap: a pause in which another speaker talks is not
// closed.
func turns(frames int, exclusive bool, active func(i int) uint32) (list []Turn) {
	var start, end [MaxSpeakers]int
	close := func(k int) {
		if end[k]-start[k] >= decoder.MinTurnFrames {
			list = append(list, Turn{k, float64(start[k]) * frameSeconds, float64(end[k]) * frameSeconds})
		}
	}
	for i := range frames {
		set := active(i)
		for k := range end {
			if exclusive && set&^(1<<k) != 0 {
				close(k)
				start[k], end[k] = 0, 0
			}
		}
		for left := set; left != 0; left &= left - 1 {
			k := bits.TrailingZeros32(left)
			if i-end[k] > decoder.MaxPauseFrames || end[k] == 0 {
				close(k)
				start[k] = i
			}
			end[k] = i + 1
		}
	}
	for k := range end {
		close(k)
	}
	slices.SortFunc(list, func(a, b Turn) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Speaker, b.Speaker)) })
	return list
}
