// Package decoder decides which of the known speakers of a recording talk in each
// frame.
//
// It is a small convolutional network over time that runs once for each speaker.
// Its input is what the other stages say of a step of 40 ms: the aggregated scores
// of the speaker and of the segmentation, and the cosines of the speaker's centroid
// with the embeddings of speech at several scales around the step, each beside
// the largest value of any other speaker. Between its blocks the speakers see each
// other. The order of the speakers does not matter, and their number may be any.
//
// Comparing embeddings at several scales follows the multi-scale diarization
// decoder (Park et al., arXiv 2203.15974), one pass for each known speaker
// target-speaker voice activity detection (Medennikov et al., arXiv 2005.07272).
package decoder

import (
	"fmt"
	"math"
	"sync"

	"hubbub/localserver/engine/nn"
	"hubbub/localserver/engine/weights"
)

const (
	// Split is the number of frames of 20 ms in a step of 40 ms.
	Split = 2
	// Scales is the number of scales that are compared.
	Scales = 2
	// Context is how many frames on either side of a frame the network sees.
	Context = 31 * Split

	channels = 32
	// inputs of a speaker in a step: score, largest score of another, and their
	// difference in each frame; cosines, and the largest of another; speech and number
	// of simultaneous speakers in each frame.
	inputs = 3*Split + 2*Scales + 2*Split
	// pad is the largest dilation, the zeros before and after the steps.
	pad = 16
	// minSpeech bounds the probability of any speaker by which others are divided.
	minSpeech = 1e-3
	// minScore and maxScore bound the score of which the output is a correction.
	minScore, maxScore = 0.02, 0.98
)

// dilations of the residual blocks. Their sum is Context / Split.
var dilations = [5]int{1, 2, 4, 8, 16}

// exchanges are the blocks after which the speakers see each other.
var exchanges = [2]int{1, 3}

// Live and Recording are the embedded networks of the live engine and of the second
// pass, read once.
var (
	Live      = sync.OnceValue(func() *Model { return New(weights.LiveDecoder()) })
	Recording = sync.OnceValue(func() *Model { return New(weights.RecordingDecoder()) })
)

// Model is the network. It is immutable and may be shared.
type Model struct {
	in        *nn.Matrix
	dilated   [len(dilations)]*nn.Matrix
	pointwise [len(dilations)]*nn.Matrix
	exchange  [len(exchanges)]*nn.Matrix
	out       *nn.Matrix
	scale     float32 // of the speaker's score in the output
}

// New takes the tensors dec.* of a weights file.
func New(f *weights.File) *Model {
	dense := func(name string, in, out int) *nn.Matrix {
		return nn.Dense(in, out, f.Tensor(name+".w", out, in), f.Tensor(name+".b", out))
	}
	m := &Model{in: dense("dec.in", inputs, channels), out: dense("dec.out", channels, Split), scale: f.Tensor("dec.scale", 1)[0]}
	for i := range dilations {
		name := fmt.Sprintf("dec.blk%d", i)
		w := f.Tensor(name+".a.w", channels, channels, 3)
		m.dilated[i] = nn.NewMatrix(3, channels, channels, f.Tensor(name+".a.b", channels), func(tap, k, o int) float32 { return w[(o*channels+k)*3+tap] })
		m.pointwise[i] = dense(name+".b", channels, channels)
	}
	for i := range exchanges {
		m.exchange[i] = dense(fmt.Sprintf("dec.exchange%d", i), 2*channels, channels)
	}
	return m
}

// Frame is what the segmentation says of a frame of 20 ms.
type Frame struct {
	Speech       float32 // probability of speech
	SpeakerCount float32 // expected number of simultaneous speakers
}

// Input is what is known of a stretch of a recording with so many speakers.
type Input struct {
	Speakers int
	Frames   []Frame   // Split for each step
	Scores   []float32 // probability of frame i and speaker k: Scores[i*Speakers+k]
	Cosines  []float32 // of step t, speaker k and scale s: Cosines[(t*Speakers+k)*Scales+s]
}

