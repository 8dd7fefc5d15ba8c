package audiofile

import (
	"errors"
	"io"

	"github.com/mewkiz/flac"
)

// flacDecoder reads a FLAC stream. One frame is in memory at a time.
type flacDecoder struct {
	stream   *flac.Stream
	f        Format
	bits     int
	notices  *Notices
	position int64     // frames decoded
	frame    [][]int32 // by channel, the samples unread from at on
	at       int
	scale    float32
	ended    bool
}

func openFLAC(r *counter, n *Notices) (*flacDecoder, error) {
	s, err := flac.New(r)
	if err != nil {
		if isEnd(err) {
			return nil, fail(incompleteHint, "this FLAC file ends within its header")
		}
		return nil, fail(damagedHint, "the header of this FLAC file is damaged: %w", err)
	}
	i := s.Info
	if i.SampleRate < MinRate || i.SampleRate > MaxRate || i.NChannels == 0 || i.BitsPerSample == 0 {
		return nil, fail(ConvertHint, "the header of this FLAC file is invalid: %d Hz, %d channels, %d bits", i.SampleRate, i.NChannels, i.BitsPerSample)
	}
	d := &flacDecoder{stream: s, bits: int(i.BitsPerSample), notices: n}
	d.f = Format{Rate: int(i.SampleRate), Channels: int(i.NChannels), Frames: -1}
	if i.NSamples > 0 {
		d.f.Frames = int64(i.NSamples)
	}
	if err := d.next(); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fail(incompleteHint, "this FLAC file %w", ErrCutOff)
		}
		return nil, err
	}
	return d, nil
}

func (d *flacDecoder) Format() Format { return d.f }

// next decodes one frame. Damage ends the audio, with a notice; the audio before
// it remains usable.
func (d *flacDecoder) next() error {
	if d.ended || d.f.Frames >= 0 && d.position >= d.f.Frames {
		return io.EOF // a tag may follow
	}
	f, err := d.stream.Next()
	if err == nil {
		if f.BitsPerSample == 0 {
			f.BitsPerSample = uint8(d.bits)
		}
		err = f.Parse()
	}
	if err == nil && (len(f.Subframes) != d.f.Channels || f.SampleRate != 0 && int(f.SampleRate) != d.f.Rate) {
		err = errors.New("its format changes within the file")
	}
	if err != nil {
		return d.end(err)
	}
	d.frame = d.frame[:0]
	for _, s := range f.Subframes {
		d.frame = append(d.frame, s.Samples)
	}
	for _, s := range d.frame {
		if len(s) != len(d.frame[0]) {
			return d.end(errors.New("a frame is damaged"))
		}
	}
	d.scale = fullScale(int(f.BitsPerSample))
	d.at = 0
	return nil
}

// end turns err into a notice and the end of the audio; before the first sample,
// into an error.
func (d *flacDecoder) end(err error) error {
	d.ended = true
	eof, position := isEnd(err), d.f.clock(d.position)
	switch {
	case d.position == 0 && !eof:
		return fail(damagedHint, "cannot decode the audio of this FLAC file: %w", err)
	case isContext(err):
		return err
	case eof && d.f.Frames > d.position && d.position > 0:
		d.notices.Add(d.f.truncated(d.f.Frames, d.position))
	case eof && errors.Is(err, io.ErrUnexpectedEOF) && d.position > 0:
		d.notices.Add("truncated after " + position)
	case !eof:
		d.notices.Add(d.f.damaged(d.position, err))
	}
	return io.EOF
}

func (d *flacDecoder) Read(dst []float32) (int, error) {
	n := 0
	for n < len(dst) {
		if len(d.frame) == 0 || d.at == len(d.frame[0]) {
			if n > 0 {
				return n, nil
			}
			if err := d.next(); err != nil {
				return 0, err
			}
			continue
		}
		frames := min(len(d.frame[0])-d.at, (len(dst)-n)/d.f.Channels)
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
