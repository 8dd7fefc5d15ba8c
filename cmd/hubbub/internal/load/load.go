// Package load sends the same audio as many concurrent streams, each paced in
// real time like a microphone, and measures how late the events arrive.
package load

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/client"
)

// startSpread is the time over which the streams are started.
const startSpread = time.Second

// Options configure a load.
type Options struct {
	Client  *client.Client
	Samples []float32 // 16 kHz, mono; shared by all streams
	Streams int
	// Reject reports that no stream may go to an address: a server may send its
	// streams to another machine.
	Reject func(address string) bool
	// Progress is called every second with a report so far.
	Progress func(Report)
}

// Report is the result of a load, or what it is so far.
type Report struct {
	Streams   int   `json:"streams"`
	Completed int   `json:"completed"`
	Failed    int   `json:"failed"`
	Events    int64 `json:"events"`
	// Lag is the time from the sending of the audio to the arrival of its event,
	// in milliseconds; zeros without an event.
	Lag struct {
		P50 float64 `json:"p50"`
		P95 float64 `json:"p95"`
		P99 float64 `json:"p99"`
	} `json:"lag_ms"`
	DroppedChunks int64 `json:"dropped_chunks"`

	Open  int   `json:"-"` // streams
	Cause error `json:"-"` // of the first failure; nil = none
}

// JSON writes the report as one line.
func (r Report) JSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// Text writes the report as text.
func (r Report) Text(w io.Writer) error {
	_, err := fmt.Fprintf(w, "streams    %d: %d completed, %d failed\nevents     %d\nlag        p50 %.0f ms, p95 %.0f ms, p99 %.0f ms\ndropped    %d chunks\n",
		r.Streams, r.Completed, r.Failed, r.Events, r.Lag.P50, r.Lag.P95, r.Lag.P99, r.DroppedChunks)
	return err
}

// Run runs all streams to their end. The end of ctx ends the audio; what was
// sent is still decided.
func Run(ctx context.Context, o Options) Report {
	t := &tally{now: Report{Streams: o.Streams}}
	running, end := context.WithCancel(context.Background())
	defer end()
	var progress, streams sync.WaitGroup
	progress.Go(func() { protocol.Every(running, time.Second, func() { o.Progress(t.report()) }) })
	start := time.Now()
	for i := range o.Streams {
		streams.Go(func() {
			t.ended((&stream{o, t}).run(ctx, start.Add(startSpread*time.Duration(i)/time.Duration(o.Streams))))
		})
	}
	streams.Wait()
	end()
	progress.Wait()
	return t.report()
}

// maxLag is the longest lag that is told apart, in milliseconds.
const maxLag = 60_000

// tally counts what happens to the streams of a load.
type tally struct {
	mu   sync.Mutex
	now  Report            // without the lag
	lags [maxLag + 1]int64 // events by their lag in milliseconds
}

// count changes what the report has so far.
func (t *tally) count(change func(*Report)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.now)
}

func (t *tally) event(lag time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.Events++
	t.lags[min(max(lag.Milliseconds(), 0), maxLag)]++
}

// ended counts the end of a stream; nil = the service closed it normally.
func (t *tally) ended(err error) {
	t.count(func(r *Report) {
		if err == nil {
			r.Completed++
		} else {
			r.Failed++
			r.Cause = cmp.Or(r.Cause, err)
		}
	})
}

func (t *tally) report() Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.now
	r.Lag.P50, r.Lag.P95, r.Lag.P99 = t.percentile(50), t.percentile(95), t.percentile(99)
	return r
}

// percentile is the smallest lag that p per cent of the events do not exceed (nearest rank),
// in milliseconds; 0 without an event.
func (t *tally) percentile(p int64) float64 {
	rank, seen := (t.now.Events*p+99)/100, int64(0)
	for lag, n := range t.lags {
		if seen += n; seen >= rank {
			return float64(lag)
		}
	}
	return 0
}
