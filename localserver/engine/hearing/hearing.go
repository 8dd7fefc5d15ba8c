// Package hearing runs the networks over one stream and gives, a few times a
// second, a window: who talks when among its local voices, and how each sounds.
package hearing

import (
	"fmt"
	"math"
	"sync"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/embedding"
	"hubbub/localserver/engine/features"
	"hubbub/localserver/engine/segmentation"
	"hubbub/localserver/engine/weights"
)

const (
	// span is the length of a window in frames of 40 ms, the network's own.
	span = segmentation.Window
	// fine is the number of 20 ms frames to one of 40 ms.
	fine = segmentation.Split
	// fineSeconds is the length of a fine frame.
	fineSeconds = 0.02
	// certain is the posterior from which a frame counts as speech when masks
	// for embeddings are cut.
	certain = 0.5
	// leastVoice is how much of a voice, in seconds, a window must hold for it
	// to be one.
	leastVoice = 0.1
	// leastPiece and idealPiece bound, in fine frames, the lone speech of a
	// piece: less says too little of a voice, more may hold two.
	leastPiece, idealPiece = 20, 50 // 0.4 s, 1 s
)

// networks are the parts that all streams share.
type networks struct {
	file  *weights.File
	front *features.FrontEnd
	emb   *embedding.Model
	seg   *segmentation.Model
}

// load takes the embedded weights, once.
var load = sync.OnceValues(func() (*networks, error) {
	f, err := weights.Default()
	if err != nil {
		return nil, err
	}
	n := &networks{file: f}
	if n.front, err = features.New(f); err != nil {
		return nil, fmt.Errorf("front end: %w", err)
	}
	if n.emb, err = embedding.New(f); err != nil {
		return nil, err
	}
	n.seg, err = segmentation.New(f)
	return n, err
})

// Version is the version of the embedded weights.
func Version() (string, error) {
	n, err := load()
	if err != nil {
		return "", err
	}
	return n.file.Version(), nil
}

// Stream hears one stream. It allocates nothing after its first seconds.
type Stream struct {
	front  *features.Stream
	emb    *embedding.Stream
	seg    *segmentation.Stream
	hop    int // samples between windows
	since  int // samples since the last window
	frames []float32
	logp   []float32
	mask   [span]float32
	window clustering.Window
	locals [segmentation.Speakers]local
}

// local holds the space of one local voice.
type local struct {
	active []float32 // of each fine frame
	alone  []bool    // of each fine frame: talks, and nobody else does
	pieces []clustering.Piece
}

// New begins a stream that gives a window every hop samples.
func New(hop int) (*Stream, error) {
	n, err := load()
	if err != nil {
		return nil, err
	}
	return &Stream{front: n.front.NewStream(), emb: n.emb.NewStream(span), seg: n.seg.NewStream(span), hop: hop}, nil
}

// Bytes is the memory of the stream beyond the shared weights.
func (s *Stream) Bytes() int {
	n := s.front.Bytes() + s.emb.Bytes() + s.seg.Bytes() + 4*(cap(s.frames)+cap(s.logp)+cap(s.window.Speech))
	for i := range s.locals {
		n += 4*cap(s.locals[i].active) + cap(s.locals[i].alone) + cap(s.locals[i].pieces)*(16+4*clustering.Dim)
	}
	return n
}

// Channel is what the stream has learnt of the way that sound comes to it.
func (s *Stream) Channel() features.Channel { return s.front.Channel() }

// Resume makes a stream that has heard nothing yet go on with the channel of an
// earlier one.
func (s *Stream) Resume(c features.Channel) { s.front.Resume(c) }

// Push takes the next samples and returns the window that they complete, nil
// when none is due yet. More samples than one hop still make one window. last
// says that no samples follow, so that a window is due. The window is valid
// until the next call.
func (s *Stream) Push(samples []float32, last bool) *clustering.Window {
	s.frames = s.front.Push(samples, s.frames[:0])
	s.emb.Append(s.frames)
	s.seg.Append(s.frames)
	if s.since += len(samples); s.since < s.hop && !last {
		return nil
	}
	s.since = 0
	s.emb.Update()
	s.seg.Update(s.emb.Trunk())
	to := s.seg.Len()
	if to == 0 {
		return nil
	}
	from := max(0, to-span)
	s.logp = s.seg.Window(from, to, s.logp[:0])
	s.read(from, to-from)
	return &s.window
}

