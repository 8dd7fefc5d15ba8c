package capture

import (
	"context"
	"errors"
	"fmt"
	"io"

	"hubbub/capture/audiofile"
)

// blockFrames is the number of frames that are decoded at a time.
const blockFrames = 4096

// decoded is a source with a decoder: a file, a stream of bytes, or the demo. Its
// memory does not depend on the length of the input.
type decoded struct {
	info       Info
	noticeList *audiofile.Notices
	dec        audiofile.Decoder
	converter  *converter
	in         []float32 // interleaved
	out        []float32 // converted, unread from next on
	next       int
	ended      error
	pump       *pump     // of a stream; nil = the input is read directly
	file       io.Closer // nil = there is none, or it is closed
}

// newDecoded adds the format of dec to info, and selects its channels.
func newDecoded(info Info, dec audiofile.Decoder, selected Channels, n *audiofile.Notices) (*decoded, error) {
	f := dec.Format()
	info.Rate, info.Channels, info.Duration, info.Notice = f.Rate, f.Channels, f.Duration(), f.Notice
	conv, err := newConverter(f.Rate, f.Channels, selected)
	if err != nil {
		return nil, audiofile.Named(info.Name, err)
	}
	info.Tracks = len(conv.tracks)
	return &decoded{info: info, noticeList: n, dec: dec, converter: conv, in: make([]float32, blockFrames*f.Channels)}, nil
}

func (d *decoded) Info() Info        { return d.info }
func (d *decoded) Notices() []string { return d.noticeList.All() }

func (d *decoded) Read(ctx context.Context, dst []float32) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if d.pump != nil {
		d.pump.ctx = ctx // ends also the wait for bytes
	}
	for d.next == len(d.out) {
		if d.ended != nil {
			return 0, d.ended
		}
		d.decode()
	}
	n := copy(dst, d.out[d.next:])
	d.next += n
	return n, nil
}

// decode converts the next block.
func (d *decoded) decode() {
	n, err := d.dec.Read(d.in)
	d.out, d.next = d.converter.push(d.in[:n-n%d.converter.channels], d.out[:0]), 0
	if err == nil {
		return
	}
	if d.ended = err; errors.Is(err, io.EOF) {
		d.out = d.converter.flush(d.out)
	} else {
		d.ended = audiofile.Named(d.info.Name, err)
	}
	if d.converter.cancelled() {
		d.noticeList.Add("its channels have opposite phase and cancel each other out in their mix: take one of them, in hubbub live and diarize with --channels 1")
	}
	if d.converter.invalid > 0 {
		d.noticeList.Add(fmt.Sprintf("%d samples were not numbers and are replaced by silence", d.converter.invalid))
	}
}

func (d *decoded) Close() error {
	if d.file == nil {
		return nil
	}
	f := d.file
	d.file = nil
	return f.Close()
}
