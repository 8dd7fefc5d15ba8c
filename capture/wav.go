package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// The chunks of a WAV file are walked here and not by a library: the ones at
// hand take the sizes in a header at their word (memory included), and know
// neither float samples nor the open sizes of programs that write to a pipe.
//
// Shapes: Microsoft, Multimedia Programming Interface and Data Specifications
// 1.0 (RIFF, WAVE); WAVEFORMATEXTENSIBLE; EBU Tech 3306 (RF64).

// Limits of what a header may claim.
const (
	maxRate     = 384000
	minRate     = 1000
	maxChannels = 256
)

// WAVE format tags.
const (
	tagPCM        = 1
	tagFloat      = 3
	tagExtensible = 0xFFFE
)

// wavDecoder reads the samples of a WAV file or stream.
type wavDecoder struct {
	r      io.Reader
	f      format
	float  bool
	width  int   // bytes of one sample
	left   int64 // bytes of audio still to come; -1 = until the end
	strict bool  // a missing byte is worth a notice
	notes  *notes
	heard  int64 // frames
	buf    []byte
	have   int // bytes at the start of buf: an unfinished frame
}

func (d *wavDecoder) format() format { return d.f }

// openWAV reads the header. size is the length of the whole input in bytes, -1
// = unknown; r stands at its start.
func openWAV(r *counter, size int64, n *notes) (*wavDecoder, error) {
	var head [12]byte
	if err := r.full(head[:]); err != nil {
		return nil, cutInHeader(err)
	}
	id := string(head[:4])
	if id == "RIFX" {
		return nil, fail(convertHint, "this is a big-endian WAV file, which is not supported")
	}
	d := &wavDecoder{r: r, notes: n}
	long := int64(-1) // size of the data according to ds64
	formatSeen := false
	for {
		var h [8]byte
		if err := r.full(h[:]); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, fail(wholeHint, "this WAV file ends before its audio begins")
			}
			return nil, err
		}
		name, length := string(h[:4]), int64(binary.LittleEndian.Uint32(h[4:]))
		switch {
		case name == "data":
			if !formatSeen {
				return nil, fail(convertHint, "this WAV file does not say which format its audio has")
			}
			if id != "RIFF" && long >= 0 {
				length = long
			}
			return d, d.begin(r, length, size)
		case name == "fmt ":
			if err := d.readFormat(r, length); err != nil {
				return nil, err
			}
			formatSeen = true
		case name == "ds64" && length >= 16 && length < 1<<16:
			b := make([]byte, length)
			if err := r.full(b); err != nil {
				return nil, cutInHeader(err)
			}
			long = int64(binary.LittleEndian.Uint64(b[8:]))
		default:
			if err := r.skip(length + length%2); err != nil {
				return nil, cutInHeader(err)
			}
			continue
		}
		if length%2 == 1 {
			if err := r.skip(1); err != nil {
				return nil, cutInHeader(err)
			}
		}
	}
}

func cutInHeader(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fail(wholeHint, "this WAV file ends within its header")
	}
	return err
}

// readFormat reads a fmt chunk and refuses what contradicts itself.
func (d *wavDecoder) readFormat(r *counter, length int64) error {
	if length < 16 || length > 1<<16 {
		return fail(convertHint, "the header of this WAV file is damaged: a format of %d bytes", length)
	}
	b := make([]byte, length)
	if err := r.full(b); err != nil {
		return cutInHeader(err)
	}
	le := binary.LittleEndian
	tag, channels, rate := int(le.Uint16(b)), int(le.Uint16(b[2:])), int64(le.Uint32(b[4:]))
	align, bits := int(le.Uint16(b[12:])), int(le.Uint16(b[14:]))
	if tag == tagExtensible {
		if len(b) < 40 || !bytes.Equal(b[26:40], mediaGUID) {
			return fail(convertHint, "the header of this WAV file names no known audio format")
		}
		tag = int(le.Uint16(b[24:]))
	}
	if tag != tagPCM && tag != tagFloat {
		return fail(convertHint, "the audio of this WAV file is %s, which is not supported", tagName(tag))
	}
	if channels == 0 || channels > maxChannels {
		return fail(convertHint, "the header of this WAV file cannot be right: %d channels", channels)
	}
	if rate < minRate || rate > maxRate {
		return fail(convertHint, "the header of this WAV file cannot be right: %d samples a second", rate)
	}
	// The frame's length is what counts: 20 or 24 bits may lie in 4 bytes, at
	// the upper end.
	if align == 0 || align%channels != 0 || bits == 0 || align/channels*8 < bits {
		return fail(convertHint, "the header of this WAV file contradicts itself: frames of %d bytes for %d channels of %d bits", align, channels, bits)
	}
	d.width = align / channels
	d.float = tag == tagFloat
	if d.float && (bits != d.width*8 || bits != 32 && bits != 64) || d.width > 8 || !d.float && d.width > 4 {
		return fail(convertHint, "WAV samples of %d bits in %d bytes are not supported", bits, d.width)
	}
	d.f = format{rate: int(rate), channels: channels, frames: -1}
	return nil
}