// read makes a window of n frames from the posteriors of its classes.
func (s *Stream) read(from, n int) {
	w := &s.window
	w.First = from * fine
	w.Speech = w.Speech[:0]
	for k := range s.locals {
		s.locals[k].active, s.locals[k].alone = s.locals[k].active[:0], s.locals[k].alone[:0]
	}
	for i := range n * fine {
		logp := s.logp[i*segmentation.Classes : (i+1)*segmentation.Classes]
		var active [segmentation.Speakers]float32
		best := 1
		for c := 1; c < segmentation.Classes; c++ {
			p := float32(math.Exp(float64(logp[c])))
			for _, k := range segmentation.Sets[c] {
				active[k] += p
			}
			if logp[c] > logp[best] {
				best = c
			}
		}
		speech := 1 - float32(math.Exp(float64(logp[0])))
		w.Speech = append(w.Speech, speech)
		set := segmentation.Sets[best]
		for k := range s.locals {
			l := &s.locals[k]
			l.active = append(l.active, active[k])
			l.alone = append(l.alone, speech > certain && len(set) == 1 && set[0] == k)
		}
	}
	w.Locals = w.Locals[:0]
	for k := range s.locals {
		if l, ok := s.describe(&s.locals[k], from, n); ok {
			w.Locals = append(w.Locals, l)
		}
	}
}

// describe makes a clustering.Local of what the network says of one voice; ok
// is false when the voice is not heard in the window.
func (s *Stream) describe(l *local, from, n int) (out clustering.Local, ok bool) {
	var total, lone float64
	for i, a := range l.active {
		if a > certain {
			total += fineSeconds
		}
		if l.alone[i] {
			lone += fineSeconds
		}
	}
	if total < leastVoice {
		return out, false
	}
	s.cut(l, from, n)
	if len(l.pieces) == 0 { // too little for a piece: all of it is one
		p := clustering.Piece{To: len(l.alone), Centre: len(l.alone) / 2, Lone: lone}
		if lone >= leastVoice {
			s.maskOf(l.alone, 0, len(l.alone))
		} else { // somebody who never talks alone is told by all that there is
			for j := range n {
				s.mask[j] = (l.active[fine*j] + l.active[fine*j+1]) / 2
			}
		}
		if !s.emb.EmbedMask(from, s.mask[:n], p.Embedding[:]) {
			return out, false
		}
		l.pieces = append(l.pieces, p)
	}
	return clustering.Local{Active: l.active, Pieces: l.pieces}, true
}

// cut makes pieces of a voice's stretches of lone speech: each of about a
// second, with an embedding of its own. Together they cover the window, so that
// each frame of the voice belongs to the piece that is nearest in time.
func (s *Stream) cut(l *local, from, n int) {
	l.pieces = l.pieces[:0]
	end := 0 // of the last piece's speech
	for i := 0; i < len(l.alone); {
		if !l.alone[i] {
			i++
			continue
		}
		j := i
		for j < len(l.alone) && l.alone[j] {
			j++
		}
		parts := max(1, (j-i+idealPiece/2)/idealPiece)
		if j-i < leastPiece {
			parts = 0
		}
		for k := range parts {
			a, b := i+(j-i)*k/parts, i+(j-i)*(k+1)/parts
			p := clustering.Piece{From: a, To: len(l.alone), Centre: (a + b) / 2, Lone: float64(b-a) * fineSeconds}
			s.maskOf(l.alone, a, b)
			if !s.emb.EmbedMask(from, s.mask[:n], p.Embedding[:]) {
				continue
			}
			if last := len(l.pieces) - 1; last < 0 {
				p.From = 0
			} else {
				p.From = (end + a) / 2
				l.pieces[last].To = p.From
			}
			end = b
			l.pieces = append(l.pieces, p)
		}
		i = j
	}
}

// maskOf sets s.mask to the part of each 40 ms frame where on holds, between
// the fine frames from and to.
func (s *Stream) maskOf(on []bool, from, to int) {
	for j := range len(on) / fine {
		s.mask[j] = 0
		for i := max(from, fine*j); i < min(to, fine*j+fine); i++ {
			if on[i] {
				s.mask[j] += 1.0 / fine
			}
		}
	}
}
