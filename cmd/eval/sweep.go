package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"hubbub/localserver/engine"
	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/evaluation"
	"hubbub/localserver/engine/hearing"
)

// A sweep tries other thresholds of the clustering. The networks run once over
// every recording; what they heard is replayed for each setting.

// heard is a recording as the networks heard it.
type heard struct {
	set     int
	rec     recording
	samples int
	windows []*clustering.Window // by step of 100 ms, nil where none was due
}

// replay gives the windows of an earlier run.
type replay struct {
	windows []*clustering.Window
	next    int
}

func (r *replay) Push([]float32, bool) *clustering.Window {
	w := r.windows[r.next]
	r.next++
	return w
}

// listen runs the networks over all recordings.
func (m *meter) listen(ctx context.Context, sets []set, hop int) ([]heard, error) {
	if m.heard != "" {
		if all, ok, err := loadHeard(m.heard, sets); ok || err != nil {
			return all, err
		}
	}
	var all []heard
	for i, s := range sets {
		for _, r := range s.recordings {
			all = append(all, heard{set: i, rec: r})
		}
	}
	m.jobs = len(all)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(m.settings.jobs)
	for i := range all {
		group.Go(func() error { return m.hear(ctx, &all[i], hop) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if m.heard != "" {
		return all, saveHeard(m.heard, all)
	}
	return all, nil
}

// hear runs the networks over one recording.
func (m *meter) hear(ctx context.Context, h *heard, hop int) error {
	samples, err := decode(ctx, h.rec.audio)
	if err != nil {
		return err
	}
	stream, err := hearing.New(hop)
	if err != nil {
		return err
	}
	h.samples = len(samples)
	for at := 0; at < len(samples); at += chunkSamples {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		end := min(at+chunkSamples, len(samples))
		w := stream.Push(samples[at:end], end-at < chunkSamples)
		if w != nil {
			w = w.Clone()
		}
		h.windows = append(h.windows, w)
	}
	m.report(h.rec.name)
	return nil
}

// trial is what one setting gives.
type trial struct {
	der, split           []float64 // by set
	miss, fa, conf, goal float64
	kept, returns        int
}

// try runs one setting over everything that was heard.
func (m *meter) try(p clustering.Params, all []heard, sets int) (trial, error) {
	t := trial{}
	outcomes := make([][]outcome, sets)
	silence := make([]float32, chunkSamples)
	for _, h := range all {
		e, err := engine.NewFrom(engine.Config{Latency: m.latencies[0], MaxSpeakers: m.maxSpeakers}, p, &replay{windows: h.windows})
		if err != nil {
			return t, err
		}
		var events []engine.Event
		for at := 0; at < h.samples; at += chunkSamples {
			events = e.Push(silence[:min(chunkSamples, h.samples-at)], events)
		}
		hyp, err := fold(h.rec.name, e.Flush(events))
		if err != nil {
			return t, err
		}
		report, err := evaluation.Score(h.rec.ref, hyp, h.rec.uem, m.options)
		if err != nil {
			return t, err
		}
		o := outcome{score: report.Files[0]}
		if o.labels, err = evaluation.Labels(h.rec.ref, hyp, h.rec.uem); err != nil {
			return t, err
		}
		outcomes[h.set] = append(outcomes[h.set], o)
	}
	n := float64(sets)
	for _, o := range outcomes {
		s := sum(o)
		split := 1.0 // also where nobody was found
		if s.labels.Judged > 0 {
			split = s.labels.PerSpeaker()
		}
		t.der = append(t.der, 100*s.score.DER)
		t.split = append(t.split, split)
		t.miss += 100 * s.score.Miss / n
		t.fa += 100 * s.score.FalseAlarm / n
		t.conf += 100 * s.score.Confusion / n
		// A point of DER for each three hundredths of a label too many: what users
		// complain about is labels.
		t.kept += s.labels.Kept
		t.returns += s.labels.Returns
		t.goal += (100*s.score.DER + 30*max(0, split-1)) / n
	}
	// And a point and a half for each tenth of the returns that are not known again.
	if t.returns > 0 {
		t.goal += 15 * float64(t.returns-t.kept) / float64(t.returns)
	}
	return t, nil
}

func (t trial) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "goal %6.2f  miss %5.2f fa %5.2f conf %5.2f ", t.goal, t.miss, t.fa, t.conf)
	for i := range t.der {
		fmt.Fprintf(&b, "  %5.2f/%.2f", t.der[i], t.split[i])
	}
	fmt.Fprintf(&b, "  returns %d/%d", t.kept, t.returns)
	return b.String()
}

// sweep tries each value of each named parameter alone, from --set's setting.
func (m *meter) sweep(ctx context.Context, sets []set, w io.Writer) error {
	p := clustering.Default()
	for _, text := range m.set {
		if err := setParam(&p, text); err != nil {
			return err
		}
	}
	all, err := m.listen(ctx, sets, m.hop*chunkSamples)
	if err != nil {
		return err
	}
	base, err := m.try(p, all, len(sets))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%-24s %v\n", "as set", base)
	for _, text := range m.values {
		name, values, _ := strings.Cut(text, "=")
		for _, v := range strings.Split(values, "/") {
			q := p
			if err := setParam(&q, name+"="+v); err != nil {
				return err
			}
			t, err := m.try(q, all, len(sets))
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%-24s %v\n", name+"="+v, t)
		}
	}
	if m.rounds > 0 {
		return m.search(ctx, p, all, len(sets), w)
	}
	return nil
}

func setParam(p *clustering.Params, text string) error {
	name, value, ok := strings.Cut(text, "=")
	v, err := strconv.ParseFloat(value, 64)
	if !ok || err != nil {
		return usagef("give NAME=NUMBER", "%q sets nothing", text)
	}
	if err := p.Set(name, v); err != nil {
		return usagef("names may be in any case", "%w", err)
	}
	return nil
}
