package clustering

import (
	"encoding/binary"
	"errors"
	"math"
)

// A snapshot holds what a later stream needs to recognise the speakers of this
// one: sum, duration and self-similarity of each speaker, and the stored segments.
// It leaves out what belongs to the current window, to frames that are not
// committed, and to the clock of the stream. TestSnapshotFields compares this
// with the fields of the types.
//
//	1 byte    number of speakers
//	2 bytes   number of stored segments
//	          a speakerRecord for each speaker
//	          each stored segment: a TimedEmbedding, and a segmentRecord
//
// All numbers are little-endian. A segment takes 262 bytes.

var (
	errSnapshot = errors.New("not a snapshot of speakers")
	// ErrTooManySpeakers is the error of Restore for a snapshot of more speakers
	// than the Clusterer may have.
	ErrTooManySpeakers = errors.New("the snapshot has more speakers than are allowed")
)

type (
	speakerRecord struct {
		Sum                      [Dim]float32
		Duration, SelfSimilarity float64
	}
	segmentRecord struct {
		Speaker   int8
		Continues uint8
	}
)

var (
	speakerBytes = binary.Size(speakerRecord{})
	segmentBytes = TimedEmbeddingBytes + binary.Size(segmentRecord{})
)

// AppendSnapshot appends a snapshot to out.
func (c *Clusterer) AppendSnapshot(out []byte) []byte {
	out = append(out, byte(len(c.speakers)))
	out = binary.LittleEndian.AppendUint16(out, uint16(len(c.memory.segments)))
	for i := range c.speakers {
		s := &c.speakers[i]
		r := speakerRecord{Duration: s.duration, SelfSimilarity: s.selfSimilarity}
		for k, x := range s.sum {
			r.Sum[k] = float32(x)
		}
		out, _ = binary.Append(out, binary.LittleEndian, &r) // of fixed size: never fails
	}
	for i := range c.memory.segments {
		s := &c.memory.segments[i]
		speech := TimedEmbedding{s.embedding.Embedding, s.duration}
		out = speech.Append(out)
		r := segmentRecord{Speaker: int8(s.speaker)}
		if s.continues {
			r.Continues = 1
		}
		out, _ = binary.Append(out, binary.LittleEndian, &r)
	}
	return out
}

// beforeStream is the frame of a restored segment.
const beforeStream = -1

// Restore continues with the speakers of a snapshot. It must come before the
// first window. After an error the Clusterer is unchanged.
func (c *Clusterer) Restore(snapshot []byte) error {
	if len(snapshot) < 3 {
		return errSnapshot
	}
	speakers, segments := int(snapshot[0]), int(binary.LittleEndian.Uint16(snapshot[1:]))
	snapshot = snapshot[3:]
	if speakers > MaxSpeakers || segments > memoryMax+MaxSpeakers || len(snapshot) != speakers*speakerBytes+segments*segmentBytes {
		return errSnapshot
	}
	if speakers > c.max {
		return ErrTooManySpeakers
	}
	restored := make([]speaker, speakers, MaxSpeakers)
	for i := range restored {
		var r speakerRecord
		_, _ = binary.Decode(snapshot, binary.LittleEndian, &r) // the length is checked
		snapshot = snapshot[speakerBytes:]
		if !validSum(r.Duration) || !(math.Abs(r.SelfSimilarity) <= 2) {
			return errSnapshot
		}
		s := &restored[i]
		s.duration, s.selfSimilarity = r.Duration, r.SelfSimilarity
		for k, x := range r.Sum {
			if !validSum(math.Abs(float64(x))) {
				return errSnapshot
			}
			s.sum[k] = float64(x)
		}
		s.normalise()
	}
	stored := make([]storedSegment, segments)
	for i := range stored {
		var r segmentRecord
		speech, ok := ParseTimedEmbedding(snapshot)
		_, _ = binary.Decode(snapshot[TimedEmbeddingBytes:], binary.LittleEndian, &r)
		snapshot = snapshot[segmentBytes:]
		if !ok || r.Speaker < noSpeaker || int(r.Speaker) >= speakers || r.Continues > 1 {
			return errSnapshot
		}
		s := &stored[i]
		*s = storedSegment{duration: speech.Duration, speaker: int(r.Speaker), at: beforeStream, continues: r.Continues == 1}
		s.embedding.Embedding = speech.Embedding
		s.embedding.normalise()
	}
	c.speakers, c.memory.segments = restored, stored
	return nil
}

// validSum reports whether x can be a duration or a component of a sum: finite, not
// negative, and less than a year.
func validSum(x float64) bool { return x >= 0 && x < 1e8 }
