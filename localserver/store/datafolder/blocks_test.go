package datafolder

import (
	"crypto/sha256"
	"hash"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/minio/highwayhash"

	"hubbub/protocol/testkit"
)

// countingHash counts the bytes that are hashed.
type countingHash struct {
	hash.Hash64
	bytes int
}

func (h *countingHash) Write(p []byte) (int, error) {
	h.bytes += len(p)
	return h.Hash64.Write(p)
}

// What looks like a length is everywhere in quiet audio. A check must not hash the rest of a
// damaged record at each of its bytes.
func TestLittleOfADamagedRecordIsHashed(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pcm := func(sample func(i int) int16) (raw []byte) {
		for i := range 128 << 10 {
			v := uint16(sample(i))
			raw = append(raw, byte(v), byte(v>>8))
		}
		return raw
	}
	for name, raw := range map[string][]byte{
		"a quiet tone":  pcm(func(i int) int16 { return int16(40 * math.Sin(float64(i)/20)) }),
		"quiet noise":   pcm(func(int) int16 { return int16(random.IntN(60) - 30) }),
		"noise":         pcm(func(int) int16 { return int16(random.IntN(1 << 16)) }),
		"small numbers": pcm(func(i int) int16 { return int16((i%2 - 1) & random.IntN(1<<14)) }),
	} {
		key := sha256.Sum256(nil)
		digest := testkit.Must(highwayhash.NewDigest64(key[:]))(t)
		h := &countingHash{Hash64: digest}
		for at := range raw {
			if recordAt(h, raw[at:]) > 0 {
				t.Fatalf("%s: a record at %d", name, at)
			}
		}
		if h.bytes > 100*len(raw) {
			t.Errorf("%s: %d bytes hashed of %d", name, h.bytes, len(raw))
		}
	}
}

// A check never fails on what is in a block, and never takes it for intact.
func FuzzScanBlock(f *testing.F) {
	f.Add([]byte("\x1e\x00\x00\x00 record"), 3)
	f.Fuzz(func(t *testing.T, raw []byte, index int) {
		b := scanBlock("S", index, true, raw)
		if len(b.intact)+b.damaged > len(raw) {
			t.Fatalf("%+v", b)
		}
	})
}
