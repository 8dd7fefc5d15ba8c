package audiofile

import "sync"

// Recent keeps the newest samples of a session, as 16 bits. Positions count its samples
// from 0. Any goroutine may use it.
type Recent struct {
	mu      sync.Mutex
	samples []int16 // ring buffer: sample n is at n % size
	size    int64
	end     int64 // samples so far
}

// NewRecent keeps so many seconds; memory is used as audio arrives.
func NewRecent(seconds int) *Recent { return &Recent{size: int64(seconds) * SampleRate} }

// Add takes samples from a position on. What is missing before them becomes silence, and
// what is there already stays.
func (r *Recent) Add(position int64, samples []float32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.end = max(r.end, position-r.size); r.end < position; {
		r.put(0)
	}
	for _, s := range samples[min(r.end-position, int64(len(samples))):] {
		r.put(pcm16(s))
	}
}

func (r *Recent) put(s int16) {
	i := r.end % r.size
	for int64(len(r.samples)) <= i {
		r.samples = append(r.samples, 0)
	}
	r.samples[i] = s
	r.end++
}

// Span is the audio between two positions, as far as it is kept, and where it begins.
func (r *Recent) Span(from, to int64) (first int64, samples []float32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, to = max(from, r.end-r.size, 0), min(to, r.end)
	for n := first; n < to; n++ {
		samples = append(samples, float32(r.samples[n%r.size])/32768)
	}
	return first, samples
}

// Start is the position from which audio is kept.
func (r *Recent) Start() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.end-r.size, 0)
}
