package audiofile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"hubbub/protocol/hint"
)

// The chunks of a WAV file are parsed here, not by a library: the available ones
// trust the sizes in a header, also when they allocate memory, and support neither
// float samples nor the unknown sizes of programs that write to a pipe.
//
// Formats: Microsoft, Multimedia Programming Interface and Data Specifications
// 1.0 (RIFF, WAVE); WAVEFORMATEXTENSIBLE; EBU Tech 3306 (RF64); ITU-T G.711 (A-law, mu-law).

// WAVE format tags.
const (
	tagPCM        = 1
	tagFloat      = 3
	tagALaw       = 6
	tagMuLaw      = 7
	tagExtensible = 0xFFFE
)

const (
	// MaxSample is the largest plausible float sample. A larger one is damaged; the resampler
	// would spread it over its neighbours.
	MaxSample = 1e6
	// loudest is the largest float sample that can be sound. The engine limits samples to it.
	loudest = 16
)

// wavDecoder reads the samples of a WAV file or stream, or raw ones.
type wavDecoder struct {
	in       io.LimitedReader // of the bytes of audio that the header states, or without a limit
	f        Format
	order    binary.ByteOrder // of the header and the samples
	float    bool
	width    int                  // bytes of one sample
	octets   func(b byte) float32 // the sample of a byte, where width is 1
	raw      bool                 // without a header; an incomplete frame is a notice
	sound    []byte               // the first raw samples from one on that is not silence
	loud     bool                 // a sample was beyond loudest
	notices  *Notices
	position int64 // frames decoded
	buf      []byte
	have     int // bytes at the start of buf: an incomplete frame
}

func (d *wavDecoder) Format() Format { return d.f }

// openWAV reads the header. size is the length of the input in bytes, -1
// = unknown; r is at its start.
func openWAV(r *counter, size int64, n *Notices) (*wavDecoder, error) {
	var head [12]byte
	if err := r.full(head[:]); err != nil {
		return nil, headerError(err)
	}
	id := string(head[:4])
	d := &wavDecoder{in: io.LimitedReader{R: r, N: math.MaxInt64}, notices: n, order: binary.LittleEndian}
	if id == "RIFX" {
		d.order = binary.BigEndian
	}
	long := int64(-1) // size of the data according to ds64
	formatSeen := false
	for {
		var h [8]byte
		if err := r.full(h[:]); err != nil {
			if isEnd(err) {
				return nil, hint.Errorf(incompleteHint, "this WAV file %w", ErrCutOff)
			}
			return nil, err
		}
		name, length := string(h[:4]), int64(d.order.Uint32(h[4:]))
		var err error
		switch {
		case name == "data":
			if !formatSeen {
				return nil, hint.Errorf(ConvertHint, "this WAV file does not state the format of its audio")
			}
			if id != "RIFF" && long >= 0 {
				length = long
			}
			return d, d.begin(r, length, size)
		case name == "fmt ":
			err = d.readFormat(r, length)
			formatSeen = true
		case name == "ds64" && length >= 16 && length < 1<<16:
			b := make([]byte, length)
			err = r.full(b)
			long = int64(binary.LittleEndian.Uint64(b[8:]))
		default:
			err = r.skip(length)
		}
		if err == nil {
			err = r.skip(length % 2)
		}
		if err != nil {
			return nil, headerError(err)
		}
	}
}

func headerError(err error) error {
	if isEnd(err) {
		return hint.Errorf(incompleteHint, "this WAV file ends within its header")
	}
	return err
}

