package audiofile

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"hubbub/protocol/hint"

	"github.com/mewkiz/flac"
	"github.com/mewkiz/flac/frame"
)

const (
	// maxTries bounds the places where a frame may begin that are tried after damage: where many begin
	// within others, the time would grow with the square of the length.
	maxTries = 1000
	// maxFrame is the longest frame in bytes: eight channels of 65,535 samples with 33 bits need less.
	maxFrame = 4 << 20
)

// flacDecoder reads a FLAC stream. One frame is in memory at a time.
type flacDecoder struct {
	input    *lookahead
	block    int64  // samples of one channel in a frame, if the frames are numbered
	number   uint64 // of the next FLAC frame, or of its first sample
	tries    int    // to find a frame after damage
	silent   int64  // samples of one channel that are damaged, to return before frame
	lost     int64  // all of these
	f        Format
	bits     int
	notices  *Notices
	position int64     // frames decoded
	frame    [][]int32 // by channel, the samples unread from at on
	at       int
	scale    float32
	ended    bool
}

func openFLAC(r io.Reader, n *Notices) (*flacDecoder, error) {
	in := bufio.NewReaderSize(r, maxFrame)
	s, err := flac.New(in) // reads the header, and nothing behind it
	if err != nil {
		if isEnd(err) {
			return nil, hint.Errorf(incompleteHint, "this FLAC file ends within its header")
		}
		return nil, hint.Errorf(damagedHint, "the header of this FLAC file is damaged: %w", err)
	}
	i := s.Info
	if i.SampleRate < MinRate || i.SampleRate > MaxRate || i.NChannels == 0 || i.BitsPerSample == 0 {
		return nil, hint.Errorf(ConvertHint, "the header of this FLAC file is invalid: %d Hz, %d channels, %d bits", i.SampleRate, i.NChannels, i.BitsPerSample)
	}
	if i.BitsPerSample == 32 {
		return nil, hint.Errorf(ConvertHint, "FLAC with samples of 32 bits is not supported")
	}
	d := &flacDecoder{input: &lookahead{Reader: in}, block: int64(i.BlockSizeMax), bits: int(i.BitsPerSample), notices: n}
	d.f = Format{Rate: int(i.SampleRate), Channels: int(i.NChannels), Frames: -1}
	if i.NSamples > 0 {
		d.f.Frames = int64(i.NSamples)
	}
	if err := d.next(); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, hint.Errorf(incompleteHint, "this FLAC file %w", ErrCutOff)
		}
		return nil, err
	}
	return d, nil
}

func (d *flacDecoder) Format() Format { return d.f }

// next decodes one frame: after damage the next intact one, whose number says how much is
// missing before it. Where there is none, the audio ends, with a notice.
func (d *flacDecoder) next() error {
	if d.ended || d.f.Frames >= 0 && d.position >= d.f.Frames { // a tag may follow
		if next, _ := d.input.Peek(min(d.input.Buffered(), 4)); string(next) == "fLaC" { // a pipe may stay open behind the audio
			d.notices.Add("another FLAC file follows, which is not read: give it as a file of its own")
		}
		return d.end(io.EOF)
	}
	f, err := d.parse()
	for damage := err; err != nil && err != io.EOF && !ofInput(err); d.tries++ {
		if err = d.input.seek(); err == nil && d.tries < maxTries {
			f, err = d.parse()
			if err == nil && !d.follows(f) {
				err = damage
			}
		} else if !ofInput(err) {
			return d.end(damage)
		}
	}
	if err != nil {
		return d.end(err)
	}
	d.input.accept()
	d.frame = d.frame[:0]
	for _, s := range f.Subframes {
		d.frame = append(d.frame, s.Samples)
	}
	d.number = f.Num + 1
	if !f.HasFixedBlockSize {
		d.number = f.Num + uint64(f.BlockSize)
	}
	d.scale = fullScale(int(f.BitsPerSample))
	d.at = 0
	return nil
}

