package offline

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"

	"hubbub/localserver/engine/clustering"
	"hubbub/protocol/testkit"
)

// liveHeap is the memory in use, in bytes.
func liveHeap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// long is a recording of so many minutes in which n people talk, for 5 s at a time,
// and all the time: a window has at least four segments and two clusters. add gives
// windows one by one.
func long(n, minutes int, add func(w *clustering.Window, last bool)) {
	const frames, turn, part = 60 * SampleRate / frameSamples, windowFrames, windowFrames / 4
	voices := people(n)
	speakerOf := func(frame int) int { return rand.New(rand.NewPCG(3, uint64(frame/turn))).IntN(n) }
	for end := windowFrames; end <= minutes*frames; end += hopFrames {
		w := &clustering.Window{First: end - windowFrames, SpeechProbability: make([]float32, windowFrames)}
		for i := range windowFrames {
			w.SpeechProbability[i] = 1
			if (w.First+i)%turn == 0 || i == 0 {
				w.Speakers = append(w.Speakers, clustering.LocalSpeaker{Activity: make([]float32, windowFrames)})
			}
			w.Speakers[len(w.Speakers)-1].Activity[i] = 1
		}
		for k := range w.Speakers {
			l := &w.Speakers[k]
			from := max(0, (w.First/turn+k)*turn-w.First)
			to := min(windowFrames, (w.First/turn+k+1)*turn-w.First)
			for at := from; at < to; at += part {
				s := clustering.Segment{From: at, To: min(at+part, to), Embedding: voices[speakerOf(w.First+from)].say()}
				s.Centre, s.Duration = (s.From+s.To)/2, float64(s.To-s.From)*frameSeconds
				l.Segments = append(l.Segments, s)
			}
			l.Segments[0].From, l.Segments[len(l.Segments)-1].To = 0, windowFrames
		}
		addMultiscale(w, voices, func(frame int) (int, int) { return speakerOf(frame), -1 })
		add(w, end == minutes*frames)
	}
}

// TestMemory: a recording takes less than 0.4 MB per minute, before and after it is
// diarized, so that with the garbage collector's reserve (as much again) the process
// stays below 1 MB.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	const minutes = 20
	r := testkit.Must(New(Options{}))(t)
	before := liveHeap()
	long(MaxSpeakers, minutes, r.Add)
	stored := (liveHeap() - before) / minutes / 1e6
	result := testkit.Must(r.Finish(context.Background()))(t)
	after := (liveHeap() - before) / minutes / 1e6
	t.Logf("%.2f MB per minute before, %.2f after", stored, after)
	if stored > 0.4 || after > 0.4 {
		t.Errorf("%.2f MB per minute before, %.2f after; want 0.4 at most", stored, after)
	}
	testkit.Equal(t, result.Speakers, MaxSpeakers, "speakers")
	runtime.KeepAlive(r)
}