// readFormat reads a fmt chunk and rejects inconsistent values.
func (d *wavDecoder) readFormat(r *counter, length int64) error {
	if length < 16 || length > 1<<16 {
		return hint.Errorf(ConvertHint, "the header of this WAV file is damaged: a format of %d bytes", length)
	}
	b := make([]byte, length)
	if err := r.full(b); err != nil {
		return err
	}
	tag, channels, rate := int(d.order.Uint16(b)), int(d.order.Uint16(b[2:])), int64(d.order.Uint32(b[4:]))
	align, bits := int(d.order.Uint16(b[12:])), int(d.order.Uint16(b[14:]))
	if tag == tagExtensible {
		if len(b) < 40 || !bytes.Equal(b[26:40], mediaGUID) {
			return hint.Errorf(ConvertHint, "the header of this WAV file states no known audio format")
		}
		tag = int(d.order.Uint16(b[24:]))
	}
	switch tag {
	case tagPCM, tagFloat:
		d.octets = func(b byte) float32 { return float32(int(b)-128) * fullScale(8) } // the only unsigned width
	case tagALaw:
		d.octets = fromALaw
	case tagMuLaw:
		d.octets = fromMuLaw
	default:
		return hint.Errorf(ConvertHint, "the audio of this WAV file is %s, which is not supported", tagName(tag))
	}
	if channels == 0 || channels > MaxChannels {
		return hint.Errorf(ConvertHint, "the header of this WAV file is invalid: %d channels", channels)
	}
	if rate < MinRate || rate > MaxRate {
		return hint.Errorf(ConvertHint, "the header of this WAV file is invalid: %d Hz", rate)
	}
	// The frame's length decides: 20 or 24 bits may be stored in the upper bits
	// of 4 bytes.
	if align == 0 || align%channels != 0 || bits == 0 || align/channels*8 < bits {
		return hint.Errorf(ConvertHint, "the header of this WAV file is inconsistent: frames of %d bytes for %d channels of %d bits", align, channels, bits)
	}
	d.width = align / channels
	d.float = tag == tagFloat
	companded := tag == tagALaw || tag == tagMuLaw
	if d.float && (bits != d.width*8 || bits != 32 && bits != 64) || companded && d.width != 1 || d.width > 8 || !d.float && d.width > 4 {
		return hint.Errorf(ConvertHint, "WAV samples of %d bits in %d bytes are not supported", bits, d.width)
	}
	d.f = Format{Rate: int(rate), Channels: channels, Frames: -1}
	return nil
}

// mediaGUID is the end of every sub-format GUID that encodes a format tag.
var mediaGUID = []byte{0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71}

func tagName(tag int) string {
	switch tag {
	case 2, 0x11:
		return "ADPCM"
	case 0x50, 0x55:
		return "MPEG"
	}
	return fmt.Sprintf("of format 0x%04x", tag)
}

// begin determines the length of the audio, also when the header is wrong; r is at
// the first byte of the audio. A program that writes to a pipe, or that was
// killed, leaves a size of 0, of nearly 4 GiB, or an outdated one. sox writes as many
// whole frames as fit into nearly 2 GiB.
func (d *wavDecoder) begin(r *counter, length, size int64) error {
	frame := int64(d.width * d.f.Channels)
	left := length
	open := length <= 0 || length > 0x7FFFF000-frame && length <= 0xFFFFFFFF
	available := max(0, size-r.n)
	ends := length <= available && (r.chunksFollow(d.order, length, available) || r.chunksFollow(d.order, length+length%2, available))
	switch {
	case size < 0 && open:
		return nil
	case size < 0: // what follows is not known
	case length == 0 && (available < frame || r.chunksFollow(d.order, 0, available)):
		return hint.Errorf("Choose a recording that contains audio.", "%w", ErrNoAudio)
	case open && !ends: // else the size of a large file
		left = available
	case length > available:
		if available < frame {
			return hint.Errorf(incompleteHint, "this WAV file %w", ErrCutOff)
		}
		left = available
		d.f.Notice = d.f.truncated(length/frame, available/frame)
	case seconds((available-length)/frame, d.f.Rate) > 50*time.Millisecond && !ends:
		left = available
		d.f.Notice = d.f.longer(length/frame, available/frame)
	}
	d.in.N, d.f.Frames = left, left/frame
	return nil
}

