package audiofile

import "encoding/binary"

const (
	// topLSFBitrate is the index of the highest bit rate of MPEG-2 layer III.
	topLSFBitrate = 14
	// lsfReservoir is how far before its frame MPEG-2 data may begin, in bytes.
	lsfReservoir = 255
)

// mp3Reservoir changes frames for go-mp3. The data of a frame may begin in the frames before it (the bit reservoir;
// ISO 11172-3, 2.4.1.7 and ISO 13818-3).
//
//   - go-mp3 decodes a frame whose beginning is missing, after a cut or damage, to noise. Such a frame becomes silent.
//   - It computes the length of many padded MPEG-2 frames, which only 22,050 Hz needs, as one byte too short, and then
//     reads what begins in them from the wrong place. These frames lose their padding.
//   - MPEG-2.5 at 11,025 and 12,000 Hz becomes MPEG-2 at 16 kHz, which differs only in the length of frames.
type mp3Reservoir struct {
	past int // bytes before the next frame that go-mp3 has, without extra ones

	// Where the length of frames changes:
	last []byte // the newest lsfReservoir bytes of data
	late int    // the last of these that had no space yet
	out  []byte
}

// rewrite returns the frame to decode, valid until the next call. It may change frame.
func (r *mp3Reservoir) rewrite(h mp3Header, frame []byte) []byte {
	at := 4
	if h>>16&1 == 0 {
		at += 2 // a checksum, which go-mp3 skips
	}
	if len(frame) < at+h.sideInfo() {
		return frame
	}
	side, own := frame[at:at+h.sideInfo()], frame[at+h.sideInfo():]
	if h.mpeg25() || h.rate() == 22050 {
		return r.resize(h, side, own)
	}
	width := 8 // bits
	if h.mpeg1() {
		width = 9
	}
	begin := bitsOf(side, 0, width)
	if begin > r.past {
		begin = r.past
		clear(side)
		binary.BigEndian.PutUint16(side, uint16(begin<<(16-width)))
	}
	r.past = begin + len(own)
	return frame
}

// resize returns a frame of another length with the same data.
func (r *mp3Reservoir) resize(h mp3Header, side, own []byte) []byte {
	begin := int(side[0])
	moved := min(begin, r.late) // bytes from before the frame to its start
	if begin-moved > r.past {
		moved = begin
	}
	begin -= moved
	missing := max(0, moved-len(r.last))
	r.last = append(r.last, own...)
	data := r.last[max(0, len(r.last)-len(own)-moved):]

	// What the channels need: a 12-bit length each, in bits.
	need := bitsOf(side, 9, 12)
	if !h.mono() {
		need = bitsOf(side, 10, 12) + bitsOf(side, 73, 12)
	}
	end := max(0, (need+7)/8-begin)

	if h.mpeg25() {
		h = h&^(3<<10) | 1<<20 | 2<<10 // MPEG-2 at 16 kHz
	}
	h |= 1 << 16 // no checksum
	h &^= 1 << 9 // no padding
	for h>>12&15 < topLSFBitrate && 4+len(side)+len(data) > h.size() {
		h += 1 << 12
	}
	space := h.size() - 4 - len(side)
	if most := min(space, len(data)); missing > 0 || end > most {
		clear(side)
		end = min(end, most)
	}
	side[0] = byte(begin)
	r.late = max(0, len(data)-space)
	r.past = begin + space
	extra := max(0, space-len(data))
	if extra > 0 { // between the data of this frame and that of the next one
		r.past = len(data) - end
	}
	r.out = append(r.out[:0], byte(h>>24), byte(h>>16), byte(h>>8), byte(h))
	r.out = append(append(r.out, side...), data[:end]...)
	r.out = append(append(r.out, make([]byte, extra)...), data[end:len(data)-r.late]...)
	if old := len(r.last) - lsfReservoir; old > 0 {
		r.last = append(r.last[:0], r.last[old:]...)
	}
	return r.out
}

// bitsOf reads n bits of b from bit number at on.
func bitsOf(b []byte, at, n int) int {
	v := 0
	for i := at; i < at+n; i++ {
		v = v<<1 | int(b[i/8]>>(7-i%8)&1)
	}
	return v
}