// Reset makes room for so many speakers and steps, with zeros.
func (in *Input) Reset(speakers, steps int) {
	in.Speakers = speakers
	in.Frames = sized(in.Frames, steps*Split)
	in.Scores, in.Cosines = sized(in.Scores, steps*Split*speakers), sized(in.Cosines, steps*speakers*Scales)
	clear(in.Frames)
	clear(in.Scores)
	clear(in.Cosines)
}

// Turns are made of frames in the same way live and in the second pass: pauses up to
// MaxPauseFrames inside a turn are closed, then turns under MinTurnFrames dropped.
const MinTurnFrames, MaxPauseFrames = 10, 10 // 0.2 s

// Likely are the two most likely of the probabilities of one frame, -1 where there
// are not so many.
func Likely(p []float32) (first, second int) {
	first, second = -1, -1
	for k, x := range p {
		switch {
		case first < 0 || x > p[first]:
			first, second = k, first
		case second < 0 || x > p[second]:
			second = k
		}
	}
	return first, second
}

// Decoder runs the network. It keeps its working space. One goroutine may use it.
type Decoder struct {
	m        *Model
	speakers int
	steps    int
	in       []float32   // of one speaker
	x        [][]float32 // of each speaker: pad steps of zeros, the steps, pad steps of zeros
	mid      []float32   // of one speaker: inside a block, or what it sees of the others
	out      []float32

	sum, best, second []float32 // of each channel over the speakers
}

// New returns a decoder.
func (m *Model) New() *Decoder { return &Decoder{m: m} }

// Decode replaces the scores by the probability of each speaker to talk, and the number
// of simultaneous speakers where somebody talks by the mean of what the segmentation
// says and what follows from these probabilities. Whether somebody talks is left to the
// segmentation: who talks may be uncertain where speech is not. Of a part of a
// recording, the first and last Context frames lack their context.
func (d *Decoder) Decode(in *Input) {
	d.speakers, d.steps = in.Speakers, len(in.Frames)/Split
	d.run(in)
	for i := range in.Frames {
		silence, count := float32(1), float32(0)
		for _, x := range in.Scores[i*d.speakers:][:d.speakers] {
			silence *= 1 - x
			count += x
		}
		f := &in.Frames[i]
		f.SpeakerCount = (f.SpeakerCount + f.Speech*count/max(1-silence, minSpeech)) / 2
	}
}

func (d *Decoder) run(in *Input) {
	d.grow()
	for k := range d.x {
		d.read(k, in)
		d.m.in.Apply(nn.Rows{Groups: 1, N: d.steps, Src: d.in, SrcStride: inputs, Dst: d.x[k][pad*channels:], DstStride: channels, ReLU: true})
	}
	next := 0
	for i, dilation := range dilations {
		for _, x := range d.x {
			d.m.dilated[i].Apply(nn.Rows{Groups: 1, N: d.steps, Src: x[(pad-dilation)*channels:], SrcStride: channels, SegStride: dilation * channels,
				Dst: d.mid, DstStride: channels, ReLU: true})
			to := x[pad*channels:]
			d.m.pointwise[i].Apply(nn.Rows{Groups: 1, N: d.steps, Src: d.mid, SrcStride: channels, Dst: to, DstStride: channels, Add: to, AddStride: channels})
		}
		if next < len(exchanges) && exchanges[next] == i {
			d.exchange(d.m.exchange[next])
			next++
		}
	}
	width := d.m.out.Padded()
	for k, x := range d.x {
		d.m.out.Apply(nn.Rows{Groups: 1, N: d.steps, Src: x[pad*channels:], SrcStride: channels, Dst: d.out, DstStride: width})
		for i := range in.Frames {
			p := &in.Scores[i*d.speakers+k]
			c := float64(min(max(*p, minScore), maxScore))
			logit := float64(d.out[i/Split*width+i%Split]) + float64(d.m.scale)*math.Log(c/(1-c))
			*p = float32(1 / (1 + math.Exp(-logit)))
		}
	}
}

