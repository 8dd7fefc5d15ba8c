package secondpass

import (
	"context"
	"fmt"
	"sync"
	"time"

	"hubbub/protocol"
)

// comparison is the time for comparing the speakers of some audio, as a multiple of that
// for reading it through the networks: measured with 4 hours.
const comparison = 0.2

// Progress is how much of several files is processed, and the remaining time.
type Progress struct {
	mu         sync.Mutex // guards what follows
	files      int
	begun      int           // files whose length is known or unknown
	unknown    bool          // a length is not known
	total      time.Duration // of the files that were begun
	processed  time.Duration
	compared   time.Duration // audio whose speakers are compared
	recognised time.Duration // audio whose words are known
}

// Show passes the line to show five times a second until stop is called, then "".
func (p *Progress) Show(files int, show func(text string)) (stop func()) {
	p.files = files
	started := time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		protocol.Every(ctx, 200*time.Millisecond, func() { show(p.text(time.Since(started))) })
	})
	return func() {
		cancel()
		ended.Wait()
		show("")
	}
}

// begin adds a file of this length, 0 = unknown.
func (p *Progress) begin(length time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun++
	p.total += length
	p.unknown = p.unknown || length == 0
}

// skip leaves out a file that is not begun, because it cannot be read.
func (p *Progress) skip() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files--
}

func (p *Progress) add(sum *time.Duration, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*sum += d
}

// text is the line after that time. Files that were not begun are taken to be as
// long as the others.
func (p *Progress) text(elapsed time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unknown || p.begun == 0 || p.total == 0 {
		return fmt.Sprintf("%v processed", p.processed.Round(time.Second))
	}
	// In float64: in nanoseconds thousands of hours overflow.
	total := time.Duration(float64(p.total) * float64(p.files) / float64(p.begun))
	share := min(1, (float64(p.processed)+comparison*float64(p.compared))/(1+comparison)/float64(total))
	text := fmt.Sprintf("%v of %v, %.0f %%", p.processed.Round(time.Second), total.Round(time.Second), 100*share)
	switch {
	case p.compared >= total && p.recognised > 0:
		text += fmt.Sprintf(", words of %v", p.recognised.Round(time.Second))
	case p.compared < total && share > 0.01 && elapsed > time.Second:
		text += fmt.Sprintf(", %v left", time.Duration(float64(elapsed)*(1-share)/share).Round(time.Second))
	}
	return text
}
