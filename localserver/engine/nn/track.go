package nn

import "fmt"

// Track is the output of one layer over time: a sliding window of the frames of a
// stream.
//
// Frames below Final never change. Frames from there up to Len are computed as if
// the stream ended at Len (zeros behind it, as a convolution pads the end of a
// signal), and again when more is known. Before frame 0 and behind frame Len there
// are frames of zeros, so that the layers are plain strided products.
type Track struct {
	buf    []float32
	size   int // floats of a frame
	edge   int // frames of zeros before frame 0, and behind the newest
	keep   int // final frames that stay readable
	first  int // frame at buf[0]
	final  int
	length int
	unread int // first frame that no layer has read, where frames come by Push; else -1
}

// NewTrack makes an empty track of frames of size floats, with edge frames of zeros
// on either side. The newest keep final frames stay readable.
func NewTrack(size, edge, keep int) *Track {
	return &Track{size: size, edge: edge, keep: max(keep, edge), first: -edge, unread: -1}
}

// Len is the number of frames since the stream began.
func (t *Track) Len() int { return t.length }

// Final is the number of frames that never change.
func (t *Track) Final() int { return t.final }

// First is the oldest frame that can still be read.
func (t *Track) First() int { return max(t.first, 0) }

// Frame is frame i, First() <= i < Len(), valid until the next step of the stream.
func (t *Track) Frame(i int) []float32 { return t.From(i)[:t.size:t.size] }

// From is all frames from frame i on; i may be in the zeros around.
func (t *Track) From(i int) []float32 {
	if i < t.first || i > t.length+t.edge {
		panic(fmt.Sprintf("nn: frame %d of a track that holds %d to %d", i, t.first, t.length))
	}
	return t.buf[(i-t.first)*t.size:]
}

// Extend makes the track length frames long, with zeros behind. Called again in
// the same step it changes nothing.
func (t *Track) Extend(length int) {
	need := (length + t.edge - t.first) * t.size
	if need > len(t.buf) {
		first := t.final - t.keep
		if t.unread >= 0 {
			first = min(first, t.unread-t.keep)
		}
		if first > t.first {
			used := (t.length - first) * t.size // the zeros behind are written again
			copy(t.buf, t.buf[(first-t.first)*t.size:][:max(used, 0)])
			t.first = first
			need = (length + t.edge - t.first) * t.size
		}
		if need > len(t.buf) { // only in the first seconds of a stream
			buf := make([]float32, need+need/8/t.size*t.size)
			copy(buf, t.buf)
			t.buf = buf
		}
	}
	t.length = length
	clear(t.buf[(length-t.first)*t.size:][:t.edge*t.size])
}

// SetFinal declares the frames below n final.
func (t *Track) SetFinal(n int) { t.final = max(t.final, min(n, t.length)) }

// Push appends final frames of width values to an input track. Each is copied to
// offset at of a track frame, whose other values are zero. They are all held until
// Read.
func (t *Track) Push(frames []float32, width, at int) {
	t.unread = max(t.unread, 0)
	n, old := len(frames)/width, t.length
	t.Extend(old + n)
	for i := range n {
		copy(t.Frame(old + i)[at:], frames[i*width:][:width])
	}
	t.SetFinal(t.length)
}

// Read declares that the layers behind an input track are up to date with it, and
// reports whether there were new frames.
func (t *Track) Read() bool {
	unread := t.unread < t.length
	t.unread = t.length
	return unread
}

// taps is the time axis of a convolution.
type taps struct{ kernel, stride, pad, dilation int }

// outputs is the number of output frames for n input frames, as in PyTorch.
func (c taps) outputs(n int) int {
	if n += 2*c.pad - c.dilation*(c.kernel-1) - 1; n < 0 {
		return 0
	}
	return n/c.stride + 1
}

// final is the number of outputs that depend on the first n inputs only.
func (c taps) final(n int) int {
	if n += c.pad - c.dilation*(c.kernel-1) - 1; n < 0 {
		return 0
	}
	return n/c.stride + 1
}
