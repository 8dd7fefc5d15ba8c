package inference

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/segmentation"
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
	s := New(hop)
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
	x := noise(16000 * 12)
	New(3200).Push(x, true) // loads the networks
	before := heap()
	s := New(3200)
	push := func() {
		for at := 0; at < len(x); at += 1600 {
			s.Push(x[at:at+1600], false)
		}
	}
	push()
	if n := testing.AllocsPerRun(1, push); n > 0 { // also if the memory grows once in a while
		t.Errorf("%v allocations for 120 chunks", n)
	}
	if size := heap() - before; size < 1<<20 || size > 4<<20 {
		t.Errorf("a stream takes %d bytes", size)
	}
	runtime.KeepAlive(s)
}

// heap is the memory that is in use, in bytes.
func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestPosteriors: a local speaker is alone in a frame that is speech, where no two are likelier.
func TestPosteriors(t *testing.T) {
	s := &Stream{}
	for _, p := range [][segmentation.Classes]float64{{0.6, 0.3, 0.1}, {0.4, 0.3, 0.2, 0, 0.1}, {0.1, 0.3, 0.2, 0, 0.4}, {0.1, 0.2, 0.6, 0, 0, 0.1}} {
		for _, x := range p {
			s.logp = append(s.logp, float32(math.Log(x)))
		}
	}
	s.readPosteriors(7, 2)
	near := func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 }
	if w := &s.window; w.First != 14 || !slices.EqualFunc(w.SpeechProbability, []float32{0.4, 0.6, 0.9, 0.9}, near) {
		t.Errorf("from frame %d: speech %v", w.First, w.SpeechProbability)
	}
	for k, activity := range [][]float32{{0.3, 0.4, 0.7, 0.3}, {0.1, 0.3, 0.6, 0.6}, {0, 0, 0, 0.1}} {
		l, single := &s.speakers[k], []bool{false, k == 0, false, k == 1}
		if !slices.EqualFunc(l.activity, activity, near) || !slices.Equal(l.single, single) {
			t.Errorf("local speaker %d: activity %v, single %v", k, l.activity, l.single)
		}
	}
}

// TestSegments cuts the speech of one local speaker in a window of 250 frames.
func TestSegments(t *testing.T) {
	s := New(3200)
	s.Push(noise(16000*5), true)
	type span struct {
		from, to int
		single   bool
	}
	type speech struct { // of a segment
		from, to, centre, frames int
		of                       span // what its embedding is of
	}
	for _, c := range []struct {
		name  string
		spans []span
		want  []speech
	}{
		{"too little to be active", []span{{50, 54, true}}, nil},
		{"too little for a segment", []span{{50, 56, true}, {60, 90, false}}, []speech{{0, 250, 125, 6, span{50, 56, true}}}},
		{"hardly ever alone", []span{{50, 54, true}, {61, 90, false}}, []speech{{0, 250, 125, 4, span{50, 90, false}}}},
		{"one long enough", []span{{10, 29, true}, {101, 121, true}}, []speech{{0, 250, 111, 20, span{101, 121, true}}}},
		{"a second and nearly a half", []span{{10, 84, true}}, []speech{{0, 250, 47, 74, span{10, 84, true}}}},
		{"two stretches, one divided", []span{{20, 61, true}, {160, 235, true}}, []speech{
			{0, 110, 40, 41, span{20, 61, true}}, {110, 197, 178, 37, span{160, 197, true}}, {197, 250, 216, 38, span{197, 235, true}}}},
	} {
		l := &s.speakers[0]
		l.activity, l.single = make([]float32, 250), make([]bool, 250)
		for _, x := range c.spans {
			for i := x.from; i < x.to; i++ {
				l.activity[i], l.single[i] = 1, x.single
			}
		}
		got, ok := s.embed(l, 0, windowSteps)
		s.embedding.Flush()
		if ok != (c.want != nil) || len(got.Segments) != len(c.want) {
			t.Errorf("%s: %v, %d segments", c.name, ok, len(got.Segments))
			continue
		}
		for i, g := range got.Segments {
			want := c.want[i]
			if g.From != want.from || g.To != want.to || g.Centre != want.centre || math.Abs(g.Duration-float64(want.frames)*clustering.FrameSeconds) > 1e-9 {
				t.Errorf("%s: segment %d is from %d to %d, centred at %d, of %.2f s; want %+v", c.name, i, g.From, g.To, g.Centre, g.Duration, want)
			}
			var mask [windowSteps]float32
			for k := want.of.from; k < want.of.to; k++ {
				if l.single[k] || !want.of.single {
					mask[k/framesPerStep] += l.activity[k] / framesPerStep
				}
			}
			var e clustering.Embedding
			s.embedding.Embed(0, mask[:], e[:])
			if s.embedding.Flush(); e.Dot(&g.Embedding) < 1-1e-5 {
				t.Errorf("%s: the embedding of segment %d is of other speech, their cosine is %.6f", c.name, i, e.Dot(&g.Embedding))
			}
		}
	}
}

// More samples than a window has give one window, the newest one.
func TestMuchAtOnce(t *testing.T) {
	s := New(3200)
	if w := s.Push(noise(16000*12), true); w == nil || w.First < 300 || len(w.SpeechProbability) != windowSteps*framesPerStep {
		t.Errorf("%+v", w)
	}
}
