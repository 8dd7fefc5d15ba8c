package audiofile

// topLSFBitrate is the index of the highest bit rate of MPEG-2 layer III.
const topLSFBitrate = 14

// selfContained rewrites MPEG-2 frames so that each contains all of its data, and those of
// MPEG-2.5 at 11,025 and 12,000 Hz as MPEG-2 at 16 kHz, which differ in nothing else.
//
// The data of a frame may begin in the frames before it (the bit reservoir;
// ISO 11172-3, 2.4.1.7 and ISO 13818-3). go-mp3 computes the length of many
// padded MPEG-2 frames as one byte too short, and then reads that data from the
// wrong place. Frames without padding and without a reservoir avoid the defect.
type selfContained struct {
	past []byte // the last main data, at most reservoirMax bytes
	out  []byte
}

// reservoirMax is how far back an MPEG-2 frame's data may begin, in bytes.
const reservoirMax = 255

// rewrite returns the rewritten frame, valid until the next call.
func (s *selfContained) rewrite(h mp3Header, frame []byte) []byte {
	at := 4
	if h>>16&1 == 0 {
		at += 2 // the checksum is removed
	}
	if len(frame) < at+h.sideInfo() {
		return frame
	}
	side, own := frame[at:at+h.sideInfo()], frame[at+h.sideInfo():]

	begin := min(int(side[0]), len(s.past))
	data := append(s.past[len(s.past)-begin:len(s.past):len(s.past)], own...)
	missing := int(side[0]) - begin // at the start, or after damage

	// What the channels need: a 12-bit length each, in bits.
	need := bits12(side, 9)
	if !h.mono() {
		need = bits12(side, 10) + bits12(side, 73)
	}
	data = data[:min(len(data), (need+7)/8)]

	if h.mpeg25() {
		h = h&^(3<<10) | 1<<20 | 2<<10 // MPEG-2 at 16 kHz
	}
	h |= 1 << 16 // no checksum
	h &^= 1 << 9 // no padding
	for h>>12&15 < topLSFBitrate && 4+len(side)+missing+len(data) > h.size() {
		h += 1 << 12
	}
	s.out = append(s.out[:0], byte(h>>24), byte(h>>16), byte(h>>8), byte(h))
	s.out = append(s.out, side...)
	s.out[4] = 0 // the data begins here
	s.out = append(s.out, make([]byte, missing)...)
	s.out = append(s.out, data...)
	for len(s.out) < h.size() {
		s.out = append(s.out, 0)
	}

	s.past = append(s.past, own...)
	if extra := len(s.past) - reservoirMax; extra > 0 {
		s.past = append(s.past[:0], s.past[extra:]...)
	}
	return s.out[:h.size()]
}

// bits12 reads 12 bits of b from bit number at on.
func bits12(b []byte, at int) int {
	v := 0
	for i := at; i < at+12; i++ {
		v = v<<1 | int(b[i/8]>>(7-i%8)&1)
	}
	return v
}
