package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"hubbub/localserver/engine"
	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/evaluation"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
)

// recognised is what became of the names in some meetings. Speech is in seconds of
// frames with one speaker in the reference and at least one label in the result.
type recognised struct {
	known, correct, wrong float64 // speech of enrolled people
	strangers, named      float64 // speech of strangers
	delays                []float64
	with, without         evaluation.Result
}

// add adds other meetings.
func (r *recognised) add(o recognised) {
	r.known, r.correct, r.wrong = r.known+o.known, r.correct+o.correct, r.wrong+o.wrong
	r.strangers, r.named = r.strangers+o.strangers, r.named+o.named
	r.delays = append(r.delays, o.delays...)
	r.with, r.without = evaluation.Sum(r.with, o.with), evaluation.Sum(r.without, o.without)
}

// row writes a row of the table. What no speech was there to measure is a dash.
func (r *recognised) row(w io.Writer, meetings, enrolled, threshold string) {
	slices.Sort(r.delays)
	median := "–"
	if n := len(r.delays); n > 0 {
		median = "never"
		if d := r.delays[n/2]; !math.IsInf(d, 1) {
			median = fmt.Sprintf("%.1f s", d)
		}
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.1f\t%.1f\t\n", meetings, enrolled, threshold, percent(r.correct, r.known), percent(r.wrong, r.known),
		percent(r.named, r.strangers), median, 100*r.with.DER, 100*r.without.DER)
}

func percent(part, whole float64) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", 100*part/whole)
}

// meetingNames is one meeting, named by the engine with each threshold, and named
// perfectly: every label after the person with most of its speech.
type meetingNames struct {
	engine  []recognised
	perfect recognised
}

// enrolledSizes are the numbers of enrolled people.
var enrolledSizes = []string{"2", "8", "50"}

