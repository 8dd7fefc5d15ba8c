package audiofile

import "testing"

// TestRecent keeps the newest seconds, with silence for what was left out.
func TestRecent(t *testing.T) {
	const block = SampleRate / 10
	r := NewRecent(2)
	add := func(seq int64) {
		samples := make([]float32, block)
		for i := range samples {
			samples[i] = float32(seq+1) / 100
		}
		r.Add(seq*block, samples)
	}
	at := func(seconds float64) int {
		_, s := r.Span(int64(seconds*SampleRate), int64((seconds+0.001)*SampleRate))
		if len(s) == 0 {
			return -1
		}
		return int(float64(s[0])*100 + 0.5)
	}
	bounds := func(wantFrom, wantTo float64) {
		t.Helper()
		start := r.Start()
		first, all := r.Span(0, 1<<40)
		if start != int64(wantFrom*SampleRate) || first != start || first+int64(len(all)) != int64(wantTo*SampleRate) {
			t.Errorf("start %d, %d samples from %d, want %v to %v s", start, len(all), first, wantFrom, wantTo)
		}
	}
	bounds(0, 0)
	for seq := range int64(10) {
		add(seq)
	}
	bounds(0, 1)
	if at(0) != 1 || at(0.95) != 10 {
		t.Errorf("%v, %v", at(0), at(0.95))
	}
	r.Add(8*block, make([]float32, 2*block)) // is there already
	bounds(0, 1)
	add(14)
	if at(0.95) != 10 || at(1.2) != 0 || at(1.45) != 15 {
		t.Errorf("%v, %v, %v", at(0.95), at(1.2), at(1.45))
	}
	for seq := int64(15); seq < 33; seq++ {
		add(seq)
	}
	bounds(1.3, 3.3)
	if at(1.2) != -1 || at(1.35) != 0 || at(1.45) != 15 || at(3.25) != 33 {
		t.Errorf("%v, %v, %v, %v", at(1.2), at(1.35), at(1.45), at(3.25))
	}
	add(1000) // far beyond
	bounds(98.1, 100.1)
	if at(99.95) != 0 || at(100.05) != 100 { // full scale
		t.Errorf("%v, %v", at(99.95), at(100.05))
	}
}
