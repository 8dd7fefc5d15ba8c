package capture

import "testing"

// TestRecent keeps the newest seconds, with silence for what was left out.
func TestRecent(t *testing.T) {
	r := NewRecent(2)
	chunk := func(seq int64) Chunk {
		c := Chunk{Seq: seq, Samples: make([]float32, ChunkSamples), Valid: ChunkSamples}
		for i := range c.Samples {
			c.Samples[i] = float32(seq+1) / 100
		}
		return c
	}
	at := func(seconds float64) float32 {
		s := r.Span(seconds, seconds+0.001)
		if len(s) == 0 {
			return -1
		}
		return float32(int(s[0]*100 + 0.5))
	}
	if r.Start() != 0 || len(r.Span(0, 10)) != 0 {
		t.Error("it is not empty at first")
	}
	for seq := range int64(10) {
		r.Add(chunk(seq))
	}
	if len(r.Span(0, 10)) != SampleRate || at(0) != 1 || at(0.95) != 10 {
		t.Errorf("%d samples, %v, %v", len(r.Span(0, 10)), at(0), at(0.95))
	}
	r.Add(chunk(14))
	if at(0.95) != 10 || at(1.2) != 0 || at(1.45) != 15 {
		t.Errorf("%v, %v, %v", at(0.95), at(1.2), at(1.45))
	}
	for seq := int64(15); seq < 33; seq++ {
		r.Add(chunk(seq))
	}
	if r.Start() != 1.3 || at(1.2) != -1 || at(1.35) != 0 || at(1.45) != 15 || at(3.25) != 33 || len(r.Span(0, 10)) != 2*SampleRate {
		t.Errorf("from %v: %v, %v, %v, %v", r.Start(), at(1.2), at(1.35), at(1.45), at(3.25))
	}
	r.Add(chunk(1000))                                            // far beyond
	if r.Start() != 98.1 || at(99.95) != 0 || at(100.05) != 100 { // full scale
		t.Errorf("from %v: %v, %v", r.Start(), at(99.95), at(100.05))
	}
}
