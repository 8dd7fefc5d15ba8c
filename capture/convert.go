package capture

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"
)

// decoder returns the samples of an input at its own rate and channels, nominally
// in -1..1. read fills dst, whose length is a multiple of the channels, with
// interleaved samples of complete frames; io.EOF comes with n = 0.
type decoder interface {
	format() format
	read(dst []float32) (n int, err error)
}

// format is the content of a header.
type format struct {
	rate, channels int
	frames         int64  // samples of one channel; -1 = unknown
	notice         string // known from the start
}

func (f format) duration() time.Duration {
	if f.frames < 0 || f.rate <= 0 {
		return 0
	}
	return seconds(f.frames, f.rate)
}

func seconds(frames int64, rate int) time.Duration {
	return time.Duration(float64(frames) / float64(rate) * float64(time.Second))
}

// maxSample is the largest plausible float sample; the resampler would spread a
// larger, damaged one over its neighbours.
const maxSample = 1e6

// blockFrames is the number of frames that are decoded at a time.
const blockFrames = 4096

// converter selects a decoder's channels and changes their rate. Its memory does
// not depend on the length of the input.
type converter struct {
	dec   decoder
	mixer *mixer
	in    []float32 // interleaved
	out   []float32 // converted, unread from next on
	next  int
	ended error
	notes *notes
}

func newConverter(dec decoder, selected Channels, n *notes) (*converter, error) {
	f := dec.format()
	if d, ok := dec.(*mp3Decoder); ok && selected == Each && d.channels() == 1 {
		selected = 1 // the decoder gives mono as two equal channels
	}
	m, err := newMixer(f.rate, f.channels, selected)
	if err != nil {
		return nil, err
	}
	return &converter{dec: dec, mixer: m, notes: n, in: make([]float32, blockFrames*f.channels)}, nil
}

// read is Source.Read without a context.
func (c *converter) read(dst []float32) (int, error) {
	if len(dst) == 0 {
		return 0, nil
	}
	for c.next == len(c.out) {
		if c.ended != nil {
			return 0, c.ended
		}
		c.out, c.next = c.out[:0], 0
		n, err := safeRead(c.dec, c.in)
		c.out = c.mixer.push(c.in[:n-n%c.mixer.channels], c.out)
		if err != nil {
			c.ended = err
			if errors.Is(err, io.EOF) {
				c.out = c.mixer.flush(c.out)
			}
			if c.mixer.invalid > 0 {
				c.notes.add(fmt.Sprintf("%d samples were not numbers and are replaced by silence", c.mixer.invalid))
			}
		}
	}
	n := copy(dst, c.out[c.next:])
	c.next += n
	return n, nil
}

// safeRead turns a decoder's panic into an error: its input is not trusted.
func safeRead(d decoder, dst []float32) (n int, err error) {
	defer func() {
		if r := recover(); r != nil {
			n, err = 0, fail("The file may be damaged. Convert it with another program, then try again.", "cannot decode the audio: %v", r)
		}
	}()
	return d.read(dst)
}

// notes is a list of notices, safe for concurrent use.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, text)
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.list...)
}

// fullScale is the factor that maps a signed integer of the given bits to -1..1.
func fullScale(bits int) float32 { return float32(math.Ldexp(1, 1-bits)) }