func (d *wavDecoder) Read(dst []float32) (int, error) {
	frame := d.width * d.f.Channels
	want := len(dst) / d.f.Channels * frame
	d.buf = slices.Grow(d.buf[:d.have], want)[:want]
	for {
		n, err := d.in.Read(d.buf[d.have:])
		d.have += n
		if complete := d.have / frame * frame; complete > 0 {
			if d.raw && len(d.sound) < sniffRaw && !d.canBeFloats(d.buf[:complete]) {
				return 0, hint.Errorf(rawHint, "neither WAV nor raw 32-bit float samples")
			}
			k := d.convert(dst, d.buf[:complete])
			if d.float && !d.loud && slices.ContainsFunc(dst[:k], func(v float32) bool { return max(v, -v) > loudest && max(v, -v) <= MaxSample }) {
				d.loud = true
				d.notices.Add(fmt.Sprintf("float samples are more than %d times full scale, which is 1, and are limited: divide samples of 16 bits by 32768", loudest))
			}
			d.position += int64(complete / frame)
			d.have = copy(d.buf, d.buf[complete:d.have])
			return k, nil
		}
		switch {
		case err == nil:
			continue
		case !isEnd(err):
			return 0, err
		case d.f.Frames >= 0 && d.in.N > 0:
			d.notices.Add(d.f.truncated(d.f.Frames, d.position))
		case d.raw && d.have > 0:
			d.notices.Add(fmt.Sprintf("the raw input ends within a sample: %d extra bytes", d.have))
			d.have = 0
		}
		return 0, io.EOF
	}
}

// canBeFloats judges raw samples. Silence is the same in all formats: what follows decides.
func (d *wavDecoder) canBeFloats(b []byte) bool {
	if len(d.sound) == 0 {
		silence := len(b) - len(bytes.TrimLeft(b, "\x00"))
		b = b[silence/d.width*d.width:]
	}
	d.sound = append(d.sound, b...)
	return len(d.sound) < sniffRaw || looksLikeFloats(d.sound)
}

// convert decodes complete frames and returns the number of samples.
func (d *wavDecoder) convert(dst []float32, b []byte) int {
	le := binary.LittleEndian
	n := len(b) / d.width
	dst = dst[:n]
	if d.order == binary.BigEndian {
		for sample := range slices.Chunk(b, d.width) {
			slices.Reverse(sample)
		}
	}
	switch {
	case d.float && d.width == 4:
		for i := range dst {
			dst[i] = math.Float32frombits(le.Uint32(b[4*i:]))
		}
	case d.float:
		for i := range dst {
			dst[i] = float32(math.Float64frombits(le.Uint64(b[8*i:])))
		}
	case d.width == 1:
		for i := range dst {
			dst[i] = d.octets(b[i])
		}
	default: // integers of two to four bytes
		scale := fullScale(32)
		for i := range dst {
			var v uint32 // in the upper bits
			for _, octet := range b[d.width*i:][:d.width] {
				v = v>>8 | uint32(octet)<<24
			}
			dst[i] = float32(int32(v)) * scale
		}
	}
	return n
}

// counter reads a file and counts the bytes.
type counter struct {
	r  *bufio.Reader
	n  int64       // bytes read
	at io.ReaderAt // nil: the input has no random access
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

func (c *counter) full(b []byte) error {
	_, err := io.ReadFull(c, b)
	return err
}

func (c *counter) skip(n int64) error {
	_, err := io.CopyN(io.Discard, c, n)
	return err
}

// chunksFollow reports whether a RIFF chunk begins, or the input ends, at off
// bytes from here; available bytes remain in all.
func (c *counter) chunksFollow(order binary.ByteOrder, off, available int64) bool {
	if available-off < 8 {
		return true
	}
	if c.at == nil {
		return false
	}
	var b [8]byte
	if _, err := c.at.ReadAt(b[:], c.n+off); err != nil {
		return false
	}
	for _, x := range b[:4] {
		if x < ' ' || x > '~' {
			return false
		}
	}
	return int64(order.Uint32(b[4:])) <= available-off-8
}

// fromALaw and fromMuLaw decode a sample of a telephone line: a sign, three bits of
// exponent and four of mantissa.
func fromALaw(b byte) float32 {
	b ^= 0x55
	v, exponent := int(b&0xF)<<4+8, b>>4&7
	if exponent > 0 {
		v = (v + 0x100) << (exponent - 1)
	}
	if b&0x80 == 0 {
		v = -v
	}
	return float32(v) * fullScale(16)
}

func fromMuLaw(b byte) float32 {
	b = ^b
	const bias = 0x84
	v := (int(b&0xF)<<3+bias)<<(b>>4&7) - bias
	if b&0x80 != 0 {
		v = -v
	}
	return float32(v) * fullScale(16)
}
