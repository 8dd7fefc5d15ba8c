package datafolder

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"

	"github.com/minio/highwayhash"
)

// The block files in which a NATS server keeps a stream are sequences of
// records:
//
//	4 bytes  length of the record; the highest bit says that there are headers
//	8 bytes  sequence number
//	8 bytes  time
//	2 bytes  length of the subject
//	...      subject, headers with their length of 4 bytes, message
//	8 bytes  HighwayHash-64 of all but the lengths, with the SHA-256 of
//	         "STREAM-BLOCK" as its key
//
// All numbers are little-endian. A NATS server that reads a record with a wrong
// hash cuts the block off there, and with it every record behind. So blocks are
// checked before it sees them.
const (
	recordHead = 4 + 8 + 8 + 2
	recordHash = 8
	// longestRecord is beyond every record that the store writes, in bytes.
	longestRecord = 4 << 20
	withHeaders   = 1 << 31
	// markers are the bits of a sequence number that say that a message was deleted; its
	// record has no subject. No other sequence number is longestSequence or more.
	markers         = 1<<63 | 1<<62
	longestSequence = 1 << 48
)

// block is what a check found in a block file.
type block struct {
	intact  []byte // the intact records, one after the other
	records int    // number of intact ones
	damaged int    // bytes that belong to no intact record
	ranges  int    // contiguous ranges of them
}

// scanBlock checks the records of a block. What follows the last intact record
// of a stream's last block may be a write that was cut off before it was
// acknowledged; that is no damage.
func scanBlock(stream string, index int, last bool, raw []byte) block {
	key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", stream, index))
	h, _ := highwayhash.NewDigest64(key[:]) // the key has the right length
	b := block{intact: make([]byte, 0, len(raw))}
	from := 0 // of what is damaged
	for at := 0; at < len(raw); {
		n := recordAt(h, raw[at:])
		if n == 0 {
			at++
			continue
		}
		b.damage(at - from)
		b.intact = append(b.intact, raw[at:at+n]...)
		b.records++
		at += n
		from = at
	}
	if rest := raw[from:]; !last || !cutOffWrite(rest) {
		b.damage(len(rest))
	}
	return b
}

func (b *block) damage(n int) {
	if n > 0 {
		b.damaged += n
		b.ranges++
	}
}

// recordAt returns the length of the intact record that raw begins with, or 0.
func recordAt(h hash.Hash64, raw []byte) int {
	if len(raw) < recordHead+recordHash {
		return 0
	}
	length, sequence := binary.LittleEndian.Uint32(raw), binary.LittleEndian.Uint64(raw[4:])
	subject := int(binary.LittleEndian.Uint16(raw[20:]))
	n := int(length &^ withHeaders)
	body := recordHead + subject
	if length&withHeaders != 0 {
		body += 4
	}
	if n > longestRecord || n > len(raw) || body > n-recordHash {
		return 0
	}
	// Most of what is inside a damaged record must not get a hash: up to all that follows is
	// hashed, at each of its bytes.
	if sequence&^markers >= longestSequence || subject == 0 && sequence&markers == 0 ||
		slices.ContainsFunc(raw[recordHead:recordHead+subject], func(c byte) bool { return c <= ' ' || c == 0x7f }) {
		return 0
	}
	h.Reset()
	_, _ = h.Write(raw[4:20]) // a hash takes everything
	_, _ = h.Write(raw[recordHead : recordHead+subject])
	_, _ = h.Write(raw[body : n-recordHash])
	var sum [recordHash]byte
	if !bytes.Equal(h.Sum(sum[:0]), raw[n-recordHash:n]) {
		return 0
	}
	return n
}

// cutOffWrite reports whether the end of a block looks like the beginning of a
// record, or like space that was never written.
func cutOffWrite(rest []byte) bool {
	if len(rest) < recordHead {
		return true
	}
	n := int(binary.LittleEndian.Uint32(rest) &^ withHeaders)
	return n <= longestRecord && n > len(rest) || len(bytes.Trim(rest, "\x00")) == 0
}
