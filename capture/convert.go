package capture

import (
	"errors"
	"fmt"
	"io"

	"hubbub/capture/audiofile"
)

// maxSample is the largest plausible float sample; the resampler would spread a
// larger, damaged one over its neighbours.
const maxSample = 1e6

// blockFrames is the number of frames that are decoded at a time.
const blockFrames = 4096

// converter selects a decoder's channels and changes their rate. Its memory does
// not depend on the length of the input.
type converter struct {
	dec     audiofile.Decoder
	mixer   *mixer
	in      []float32 // interleaved
	out     []float32 // converted, unread from next on
	next    int
	ended   error
	notices *audiofile.Notices
}

func newConverter(dec audiofile.Decoder, selected Channels, n *audiofile.Notices) (*converter, error) {
	f := dec.Format()
	if f.Mono && selected == Each {
		selected = 1 // both channels are the same
	}
	m, err := newMixer(f.Rate, f.Channels, selected)
	if err != nil {
		return nil, err
	}
	return &converter{dec: dec, mixer: m, notices: n, in: make([]float32, blockFrames*f.Channels)}, nil
}

// read is Source.Read without a context.
func (c *converter) read(dst []float32) (int, error) {
	for c.next == len(c.out) {
		if c.ended != nil {
			return 0, c.ended
		}
		c.out, c.next = c.out[:0], 0
		n, err := c.dec.Read(c.in)
		c.out = c.mixer.push(c.in[:n-n%c.mixer.channels], c.out)
		if err != nil {
			c.ended = err
			if errors.Is(err, io.EOF) {
				c.out = c.mixer.flush(c.out)
			}
			if c.mixer.invalid > 0 {
				c.notices.Add(fmt.Sprintf("%d samples were not numbers and are replaced by silence", c.mixer.invalid))
			}
		}
	}
	n := copy(dst, c.out[c.next:])
	c.next += n
	return n, nil
}
