package offline

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"

	"hubbub/protocol/testkit"
)

// liveHeap is the memory in use, in bytes.
func liveHeap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// TestMemory: a recording takes less than 0.4 MB per minute, before and after it is
// diarized, so that with the garbage collector's reserve (as much again) the process
// stays below 1 MB.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	const minutes = 20
	testkit.Must(New(Options{}))(t) // loads the networks
	before := liveHeap()
	r := added(t, Options{}, people(MaxSpeakers), 60*minutes, func(second int) (int, int) {
		return rand.New(rand.NewPCG(3, uint64(second/5))).IntN(MaxSpeakers), -1
	})
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
