package clustering

import "slices"

// Window is what the networks say of one stretch of audio, a few seconds long,
// that ends at the newest sample. Frames are 20 ms.
type Window struct {
	// First is the number of the window's first frame, counted from the start
	// of the stream; negative while the stream is shorter than the window.
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
	// Embedding is how the voice sounds where it talks alone.
	Embedding Embedding
	// Lone is for how long it talks alone, Total for how long at all, in
	// seconds.
	Lone, Total float64
	// Fresh is how much of Lone no earlier window has seen, in seconds.
	Fresh float64
	// Pieces are stretches of the voice with an embedding of their own: the
	// network sometimes takes two people who talk in turn for one.
	Pieces []Piece
}

// Piece is one stretch of a Local: frames From to To of the window, To
// excluded.
type Piece struct {
	From, To  int
	Embedding Embedding
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
