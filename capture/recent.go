package capture

import (
	"sync"

	"hubbub/capture/audiofile"
)

// Recent keeps the newest audio of a session, as 16 bits. Any goroutine may use it.
type Recent struct {
	mu      sync.Mutex
	samples []int16 // ring buffer: sample n is at n % size
	size    int64
	end     int64 // samples so far
}

// NewRecent keeps so many seconds; memory is used as audio arrives.
func NewRecent(seconds int) *Recent { return &Recent{size: int64(seconds) * SampleRate} }

// Add appends the next chunk. Chunks that are missing before it become silence.
func (r *Recent) Add(c Chunk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := c.Seq * ChunkSamples
	for r.end = max(r.end, at-r.size); r.end < at; {
		r.put(0)
	}
	for _, s := range c.Samples[:c.Valid] {
		r.put(audiofile.PCM16(s))
	}
}

func (r *Recent) put(s int16) {
	if i := r.end % r.size; i < int64(len(r.samples)) {
		r.samples[i] = s
	} else {
		for int64(len(r.samples)) < i {
			r.samples = append(r.samples, 0)
		}
		r.samples = append(r.samples, s)
	}
	r.end++
}

// Span is the audio between two times in seconds, as far as it is kept.
func (r *Recent) Span(start, end float64) (samples []float32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from, to := max(int64(start*SampleRate), r.end-r.size, 0), min(int64(end*SampleRate), r.end)
	for n := from; n < to; n++ {
		samples = append(samples, float32(r.samples[n%r.size])/32768)
	}
	return samples
}

// Start is the time from which on audio is kept, in seconds.
func (r *Recent) Start() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return float64(max(r.end-r.size, 0)) / SampleRate
}
