package clustering

import "slices"

// Window is what the networks say of one stretch of audio, a few seconds long,
// that ends at the newest sample. Frames are 20 ms.
type Window struct {
	// First is the number of the window's first frame, counted from the start
	// of the stream.
	First int
	// Speech is, for each frame, the probability that anybody talks.
	Speech []float32
	// Locals are the voices that the window tells apart. Their order means
	// nothing and changes from window to window.
	Locals []Local
}

// Local is one voice inside one window.
type Local struct {
	// Active is, for each frame, the probability that this voice talks.
	Active []float32
	// Pieces are the voice's speech in stretches of about a second, each with
	// an embedding of its own, in order of time: the network sometimes takes
	// two people for one, or one for two. At least one.
	Pieces []Piece
}

// Piece is one stretch of a Local. The pieces of a local share the window
// between them: what the local says in the frames From to To, To excluded,
// belongs to the piece.
type Piece struct {
	From, To  int
	Centre    int     // the middle of the lone speech behind Embedding
	Lone      float64 // its length in seconds
	Embedding Embedding
}

// Span is where the lone speech of one of the window's pieces lies, in frames of
// the stream.
func (w *Window) Span(p *Piece) (from, to int) {
	half := int(p.Lone / frameSeconds / 2)
	return w.First + p.Centre - half, w.First + p.Centre + half
}

// Clone copies a window with everything in it.
func (w *Window) Clone() *Window {
	c := &Window{First: w.First, Speech: slices.Clone(w.Speech), Locals: slices.Clone(w.Locals)}
	for i := range c.Locals {
		c.Locals[i].Active = slices.Clone(c.Locals[i].Active)
		c.Locals[i].Pieces = slices.Clone(c.Locals[i].Pieces)
	}
	return c
}
