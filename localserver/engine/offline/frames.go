package offline

import (
	"cmp"
	"math/bits"
	"slices"
)

// scores sums the windows that cover each frame. The sums are those of one page of
// the recording at a time, and computed when one of its frames is asked for: sums of
// every frame and speaker would need more memory than the windows.
type scores struct {
	windows  []window // in order of time, with assigned groups
	speakers int

	page    int // the computed page, pageFrames long; -1 at first
	frames  []frame
	speaker []float32 // of frame i of the page: speaker[i*speakers:][:speakers]
}

// pageFrames is 60 s: a page is computed in less than a millisecond, and windows that
// reach into a second page are few.
const pageFrames = 3000

// frame is the sum over the windows that cover it.
type frame struct{ weight, speech, talkers float32 }

const (
	// rampFrames is the distance from both ends of a window from which its scores
	// have full weight: it is most reliable in its middle.
	rampFrames = 50
	// secondShare is the share of a frame's windows that the second speaker of an
	// overlap needs.
	secondShare = 0.1
	// minTurnFrames and maxPauseFrames: pauses up to 0.2 s inside a turn are
	// closed, then turns under 0.2 s are dropped.
	minTurnFrames, maxPauseFrames = 10, 10
)

func newScores(windows []window, speakers int) *scores {
	return &scores{windows: windows, speakers: speakers, page: -1, frames: make([]frame, pageFrames), speaker: make([]float32, pageFrames*speakers)}
}

// at is frame i, and the sums of the speakers in it. Both are valid until the next
// call.
func (s *scores) at(i int) (*frame, []float32) {
	if page := i / pageFrames; page != s.page {
		s.compute(page)
	}
	i %= pageFrames
	return &s.frames[i], s.speaker[i*s.speakers:][:s.speakers]
}

// compute sums the windows that cover a page.
func (s *scores) compute(page int) {
	clear(s.frames)
	clear(s.speaker)
	s.page = page
	first, _ := slices.BinarySearchFunc(s.windows, page*pageFrames, func(w window, start int) int { return cmp.Compare(w.first+len(w.speech), start) })
	for i := range s.windows[first:] {
		w := &s.windows[first+i]
		if w.first >= (page+1)*pageFrames {
			break
		}
		s.add(w)
	}
}

// add adds the part of a window that is in the page.
func (s *scores) add(w *window) {
	n, offset := len(w.speech), w.first-s.page*pageFrames
	begin, end := max(0, -offset), min(n, pageFrames-offset)
	for i := begin; i < end; i++ {
		weight := float32(min(i+1, n-i, rampFrames)) / (rampFrames * one)
		f := &s.frames[offset+i]
		f.weight += weight * one
		f.speech += weight * float32(w.speech[i])
		for k := range w.speakers {
			f.talkers += weight * float32(w.speakers[k].activity[i])
		}
	}
	for k := range w.speakers {
		l := &w.speakers[k]
		for _, g := range l.segments {
			who := w.groups[g.group].speaker
			if who == noSpeaker {
				continue
			}
			for i := max(begin, int(g.from)); i < min(end, int(g.to)); i++ {
				weight := float32(min(i+1, n-i, rampFrames)) / (rampFrames * one)
				s.speaker[(offset+i)*s.speakers+who] += weight * float32(l.activity[i])
			}
		}
	}
}

// active is the set of speakers of frame i, bit k for speaker k. The segmentation
// decides about speech and overlap; the speakers are the most likely ones.
func (s *scores) active(i int, p *Params) (set uint32) {
	f, of := s.at(i)
	if s.speakers == 0 || float64(f.speech) <= p.SpeechThreshold*float64(f.weight) {
		return 0
	}
	first := most(of, -1)
	if of[first] <= 0 {
		return 0
	}
	set = 1 << first
	if float64(f.talkers) > (1+p.OverlapThreshold)*float64(f.weight) {
		if second := most(of, first); second >= 0 && of[second] > secondShare*f.weight {
			set |= 1 << second
		}
	}
	return set
}

// most is the index of the largest value, except one; -1 when there is no other.
func most(values []float32, except int) int {
	best := -1
	for k, x := range values {
		if k != except && (best < 0 || x > values[best]) {
			best = k
		}
	}
	return best
}

// turns makes turns of the sets of speakers in all frames, in order of their
// start.
func turns(frames int, active func(i int) uint32) (list []Turn) {
	var start, end [MaxSpeakers]int
	close := func(k int) {
		if end[k]-start[k] >= minTurnFrames {
			list = append(list, Turn{k, float64(start[k]) * frameSeconds, float64(end[k]) * frameSeconds})
		}
	}
	for i := range frames {
		for left := active(i); left != 0; left &= left - 1 {
			k := bits.TrailingZeros32(left)
			if i-end[k] > maxPauseFrames || end[k] == 0 {
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
