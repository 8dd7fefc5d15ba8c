package clustering

import (
	"encoding/binary"
	"errors"
	"math"
)

// A snapshot is what a Clusterer knows of its voices, so that a later stream
// can go on with them: each voice's sum, weight and likeness to itself, and the
// remembered pieces. What belongs to the window at hand, to frames that are not
// committed yet, and to the clock of the stream is not in it. TestSnapshotKnows
// holds this file against the fields that there are.
//
// All numbers are little-endian. Components of embeddings are in 1/32767: a
// cosine of two is then off by a few millionths, and a piece takes 262 bytes.

// errSnapshot is a snapshot that no Clusterer has written.
var errSnapshot = errors.New("not a snapshot of voices")

// ErrTooManyVoices is a snapshot of more voices than the Clusterer may have.
var ErrTooManyVoices = errors.New("the snapshot has more voices than are allowed")

// fixed is how an embedding is scaled to 16 bits.
const fixed = 32767

// voiceRecord and itemRecord are what is written of a voice and of an item.
type (
	voiceRecord struct {
		Sum          [Dim]float32
		Weight, Self float64
	}
	itemRecord struct {
		Embedding [Dim]int16
		Weight    float32
		Voice     int8
		Link      int8
	}
)

var (
	voiceBytes = binary.Size(voiceRecord{})
	itemBytes  = binary.Size(itemRecord{})
)

// AppendSnapshot appends a snapshot to out.
func (c *Clusterer) AppendSnapshot(out []byte) []byte {
	out = append(out, byte(len(c.voices)))
	out = binary.LittleEndian.AppendUint16(out, uint16(len(c.memory.items)))
	for i := range c.voices {
		v := &c.voices[i]
		r := voiceRecord{Weight: v.weight, Self: v.self}
		for k, x := range v.sum {
			r.Sum[k] = float32(x)
		}
		out, _ = binary.Append(out, binary.LittleEndian, &r) // of fixed size: never fails
	}
	for i := range c.memory.items {
		it := &c.memory.items[i]
		r := itemRecord{Weight: float32(it.weight), Voice: int8(it.voice), Link: int8(it.link)}
		for k, x := range it.embedding {
			r.Embedding[k] = int16(math.Round(float64(min(max(x, -1), 1)) * fixed))
		}
		out, _ = binary.Append(out, binary.LittleEndian, &r)
	}
	return out
}

// before is when a restored piece was said, in frames: before the stream.
const before = -1

// Restore takes what AppendSnapshot wrote into a Clusterer that has heard
// nothing yet. After an error the Clusterer is as it was.
func (c *Clusterer) Restore(snapshot []byte) error {
	if len(snapshot) < 3 {
		return errSnapshot
	}
	voices, items := int(snapshot[0]), int(binary.LittleEndian.Uint16(snapshot[1:]))
	snapshot = snapshot[3:]
	if voices > MaxVoices || items > memoryMost+MaxVoices || len(snapshot) != voices*voiceBytes+items*itemBytes {
		return errSnapshot
	}
	if voices > c.max {
		return ErrTooManyVoices
	}
	fresh := make([]voice, voices, MaxVoices)
	for i := range fresh {
		var r voiceRecord
		_, _ = binary.Decode(snapshot, binary.LittleEndian, &r) // the length is checked
		snapshot = snapshot[voiceBytes:]
		if !amount(r.Weight) || !(math.Abs(r.Self) <= 1) {
			return errSnapshot
		}
		v := &fresh[i]
		v.weight, v.self = r.Weight, r.Self
		for k, x := range r.Sum {
			if !amount(math.Abs(float64(x))) {
				return errSnapshot
			}
			v.sum[k] = float64(x)
		}
		v.scale()
	}
	memory := make([]item, items)
	for i := range memory {
		var r itemRecord
		_, _ = binary.Decode(snapshot, binary.LittleEndian, &r)
		snapshot = snapshot[itemBytes:]
		if !amount(float64(r.Weight)) || r.Voice < nobody || int(r.Voice) >= voices || link(r.Link) < takesUp || link(r.Link) > goesOn {
			return errSnapshot
		}
		memory[i] = item{embeddingOf(&r.Embedding), float64(r.Weight), int(r.Voice), before, link(r.Link)}
	}
	c.voices, c.memory.items = fresh, memory
	return nil
}

// amount tells whether x can be a length of speech or a part of a sum: finite,
// not negative, and less than a year.
func amount(x float64) bool { return x >= 0 && x < 1e8 }

// embeddingOf makes a unit vector of a written embedding.
func embeddingOf(r *[Dim]int16) (e Embedding) {
	var norm float64
	for _, x := range r {
		norm += float64(x) * float64(x)
	}
	norm = max(math.Sqrt(norm), 1)
	for k, x := range r {
		e[k] = float32(float64(x) / norm)
	}
	return e
}