// mediaGUID is the end of every sub-format GUID that stands for a format tag.
var mediaGUID = []byte{0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71}

func tagName(tag int) string {
	switch tag {
	case 2, 0x11:
		return "ADPCM"
	case 6:
		return "A-law"
	case 7:
		return "mu-law"
	case 0x50, 0x55:
		return "MPEG"
	}
	return fmt.Sprintf("of format 0x%04x", tag)
}

// begin decides how much audio there is, whatever the header says: r stands at
// its first byte. A program that writes to a pipe, or that was killed, leaves a
// size of 0, of nearly 4 GiB, or one that was true some time ago.
func (d *wavDecoder) begin(r *counter, length, size int64) error {
	frame := int64(d.width * d.f.channels)
	d.left, d.strict = length, true
	open := length <= 0 || length >= 0x7FFFF000 && length <= 0xFFFFFFFF
	if open {
		d.left, d.strict = -1, false
	}
	if size < 0 {
		if !open {
			d.f.frames = length / frame
		}
		return nil
	}
	there := max(0, size-r.n)
	switch {
	case length == 0 && (there < frame || r.chunksFollow(0, there)):
		return fail("Choose a recording that holds sound.", "this WAV file holds no audio")
	case open:
		d.left = there
	case length > there:
		if there < frame {
			return fail(wholeHint, "this WAV file ends before its audio begins")
		}
		d.left, d.strict = there, false
		d.f.notice = fmt.Sprintf("cut short: the header promises %s, %s are there",
			clock(seconds(length/frame, d.f.rate)), clock(seconds(there/frame, d.f.rate)))
	case seconds((there-length)/frame, d.f.rate) > 50*time.Millisecond &&
		!r.chunksFollow(length, there) && !r.chunksFollow(length+length%2, there):
		d.left = there
		d.f.notice = fmt.Sprintf("the header promises %s, but %s are there; all of it is taken",
			clock(seconds(length/frame, d.f.rate)), clock(seconds(there/frame, d.f.rate)))
	}
	d.f.frames = d.left / frame
	return nil
}

func (d *wavDecoder) read(dst []float32) (int, error) {
	frame := d.width * d.f.channels
	want := len(dst) / d.f.channels * frame
	if cap(d.buf) < want {
		b := make([]byte, want)
		copy(b, d.buf[:d.have])
		d.buf = b
	}
	for {
		ask := want - d.have
		if d.left >= 0 {
			ask = int(min(int64(ask), d.left))
		}
		n, err := 0, io.EOF
		if ask > 0 {
			n, err = d.r.Read(d.buf[d.have : d.have+ask])
		}
		if d.left >= 0 {
			d.left -= int64(n)
		}
		d.have += n
		if whole := d.have / frame * frame; whole > 0 {
			k := d.convert(dst, d.buf[:whole])
			d.heard += int64(whole / frame)
			d.have = copy(d.buf, d.buf[whole:d.have])
			return k, nil
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		if errors.Is(err, io.EOF) && d.strict && d.left > 0 {
			d.notes.add(fmt.Sprintf("cut short: the header promises %s, %s are there",
				clock(d.f.duration()), clock(seconds(d.heard, d.f.rate))))
			d.strict = false
		}
		if err != nil {
			return 0, err
		}
	}
}

// convert turns whole frames into samples and says how many.
func (d *wavDecoder) convert(dst []float32, b []byte) int {
	le := binary.LittleEndian
	n := len(b) / d.width
	dst = dst[:n]
	switch {
	case d.float && d.width == 4:
		for i := range dst {
			dst[i] = math.Float32frombits(le.Uint32(b[4*i:]))
		}
	case d.float:
		for i := range dst {
			dst[i] = float32(math.Float64frombits(le.Uint64(b[8*i:])))
		}
	case d.width == 1: // the only unsigned one
		for i := range dst {
			dst[i] = float32(int(b[i])-128) * fullScale(8)
		}
	case d.width == 2:
		for i := range dst {
			dst[i] = float32(int16(le.Uint16(b[2*i:]))) * fullScale(16)
		}
	case d.width == 3:
		for i := range dst {
			dst[i] = float32(int32(uint32(b[3*i])<<8|uint32(b[3*i+1])<<16|uint32(b[3*i+2])<<24)>>8) * fullScale(24)
		}
	default:
		for i := range dst {
			dst[i] = float32(float64(int32(le.Uint32(b[4*i:]))) * math.Ldexp(1, -31))
		}
	}
	return n
}

// clock is a length for people.
func clock(d time.Duration) string {
	return fmt.Sprintf("%.1f s", d.Seconds())
}
