package offline

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"

	"hubbub/localserver/engine/clustering"
)

// liveHeap is the memory in use, in bytes.
func liveHeap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// long is a recording of so many minutes in which n people talk, two in each window,
// and all the time: a window has four segments and two groups. add gives windows one
// by one.
func long(n, minutes int, add func(w *clustering.Window, last bool)) {
	voices := people(n)
	r := rand.New(rand.NewPCG(3, 4))
	w := &clustering.Window{Speech: make([]float32, windowFrames)}
	for range 2 {
		w.Speakers = append(w.Speakers, clustering.LocalSpeaker{Activity: make([]float32, windowFrames), Segments: make([]clustering.Segment, 2)})
	}
	for i := range windowFrames {
		w.Speech[i] = 1
		w.Speakers[i*2/windowFrames].Activity[i] = 1
	}
	const frames = 60 * SampleRate / frameSamples
	for end := windowFrames; end <= minutes*frames; end += hopFrames {
		w.First = end - windowFrames
		for k := range w.Speakers {
			who := r.IntN(n)
			for j := range w.Speakers[k].Segments {
				from := k*windowFrames/2 + j*windowFrames/4
				w.Speakers[k].Segments[j] = clustering.Segment{From: from, To: from + windowFrames/4, Centre: from + windowFrames/8, Duration: 1.2, Embedding: voices[who].say()}
			}
		}
		add(w, end == minutes*frames)
	}
}

// TestMemory: a recording takes less than 0.4 MB per minute, before and after it is
// diarized, so that with the garbage collector's reserve (as much again) the process
// stays below 1 MB.
func TestMemory(t *testing.T) {
	const minutes = 5
	r, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := liveHeap()
	long(MaxSpeakers, minutes, r.Add)
	stored := (liveHeap() - before) / minutes / 1e6
	result, err := r.Finish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	after := (liveHeap() - before) / minutes / 1e6
	t.Logf("%.2f MB per minute before, %.2f after", stored, after)
	if stored > 0.4 || after > 0.4 {
		t.Errorf("%.2f MB per minute before, %.2f after; want 0.4 at most", stored, after)
	}
	if result.Speakers != MaxSpeakers {
		t.Errorf("%d speakers", result.Speakers)
	}
	runtime.KeepAlive(r)
}

// BenchmarkDay clusters 24 hours of windows, without the networks.
func BenchmarkDay(b *testing.B) {
	const minutes = 24 * 60
	for b.Loop() {
		r, err := New(Options{})
		if err != nil {
			b.Fatal(err)
		}
		before := liveHeap()
		long(MaxSpeakers, minutes, r.Add)
		result, err := r.Finish(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric((liveHeap()-before)/minutes/1e6, "MB/min")
		b.ReportMetric(float64(result.Speakers), "speakers")
	}
}
