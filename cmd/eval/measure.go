package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hubbub/capture"
	"hubbub/localserver/engine"
	"hubbub/protocol"
	"hubbub/protocol/evaluation"
)

// chunkSamples is the protocol's chunk: 100 ms.
const chunkSamples = engine.SampleRate / 10

// outcome is the result of one recording at one latency.
type outcome struct {
	name    string
	score   evaluation.Result
	labels  evaluation.LabelReport
	lags    []time.Duration
	cpu     time.Duration
	seconds float64 // of audio
}

// evaluator runs the engine over recordings.
type evaluator struct {
	settings
	progress io.Writer // nil: no progress is shown

	stored map[string]windows // of --offline with --windows, by file name of the audio

	mu          sync.Mutex
	done, total int // recordings
}

// measure decodes each recording once and runs every latency over it.
func (ev *evaluator) measure(ctx context.Context, sets []set) ([]table, error) {
	outcomes := make([][][]outcome, len(ev.latencies)) // by latency, set and recording
	for k := range outcomes {
		for _, s := range sets {
			outcomes[k] = append(outcomes[k], make([]outcome, len(s.recordings)))
		}
	}
	if ev.offline && ev.windowsFile != "" {
		all, err := ev.runNetworks(ctx, sets)
		if err != nil {
			return nil, err
		}
		ev.stored = map[string]windows{}
		for _, w := range all {
			ev.stored[w.rec.audio] = w
		}
	}
	err := ev.eachRecording(ctx, sets, func(ctx context.Context, i, j int, r recording) (err error) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var samples []float32
		if ev.stored == nil {
			if samples, err = capture.Decode(ctx, capture.Spec{Input: r.audio}); err != nil {
				return err // it names the file
			}
			amplify(samples, ev.gain)
		}
		for k, d := range ev.latencies {
			o, err := ev.evaluate(ctx, r, samples, d)
			if err != nil {
				return fmt.Errorf("%s: %w", r.audio, err)
			}
			outcomes[k][i][j] = o
		}
		ev.report(r.name)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var tables []table
	for k, d := range ev.latencies {
		tables = append(tables, newTable(d, sets, outcomes[k]))
	}
	return tables, nil
}

// eachRecording calls do for every recording, as many at once as --jobs says. i is the number of the set, j that of
// the recording in it.
func (ev *evaluator) eachRecording(ctx context.Context, sets []set, do func(ctx context.Context, i, j int, r recording) error) error {
	ev.done, ev.total = 0, count(sets)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(ev.jobs)
	for i, s := range sets {
		for j, r := range s.recordings {
			group.Go(func() error { return do(ctx, i, j, r) })
		}
	}
	err := group.Wait()
	if ev.progress != nil {
		fmt.Fprint(ev.progress, "\r\x1b[K")
	}
	return err
}

func (ev *evaluator) report(name string) {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	ev.done++
	if ev.progress != nil {
		fmt.Fprintf(ev.progress, "\r\x1b[K%d/%d %s", ev.done, ev.total, name)
	}
}

// evaluate runs the engine, or the program, over one recording and scores it.
func (ev *evaluator) evaluate(ctx context.Context, r recording, samples []float32, latency time.Duration) (o outcome, err error) {
	var hyp []protocol.FileTurn
	switch {
	case ev.offline:
		o, hyp, err = ev.runOffline(ctx, r, samples)
	case ev.program != "":
		o, hyp, err = ev.runProgram(ctx, r, float64(len(samples))/engine.SampleRate, latency)
	default:
		o, hyp, err = ev.runEngine(ctx, r, samples, latency)
	}
	if err != nil {
		return o, err
	}
	return o, o.rate(r, hyp)
}

// rate scores a hypothesis.
func (o *outcome) rate(r recording, hyp []protocol.FileTurn) (err error) {
	o.score, err = r.score(hyp)
	o.labels = evaluation.Labels(r.ref, hyp, r.uem)
	return err
}

func (r recording) score(hyp []protocol.FileTurn) (evaluation.Result, error) {
	report, err := evaluation.Score(r.ref, hyp, r.uem, evaluation.Options{})
	if err != nil {
		return evaluation.Result{}, err
	}
	return report.Files[0].Result, nil
}

// percentile is the smallest of sorted lags that p per cent do not exceed (nearest
// rank), in seconds; NaN when there are none.
func percentile(sorted []time.Duration, p int) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1].Seconds()
}
