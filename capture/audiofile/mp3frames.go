package audiofile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"hubbub/protocol/hint"
)

// mp3Header is the 32-bit header of an MPEG audio frame (ISO 11172-3, 2.4.1.3).
type mp3Header uint32

// mp3ConstantBits are equal in all frames of a file: sync, version, layer,
// sampling frequency.
const mp3ConstantBits = 0xFFFE0C00

var mp3Bitrates = [2][15]int{ // kbit/s; layer III of MPEG-1, and of MPEG-2
	{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
	{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
}

// mp3HeaderAt is the header at the start of b.
func mp3HeaderAt(b []byte) mp3Header { return mp3Header(binary.BigEndian.Uint32(b)) }

// like reports whether a frame of the same file as first may begin with h.
func (h mp3Header) like(first mp3Header) bool {
	return h.valid() && (h^first)&mp3ConstantBits == 0
}

// valid: layer III, a known rate, a stated bit rate. MPEG-2.5 at 8 kHz is valid
// here and rejected later, with an error that names it.
func (h mp3Header) valid() bool {
	return h>>21 == 0x7FF && h>>19&3 != 1 && h>>17&3 == 1 && h>>12&15 != 15 && h>>12&15 != 0 && h>>10&3 != 3 && h&3 != 2
}

func (h mp3Header) mpeg1() bool  { return h>>19&3 == 3 }
func (h mp3Header) mpeg25() bool { return h>>19&3 == 0 }
func (h mp3Header) mono() bool   { return h>>6&3 == 3 }

func (h mp3Header) rate() int {
	r := [3]int{44100, 48000, 32000}[h>>10&3]
	switch {
	case h.mpeg1():
		return r
	case h.mpeg25():
		return r / 4
	}
	return r / 2
}

// samples of one channel in a frame.
func (h mp3Header) samples() int {
	if h.mpeg1() {
		return 1152
	}
	return 576
}

// size of the whole frame in bytes.
func (h mp3Header) size() int {
	version := 1
	if h.mpeg1() {
		version = 0
	}
	return h.samples()/8*mp3Bitrates[version][h>>12&15]*1000/h.rate() + int(h>>9&1)
}

// sideInfo is the length of the side information in bytes.
func (h mp3Header) sideInfo() int {
	switch {
	case h.mpeg1() && h.mono():
		return 17
	case h.mpeg1():
		return 32
	case h.mono():
		return 9
	}
	return 17
}

// findMP3 returns the offset of the first of three consecutive frames, or of two
// if b has no space for three; -1 = none.
func findMP3(b []byte) int {
	for i := 0; i+4 <= len(b); i++ {
		h := mp3HeaderAt(b[i:])
		if !h.valid() {
			continue
		}
		found, at := 1, i+h.size()
		for found < 3 && at+4 <= len(b) {
			next := mp3HeaderAt(b[at:])
			if !next.like(h) {
				found = -1
				break
			}
			found, at = found+1, at+next.size()
		}
		if found >= 2 {
			return i
		}
	}
	return -1
}

// mp3Tag is the metadata that the first frame may contain instead of audio (Xing,
// Info, and LAME's extension of them; VBRI of Fraunhofer's encoders).
type mp3Tag struct {
	present        bool
	frames         int
	delay, padding int
}

// mp3Frames passes only complete frames of one format to the decoder. It skips
// tags, damaged bytes between frames and an incomplete last frame. The decoder
// would report an incomplete frame as a damaged file, and its tag scan would
// allocate as much as a tag states.
type mp3Frames struct {
	r         *bufio.Reader
	first     mp3Header
	tag       mp3Tag
	frame     []byte // unread rest
	buf       []byte
	skipped   int64 // bytes skipped between frames
	truncated bool  // the last frame was incomplete
	err       error // of the last read; nil = a frame was read
	reservoir mp3Reservoir
}

// sniffLen is how many bytes are read to detect the format of an input.
const sniffLen = 16 << 10

func newMP3Frames(r *bufio.Reader) (*mp3Frames, error) {
	head, err := r.Peek(sniffLen)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	at := findMP3(head)
	if at < 0 {
		return nil, hint.Errorf(ConvertHint, "no MP3 audio was found in this file")
	}
	m := &mp3Frames{r: r, first: mp3HeaderAt(head[at:])}
	if m.first.mpeg25() && m.first.rate() < 11025 {
		return nil, hint.Errorf(ConvertHint, "%w", ErrMP3Rate)
	}
	size := m.first.size()
	if m.tag = readMP3Tag(m.first, head[at:][:size]); m.tag.present {
		at += size // not audio
	}
	_, err = r.Discard(at)
	return m, err
}

func (m *mp3Frames) Read(b []byte) (int, error) {
	if len(m.frame) == 0 {
		if m.err = m.next(); m.err != nil {
			return 0, m.err
		}
	}
	n := copy(b, m.frame)
	m.frame = m.frame[n:]
	return n, nil
}

// drop goes on with the next frame after one that cannot be decoded: the decoder has forgotten what it read.
func (m *mp3Frames) drop() { m.frame, m.reservoir = nil, mp3Reservoir{} }

// more reports whether audio follows. A single frame may be padding alone.
func (m *mp3Frames) more() bool {
	skipped, frames := m.skipped, slices.Clone(m.frame)
	for range 2 {
		if m.next() != nil {
			m.skipped, m.truncated = skipped, false // what follows is a tag, not damage
			return false
		}
		frames = append(frames, m.frame...)
	}
	m.frame = frames
	return true
}

// next reads the next frame like the first.
func (m *mp3Frames) next() error {
	h, err := m.seek()
	if err != nil {
		return err
	}
	m.buf = slices.Grow(m.buf[:0], h.size())
	m.frame = m.buf[:h.size()]
	if _, err := io.ReadFull(m.r, m.frame); err != nil {
		m.frame = nil
		if isEnd(err) {
			m.truncated = true
			return io.EOF
		}
		return err
	}
	m.frame = m.reservoir.rewrite(h, m.frame)
	return nil
}

// seek skips what is before the next frame, and returns its header. Bytes after the last frame are a tag.
func (m *mp3Frames) seek() (h mp3Header, err error) {
	skipped, tag := int64(0), false
	for ; ; skipped++ {
		head, err := m.r.Peek(4)
		if err != nil {
			return 0, err
		}
		if h = mp3HeaderAt(head); h.like(m.first) && (skipped == 0 || m.followed(h)) {
			break
		}
		tag = tag || slices.Contains([]string{"TAG", "ID3", "APE", "LYR"}, string(head[:3])) // the frames of another file may follow
		if _, err := m.r.Discard(1); err != nil {
			return 0, err
		}
	}
	if !tag {
		m.skipped += skipped
	}
	if skipped > 0 {
		m.reservoir = mp3Reservoir{}
	}
	return h, nil
}

// followed reports whether another frame, or the end, follows a header. One after other bytes may be a coincidence.
func (m *mp3Frames) followed(h mp3Header) bool {
	size := h.size()
	more, _ := m.r.Peek(size + 4)
	return len(more) >= size && (len(more) < size+4 || mp3HeaderAt(more[size:]).like(m.first))
}

// readMP3Tag reads a Xing, Info or VBRI frame.
func readMP3Tag(h mp3Header, frame []byte) mp3Tag {
	if vbri := frame[min(36, len(frame)):]; len(vbri) >= 18 && string(vbri[:4]) == "VBRI" {
		return mp3Tag{present: true, frames: int(binary.BigEndian.Uint32(vbri[14:]))}
	}
	at := 4 + h.sideInfo()
	if len(frame) < at+2+8 {
		return mp3Tag{}
	}
	isTag := func(b []byte) bool { s := string(b[:4]); return s == "Xing" || s == "Info" }
	b := frame[at:]
	if h>>16&1 == 0 && !isTag(b) { // LAME has no checksum in its tag
		b = b[2:]
	}
	if !isTag(b) {
		return mp3Tag{}
	}
	t := mp3Tag{present: true}
	flags := binary.BigEndian.Uint32(b[4:])
	b = b[8:]
	for _, part := range []struct {
		flag uint32
		size int
	}{{1, 4}, {2, 4}, {4, 100}, {8, 4}} {
		if flags&part.flag == 0 {
			continue
		}
		if len(b) < part.size {
			return t
		}
		if part.flag == 1 {
			t.frames = int(binary.BigEndian.Uint32(b))
		}
		b = b[part.size:]
	}
	if len(b) >= 24 && (string(b[:4]) == "LAME" || string(b[:4]) == "Lavf" || string(b[:4]) == "Lavc") {
		t.delay = int(b[21])<<4 | int(b[22])>>4
		t.padding = int(b[22]&15)<<8 | int(b[23])
	}
	return t
}