// parse reads one frame.
func (d *flacDecoder) parse() (f *frame.Frame, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a frame cannot be decoded: %v", r)
		}
	}()
	if f, err = frame.New(d.input); err != nil {
		return nil, err
	}
	if f.BitsPerSample == 0 {
		f.BitsPerSample = uint8(d.bits)
	}
	if err := f.Parse(); err != nil {
		return nil, err
	}
	if len(f.Subframes) != d.f.Channels || f.SampleRate != 0 && int(f.SampleRate) != d.f.Rate {
		return nil, errors.New("its format changes within the file")
	}
	for _, s := range f.Subframes {
		if len(s.Samples) != len(f.Subframes[0].Samples) {
			return nil, errors.New("a frame is damaged")
		}
	}
	return f, nil
}

// follows reports whether a frame can be the next one after damage, and makes silence of what is missing before it.
func (d *flacDecoder) follows(f *frame.Frame) bool {
	missing := int64(f.Num - d.number)
	if f.HasFixedBlockSize {
		missing *= d.block
	}
	if f.Num < d.number || d.f.Frames >= 0 && missing > d.f.Frames-d.position {
		return false
	}
	d.silent = missing
	d.lost += missing
	return true
}

// end turns err into a notice and the end of the audio; before the first sample,
// into an error. An error of the input is returned as it is.
func (d *flacDecoder) end(err error) error {
	if d.ended {
		return io.EOF
	}
	if ofInput(err) {
		return err
	}
	d.ended = true
	eof, position := isEnd(err), d.f.clock(d.position)
	switch {
	case d.position == 0 && !eof:
		return hint.Errorf(damagedHint, "cannot decode the audio of this FLAC file: %w", err)
	case eof && d.f.Frames > d.position && d.position > 0:
		d.notices.Add(d.f.truncated(d.f.Frames, d.position))
	case eof && errors.Is(err, io.ErrUnexpectedEOF) && d.position > 0:
		d.notices.Add("truncated after " + position)
	case !eof:
		d.notices.Add(d.f.damaged(d.position, err))
	}
	if d.lost > 0 {
		d.notices.Add(d.f.silenced(d.lost))
	}
	return io.EOF
}

func (d *flacDecoder) Read(dst []float32) (int, error) {
	n := 0
	for n < len(dst) {
		space := (len(dst) - n) / d.f.Channels
		if d.silent > 0 {
			frames := min(d.silent, int64(space))
			clear(dst[n : n+int(frames)*d.f.Channels])
			n += int(frames) * d.f.Channels
			d.silent -= frames
			d.position += frames
			continue
		}
		if len(d.frame) == 0 || d.at == len(d.frame[0]) {
			if n > 0 {
				return n, nil
			}
			if err := d.next(); err != nil {
				return 0, err
			}
			continue
		}
		frames := min(len(d.frame[0])-d.at, space)
		for i := range frames {
			for c := range d.frame {
				dst[n] = float32(d.frame[c][d.at+i]) * d.scale
				n++
			}
		}
		d.at += frames
		d.position += int64(frames)
	}
	return n, nil
}

// lookahead reads ahead, so that a frame that turns out to be damaged can be read again from its second byte on.
type lookahead struct {
	*bufio.Reader
	at int // bytes that were read ahead
}

func (l *lookahead) Read(b []byte) (int, error) {
	ahead, err := l.Peek(l.at + len(b))
	n := copy(b, ahead[min(l.at, len(ahead)):])
	if l.at += n; n > 0 {
		err = nil
	}
	return n, err
}

// accept removes what was read.
func (l *lookahead) accept() {
	_, _ = l.Discard(l.at) // it is buffered
	l.at = 0
}

// seek goes to the next place where a frame may begin: 15 bits say that.
func (l *lookahead) seek() error {
	l.at = 0
	for {
		if _, err := l.Discard(1); err != nil {
			return err
		}
		if head, err := l.Peek(2); err != nil || head[0] == 0xFF && head[1]&^1 == 0xF8 {
			return err
		}
	}
}
