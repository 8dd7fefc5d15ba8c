package offline

import (
	"cmp"
	"slices"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/decoder"
)

// inputs is what the decoder needs of a recording.
type inputs struct {
	windows    []window // in order of time, with assigned clusters
	multiscale []quantisedMultiscale
	centroids  []clustering.Embedding // of the speakers
}

// quantisedMultiscale is a clustering.MultiscaleEmbedding in less memory.
type quantisedMultiscale [decoder.Scales]quantisedEmbedding

// rampFrames is the distance from both ends of a window from which its scores have
// full weight: it is most reliable in its middle.
const rampFrames = 50

// read computes the decoder's input for the frames start to end: the aggregated
// scores of the windows that cover each frame, and the cosines of the multiscale
// embeddings and the speakers. start is the first frame of a step.
func (in *inputs) read(start, end int, out *decoder.Input) {
	speakers := len(in.centroids)
	out.Reset(speakers, (end-start+decoder.Split-1)/decoder.Split)
	weights := make([]float32, len(out.Frames))
	first, _ := slices.BinarySearchFunc(in.windows, start, func(w window, start int) int { return cmp.Compare(w.first+len(w.speech), start) })
	for i := range in.windows[first:] {
		w := &in.windows[first+i]
		if w.first >= start+len(weights) {
			break
		}
		w.add(w.first-start, weights, out)
	}
	for i, weight := range weights {
		if weight > 0 {
			out.Frames[i].Speech /= weight
			out.Frames[i].SpeakerCount /= weight
			for k := range speakers {
				out.Scores[i*speakers+k] /= weight
			}
		}
	}
	size := speakers * decoder.Scales // cosines of a step
	for t := range len(out.Frames) / decoder.Split {
		step := start/decoder.Split + t
		switch s := step / clustering.MultiscaleHop; {
		case t > 0 && step%clustering.MultiscaleHop != 0:
			copy(out.Cosines[t*size:][:size], out.Cosines[(t-1)*size:])
		case s < len(in.multiscale):
			in.compare(&in.multiscale[s], out.Cosines[t*size:][:size])
		}
	}
}

// compare computes the cosines of a multiscale embedding and each speaker.
func (in *inputs) compare(s *quantisedMultiscale, cosines []float32) {
	for k := range in.centroids {
		for i := range s {
			cosines[k*decoder.Scales+i] = float32(s[i].dot(&in.centroids[k]))
		}
	}
}

// add adds the part of a window that is in out, the first frame of which is offset
// frames before the window.
func (w *window) add(offset int, weights []float32, out *decoder.Input) {
	n := len(w.speech)
	begin, end := max(0, -offset), min(n, len(weights)-offset)
	weight := func(i int) float32 { return float32(min(i+1, n-i, rampFrames)) / rampFrames }
	for i := begin; i < end; i++ {
		x, f := weight(i), &out.Frames[offset+i]
		weights[offset+i] += x
		f.Speech += x * float32(w.speech[i]) / activityScale
		for k := range w.speakers {
			f.SpeakerCount += x * float32(w.speakers[k].activity[i]) / activityScale
		}
	}
	for k := range w.speakers {
		l := &w.speakers[k]
		for _, g := range l.segments {
			who := w.clusters[g.cluster].speaker
			if who == noSpeaker {
				continue
			}
			for i := max(begin, int(g.from)); i < min(end, int(g.to)); i++ {
				out.Scores[(offset+i)*out.Speakers+who] += weight(i) * float32(l.activity[i]) / activityScale
			}
		}
	}
}
