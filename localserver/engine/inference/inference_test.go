package inference

import (
	"math"
	"math/rand/v2"
	"testing"

	"hubbub/localserver/engine/clustering"
)

// noise is modulated noise: the networks only have to run.
func noise(n int) []float32 {
	r := rand.New(rand.NewPCG(7, 7))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(0.1 * r.NormFloat64() * (1 + math.Sin(float64(i)/4000)))
	}
	return x
}

func TestWindowsCoverTheNewestSeconds(t *testing.T) {
	const hop = 3200
	s, err := New(hop)
	if err != nil {
		t.Fatal(err)
	}
	x := noise(16000 * 8)
	for at := 0; at < len(x); at += 1600 {
		w := s.Push(x[at:at+1600], false)
		received := at + 1600
		if due := received%hop == 0; (w != nil) != due {
			t.Fatalf("after %d samples a window: %v, due: %v", received, w != nil, due)
		}
		if w == nil {
			continue
		}
		end, newest := w.First+len(w.SpeechProbability), received/320
		if end > newest || end < newest-4 {
			t.Errorf("after %d samples the window ends at frame %d of %d", received, end, newest)
		}
		if len(w.SpeechProbability) > windowSteps*framesPerStep || w.First < 0 {
			t.Errorf("a window of %d frames from %d", len(w.SpeechProbability), w.First)
		}
		for _, p := range w.SpeechProbability {
			if !(p >= -1e-5 && p <= 1+1e-5) {
				t.Fatalf("the probability of speech is %v", p)
			}
		}
		for _, l := range w.Speakers {
			check(t, w, &l)
		}
	}
}

// check checks what clustering.LocalSpeaker promises.
func check(t *testing.T, w *clustering.Window, l *clustering.LocalSpeaker) {
	t.Helper()
	if len(l.Segments) == 0 || len(l.Activity) != len(w.SpeechProbability) {
		t.Fatalf("a local speaker with %d segments and %d frames of %d", len(l.Segments), len(l.Activity), len(w.SpeechProbability))
	}
	next := 0
	for _, p := range l.Segments {
		if p.From != next || p.To <= p.From || p.Centre < p.From || p.Centre > p.To {
			t.Errorf("a segment from %d to %d, centred at %d, where %d was next", p.From, p.To, p.Centre, next)
		}
		next = p.To
		if norm := p.Embedding.Dot(&p.Embedding); math.Abs(norm-1) > 1e-4 {
			t.Errorf("an embedding of squared length %v", norm)
		}
	}
	if next != len(w.SpeechProbability) {
		t.Errorf("the segments end at frame %d of %d", next, len(w.SpeechProbability))
	}
}

func TestNothingIsAllocatedInTheSteadyState(t *testing.T) {
	s, err := New(3200)
	if err != nil {
		t.Fatal(err)
	}
	x := noise(16000 * 12)
	for at := 0; at < len(x); at += 1600 {
		s.Push(x[at:at+1600], false)
	}
	before, at := s.Bytes(), 0
	if n := testing.AllocsPerRun(40, func() {
		s.Push(x[at:at+1600], false)
		at = (at + 1600) % len(x)
	}); n > 0 {
		t.Errorf("%v allocations for a chunk", n)
	}
	if after := s.Bytes(); after != before {
		t.Errorf("a stream grew from %d to %d bytes", before, after)
	}
	if before > 4<<20 {
		t.Errorf("a stream takes %d bytes", before)
	}
}

// More samples than a window has give one window, the newest one.
func TestMuchAtOnce(t *testing.T) {
	s, err := New(3200)
	if err != nil {
		t.Fatal(err)
	}
	if w := s.Push(noise(16000*12), true); w == nil || w.First < 300 || len(w.SpeechProbability) != windowSteps*framesPerStep {
		t.Errorf("%+v", w)
	}
}

func BenchmarkSecond(b *testing.B) {
	s, err := New(3200)
	if err != nil {
		b.Fatal(err)
	}
	x := noise(16000 * 4)
	at := 0
	b.ReportAllocs()
	for b.Loop() {
		for range 10 {
			s.Push(x[at:at+1600], false)
			at = (at + 1600) % len(x)
		}
	}
	b.ReportMetric(float64(s.Bytes()), "bytes/stream")
}
