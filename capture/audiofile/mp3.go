package audiofile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"hubbub/protocol/hint"

	"github.com/hajimehoshi/go-mp3"
)

// decoderDelay is the delay of an MP3 decoder in samples, without the encoder's
// (LAME's technical FAQ).
const decoderDelay = 529

// defaultEncoderDelay is LAME's, in samples, for files that do not state it.
const defaultEncoderDelay = 576

// mp3Decoder reads an MP3 stream with go-mp3, which always returns 16-bit
// stereo, from mono with two equal channels. The padding that encoder and decoder
// add before and after the audio is removed, so that timestamps remain correct.
type mp3Decoder struct {
	frames   *mp3Frames
	dec      *mp3.Decoder
	f        Format
	notices  *Notices
	skip     int64 // samples of one channel still to remove
	position int64 // frames decoded, without padding
	longer   bool  // than the tag states, as of files that were joined
	silent   int   // bytes of silence to return, in the place of a damaged frame
	lost     int64 // samples of one channel in damaged frames
	buf      []byte
	have     int // bytes at the start of buf: an unfinished sample
}

func openMP3(r *bufio.Reader, n *Notices) (*mp3Decoder, error) {
	frames, err := newMP3Frames(r)
	if err != nil {
		return nil, err
	}
	d := &mp3Decoder{frames: frames, notices: n}
	if d.dec, err = mp3.NewDecoder(frames); err != nil {
		if ofInput(err) {
			return nil, err
		}
		if errors.Is(err, io.EOF) {
			return nil, hint.Errorf(incompleteHint, "this MP3 file %w", ErrCutOff)
		}
		return nil, hint.Errorf(damagedHint, "cannot decode this MP3 file: %w", err)
	}
	d.f = Format{Rate: frames.first.rate(), Channels: 2, Frames: -1}
	if frames.first.mono() {
		d.f.Channels = 1
	}
	d.skip = decoderDelay + defaultEncoderDelay
	if t := frames.tag; t.present {
		if t.delay+t.padding > 0 {
			d.skip = decoderDelay + int64(t.delay)
		}
		if t.frames > 0 {
			d.f.Frames = max(0, int64(t.frames)*int64(frames.first.samples())-int64(t.delay)-int64(t.padding))
		}
	}
	return d, nil
}

func (d *mp3Decoder) Format() Format { return d.f }

func (d *mp3Decoder) Read(dst []float32) (int, error) {
	want := len(dst) / d.f.Channels * 4
	if d.f.Frames >= 0 && !d.longer {
		stated := (d.f.Frames - d.position + d.skip) * 4
		if d.longer = stated <= 0 && d.frames.more(); !d.longer {
			want = int(min(int64(want), stated))
		}
	}
	if want <= 0 {
		return 0, d.end(io.EOF)
	}
	if len(d.buf) < want {
		d.buf = append(d.buf, make([]byte, want-len(d.buf))...)
	}
	for {
		n, err := d.read(d.buf[d.have:want])
		d.have += n
		pairs := d.have / 4
		from := int(min(int64(pairs), d.skip))
		d.skip -= int64(from)
		k := 0
		for i := from; i < pairs; i++ {
			left := float32(int16(binary.LittleEndian.Uint16(d.buf[4*i:]))) * fullScale(16)
			right := float32(int16(binary.LittleEndian.Uint16(d.buf[4*i+2:]))) * fullScale(16)
			if d.f.Channels == 1 {
				dst[k] = (left + right) / 2
			} else {
				dst[k], dst[k+1] = left, right
			}
			k += d.f.Channels
		}
		d.have = copy(d.buf, d.buf[4*pairs:d.have])
		d.position += int64(pairs - from)
		if k > 0 {
			return k, nil
		}
		if err != nil {
			return 0, d.end(err)
		}
	}
}

// read reads what go-mp3 decodes: bytes of samples, and of a frame that it cannot decode, silence.
func (d *mp3Decoder) read(b []byte) (n int, err error) {
	if d.silent == 0 {
		if n, err = d.decode(b); err == nil || d.frames.err != nil {
			return n, err
		}
		d.frames.drop()
		d.lost += int64(d.frames.first.samples())
		d.silent = 4 * d.frames.first.samples()
	}
	n = min(len(b), d.silent)
	clear(b[:n])
	d.silent -= n
	return n, nil
}

func (d *mp3Decoder) decode(b []byte) (n int, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a frame cannot be decoded: %v", r)
		}
	}()
	return d.dec.Read(b)
}

// end turns err into a notice and the end of the audio; before the first sample,
// into an error. An error of the input is returned as it is.
func (d *mp3Decoder) end(err error) error {
	if ofInput(err) {
		return err
	}
	position, margin := d.f.clock(d.position), int64(2*d.frames.first.samples())
	switch ended := isEnd(err); {
	case !ended && d.position == 0:
		return hint.Errorf(damagedHint, "cannot decode the audio of this MP3 file: %w", err)
	case !ended:
		d.notices.Add(d.f.damaged(d.position, err))
	case d.f.Frames > d.position+margin:
		d.notices.Add(d.f.truncated(d.f.Frames, d.position))
	case d.longer && d.position > d.f.Frames+margin:
		d.notices.Add(d.f.longer(d.f.Frames, d.position))
	case d.frames.truncated:
		d.notices.Add("truncated after " + position)
	}
	if d.lost > 0 {
		d.notices.Add(d.f.silenced(d.lost))
	}
	if d.frames.skipped > 0 {
		d.notices.Add(fmt.Sprintf("%d bytes between the frames of this MP3 file were damaged and are skipped", d.frames.skipped))
	}
	return io.EOF
}
