package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"hubbub/localserver/engine/clustering"
)

const (
	// pieceLag is how far behind the newest frame, in frames of 20 ms, the end of a
	// piece lies when it is written: the networks have seen what came after it.
	pieceLag = 65
	// stepFrames is how many of these frames a step of the input has.
	stepFrames = 5
	frameTime  = 0.02 // seconds
)

// writePieces writes what the networks hear of single stretches of speech to the
// file of --pieces, for the training of the embedder's last layer: recording, start
// and end in seconds, and the embedding, one piece a line. Windows overlap and
// cut the same speech at other places: a piece is written when its end passes
// pieceLag, which about half of the speech does, none of it in many forms.
func (m *meter) writePieces(ctx context.Context, sets []set) error {
	all, err := m.listen(ctx, sets, m.hop*chunkSamples)
	if err != nil {
		return err
	}
	file, err := os.Create(m.pieces)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	for _, h := range all {
		for _, w := range h.windows {
			if w != nil {
				windowPieces(out, h.rec.name, w, m.hop*stepFrames)
			}
		}
	}
	err = out.Flush()
	if e := file.Close(); err == nil {
		err = e
	}
	return err
}

// windowPieces writes those pieces of one window whose time it is, when windows
// come every hop frames. Errors stay in the writer.
func windowPieces(out io.Writer, recording string, w *clustering.Window, hop int) {
	newest := w.First + len(w.Speech)
	for _, l := range w.Locals {
		for i := range l.Pieces {
			p := &l.Pieces[i]
			from, to := w.Span(p)
			if behind := newest - to; p.Lone <= 0 || behind < pieceLag || behind >= pieceLag+hop {
				continue
			}
			line := fmt.Appendf(nil, "%s %.2f %.2f", recording, float64(from)*frameTime, float64(to)*frameTime)
			for _, x := range p.Embedding {
				line = strconv.AppendFloat(append(line, ' '), float64(x), 'f', 5, 32)
			}
			_, _ = out.Write(append(line, '\n'))
		}
	}
}