// grow makes room for the steps and speakers, with zeros around the steps.
func (d *Decoder) grow() {
	d.in, d.mid = sized(d.in, d.steps*inputs), sized(d.mid, d.steps*2*channels)
	d.out = sized(d.out, d.steps*d.m.out.Padded())
	d.sum, d.best, d.second = sized(d.sum, d.steps*channels), sized(d.best, d.steps*channels), sized(d.second, d.steps*channels)
	for len(d.x) < d.speakers {
		d.x = append(d.x, nil)
	}
	d.x = d.x[:d.speakers]
	for k := range d.x {
		d.x[k] = sized(d.x[k], (d.steps+2*pad)*channels)
		clear(d.x[k][:pad*channels])
		clear(d.x[k][(pad+d.steps)*channels:])
	}
}

func sized[T any](v []T, n int) []T {
	if cap(v) < n {
		return make([]T, n)
	}
	return v[:n]
}

// read fills the input of speaker k.
func (d *Decoder) read(k int, input *Input) {
	frames, scores := input.Frames, input.Scores
	for t := range d.steps {
		in := d.in[t*inputs:][:0]
		var other [Split]float32
		for i := range Split {
			in = append(in, scores[(t*Split+i)*d.speakers+k])
			other[i] = d.other(scores[(t*Split+i)*d.speakers:], 1, k)
		}
		in = append(in, other[:]...)
		for i := range Split {
			in = append(in, frames[t*Split+i].Speech, frames[t*Split+i].SpeakerCount)
		}
		for i := range Split {
			in = append(in, min(max(in[i]-other[i], -1), 1))
		}
		at := input.Cosines[t*d.speakers*Scales:]
		in = append(in, at[k*Scales:][:Scales]...)
		for s := range Scales {
			in = append(in, d.other(at[s:], Scales, k))
		}
	}
}

// other is the largest value of a speaker other than k, of values that are stride
// apart; 0 when there is no other.
func (d *Decoder) other(values []float32, stride, k int) float32 {
	best, found := float32(0), false
	for j := range d.speakers {
		if v := values[j*stride]; j != k && (!found || v > best) {
			best, found = v, true
		}
	}
	return best
}

// exchange adds to each speaker what it sees of the others: the mean and the
// largest value of each channel, zeros when there is no other.
func (d *Decoder) exchange(m *nn.Matrix) {
	clear(d.mid)
	if d.speakers > 1 {
		d.total()
	}
	for _, x := range d.x {
		x := x[pad*channels:]
		for t := range d.steps {
			if d.speakers == 1 {
				break
			}
			at := t * channels
			sum, best, second := d.sum[at:][:channels], d.best[at:][:channels], d.second[at:][:channels]
			mean, largest := d.mid[2*at:][:channels], d.mid[2*at+channels:][:channels]
			for c, v := range x[at:][:channels] {
				mean[c] = (sum[c] - v) / float32(d.speakers-1)
				if largest[c] = best[c]; v == best[c] {
					largest[c] = second[c]
				}
			}
		}
		m.Apply(nn.Rows{Groups: 1, N: d.steps, Src: d.mid, SrcStride: 2 * channels, Dst: x, DstStride: channels, Add: x, AddStride: channels})
	}
}

// total computes the sum and the two largest values of each channel over the speakers.
func (d *Decoder) total() {
	n := len(d.sum)
	first, next := d.x[0][pad*channels:][:n], d.x[1][pad*channels:][:n]
	for i, v := range next {
		d.sum[i], d.best[i], d.second[i] = first[i]+v, max(first[i], v), min(first[i], v)
	}
	for _, x := range d.x[2:] {
		for i, v := range x[pad*channels:][:n] {
			d.sum[i] += v
			d.second[i] = max(d.second[i], min(d.best[i], v))
			d.best[i] = max(d.best[i], v)
		}
	}
}