// measureNames prints, for each number of enrolled people, a row for each threshold
// and one for perfect names: of each folder of meetings, and of all folders together
// where there are several. The reliability of the confidences follows.
func (m *meter) measureNames(ctx context.Context, e *enrolment, out io.Writer) error {
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "meetings\tenrolled\tthreshold\tright %%\twrong %%\tstranger named %%\tmedian time to name\tDER %%\twithout\t\n")
	without := make([]evaluation.Result, len(e.meetings))
	for round, size := range enrolledSizes {
		results := make([]meetingNames, len(e.meetings))
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(m.jobs)
		for i := range e.meetings {
			group.Go(func() (err error) {
				w := &e.meetings[i]
				if round == 0 {
					if without[i], err = m.scoreWithoutNames(w); err != nil {
						return err
					}
				}
				results[i], err = m.recognise(ctx, w, e.of(w.rec.name, size), without[i])
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		for set := range e.sets {
			m.writeNames(tw, e.sets[set].name, size, results, func(i int) bool { return e.meetings[i].set == set })
		}
		if len(e.sets) > 1 {
			m.writeNames(tw, "all", size, results, func(int) bool { return true })
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return reliability(out, e.comparisons(), voiceprint.Learnt())
}

// writeNames writes the rows of the meetings that belong.
func (m *meter) writeNames(w io.Writer, meetings, enrolled string, results []meetingNames, belong func(i int) bool) {
	engine, perfect := make([]recognised, len(m.thresholds)), recognised{}
	for i, r := range results {
		if belong(i) {
			for t := range engine {
				engine[t].add(r.engine[t])
			}
			perfect.add(r.perfect)
		}
	}
	for t, threshold := range m.thresholds {
		engine[t].row(w, meetings, enrolled, fmt.Sprintf("%g %%", threshold))
	}
	perfect.row(w, meetings, enrolled, "perfect")
}

func (m *meter) scoreWithoutNames(w *windows) (evaluation.Result, error) {
	_, _, hyp, err := m.runNamed(w, nil, 100)
	if err != nil {
		return evaluation.Result{}, err
	}
	return m.score(w, hyp)
}

func (m *meter) score(w *windows, hyp []evaluation.Turn) (evaluation.Result, error) {
	report, err := evaluation.Score(w.rec.ref, hyp, w.rec.uem, m.options)
	if err != nil {
		return evaluation.Result{}, err
	}
	return report.Files[0].Result, nil
}

// recognise runs one meeting with the enrolled people, once for each threshold.
func (m *meter) recognise(ctx context.Context, w *windows, people []voiceprint.Person, without evaluation.Result) (r meetingNames, err error) {
	for _, threshold := range m.thresholds {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		named, perfect, err := m.recogniseAt(w, people, threshold, without)
		if err != nil {
			return r, err
		}
		r.engine, r.perfect = append(r.engine, named), perfect
	}
	return r, nil
}

// recogniseAt is one meeting with the names of the engine, and with perfect names.
func (m *meter) recogniseAt(w *windows, people []voiceprint.Person, threshold float64, without evaluation.Result) (decided, perfect recognised, err error) {
	events, emitted, hyp, err := m.runNamed(w, people, threshold)
	if err != nil {
		return decided, perfect, err
	}
	enrolled := map[string]bool{}
	for _, p := range people {
		enrolled[p.Label] = true
	}
	matched, who := map[string]string{}, mainPeople(w.rec.ref, hyp, enrolled)
	firstMatch, firstEvent := map[string]float64{}, map[string]float64{} // by person, of labels that are theirs
	for i, ev := range events {
		label, at := protocol.SpeakerLabel(ev.Speaker), emitted[i].Seconds()
		person := who[label]
		if _, has := firstEvent[person]; !has {
			firstEvent[person] = at
		}
		if ev.Kind == engine.Start {
			matched[label] = ev.Match
		}
		if _, has := firstMatch[person]; !has && ev.Match == person {
			firstMatch[person] = at
		}
	}
	for _, x := range []struct {
		names map[string]string
		first map[string]float64
		r     *recognised
	}{{matched, firstMatch, &decided}, {who, firstEvent, &perfect}} {
		named := slices.Clone(hyp)
		for i := range named {
			if name := x.names[named[i].Speaker]; name != "" {
				named[i].Speaker = name
			}
		}
		if x.r.with, err = m.score(w, named); err != nil {
			return decided, perfect, err
		}
		x.r.without = without
		x.r.compare(w.rec.ref, named, enrolled, x.first)
	}
	return decided, perfect, nil
}

// mainPeople is the person with most of each label's speech, as far as enrolled.
func mainPeople(ref, hyp []evaluation.Turn, enrolled map[string]bool) map[string]string {
	shared := map[string]map[string]float64{}
	for _, h := range hyp {
		for _, r := range ref {
			if both := min(r.End, h.End) - max(r.Start, h.Start); both > 0 {
				if shared[h.Speaker] == nil {
					shared[h.Speaker] = map[string]float64{}
				}
				shared[h.Speaker][r.Speaker] += both
			}
		}
	}
	names := map[string]string{}
	for label, seconds := range shared {
		who, most := "", 0.0
		for name, s := range seconds {
			if s > most {
				who, most = name, s
			}
		}
		if enrolled[who] {
			names[label] = who
		}
	}
	return names
}

// runNamed runs the engine over a meeting, with the people whom it can recognise,
// as `hubbub live --voices` asks for it. emitted is when each event was emitted.
func (m *meter) runNamed(w *windows, people []voiceprint.Person, threshold float64) (events []engine.Event, emitted []time.Duration, hyp []evaluation.Turn, err error) {
	e, err := engine.NewWith(engine.Config{Latency: m.latencies[0], MaxSpeakers: m.maxSpeakers}, clustering.Default(), &replay{steps: w.steps})
	if err != nil {
		return nil, nil, nil, err
	}
	e.Recognise(people, voiceprint.Matching{Threshold: threshold / 100, Shared: true})
	silence := make([]float32, chunkSamples)
	for at := 0; at < w.samples; at += chunkSamples {
		n := min(chunkSamples, w.samples-at)
		events = e.Push(silence[:n], events)
		for len(emitted) < len(events) {
			emitted = append(emitted, time.Duration(at+n)*time.Second/engine.SampleRate)
		}
	}
	events = e.Flush(events)
	for len(emitted) < len(events) {
		emitted = append(emitted, time.Duration(w.samples)*time.Second/engine.SampleRate)
	}
	hyp, err = fold(w.rec.name, events)
	return events, emitted, hyp, err
}

// compare adds the speech of enrolled people and strangers, and how long after
// the first word each enrolled person is named; first is when, by person.
func (r *recognised) compare(ref, hyp []evaluation.Turn, enrolled map[string]bool, first map[string]float64) {
	const step = 0.02
	at := func(turns []evaluation.Turn, t float64) (who []string) {
		for _, x := range turns {
			if x.Start <= t && t < x.End {
				who = append(who, x.Speaker)
			}
		}
		return who
	}
	end := 0.0
	began := map[string]float64{}
	for _, t := range ref {
		end = max(end, t.End)
		if b, has := began[t.Speaker]; !has || t.Start < b {
			began[t.Speaker] = t.Start
		}
	}
	for i := range int(math.Round(end / step)) {
		t := (float64(i) + 0.5) * step // the middle of a frame, because turns end with one
		truth, labels := at(ref, t), at(hyp, t)
		if len(truth) != 1 || len(labels) == 0 {
			continue
		}
		named := slices.ContainsFunc(labels, func(l string) bool { return enrolled[l] })
		switch {
		case !enrolled[truth[0]]:
			r.strangers += step
			if named {
				r.named += step
			}
		default:
			r.known += step
			if slices.Contains(labels, truth[0]) {
				r.correct += step
			} else if named {
				r.wrong += step
			}
		}
	}
	for name, b := range began {
		if !enrolled[name] {
			continue
		}
		delay := math.Inf(1)
		if f, has := first[name]; has {
			delay = max(0, f-b)
		}
		r.delays = append(r.delays, delay)
	}
}
