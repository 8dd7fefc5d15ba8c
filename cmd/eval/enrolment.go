package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"hubbub/localserver/engine"
	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/evaluation"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol/hint"
)

// Meetings of enrolled people, as localserver/engine/training/enrolment.py makes
// them: DIR/meetings and DIR/people, or other folders of the same names in other
// recording conditions, and DIR/enrolled.json.

// enrolment is a set of such meetings, with the output of the networks.
type enrolment struct {
	enrolled map[string]map[string][]string // names by meeting and number of enrolled people
	people   map[string]voiceprint.Voiceprint
	refused  int   // people without a voiceprint
	sets     []set // meetings by recording condition
	meetings []windows
}

func (m *meter) readEnrolment(ctx context.Context) (*enrolment, error) {
	e := &enrolment{people: map[string]voiceprint.Voiceprint{}}
	raw, err := os.ReadFile(filepath.Join(m.enrolment, "enrolled.json"))
	if err == nil {
		err = json.Unmarshal(raw, &e.enrolled)
	}
	if err != nil {
		return nil, hint.Add(fmt.Errorf("the set of enrolled people cannot be read: %w", err), "make it with localserver/engine/training/enrolment.py")
	}
	folders, people := m.meetings, cmp.Or(m.people, filepath.Join(m.enrolment, "people"))
	if len(folders) == 0 {
		folders = []string{filepath.Join(m.enrolment, "meetings")}
	}
	for _, folder := range folders {
		sets, err := findSets(filepath.Dir(folder), []string{filepath.Base(folder)})
		if err != nil {
			return nil, err
		}
		e.sets = append(e.sets, sets...)
	}
	if e.meetings, err = m.runNetworks(ctx, e.sets, m.hop*chunkSamples); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, sizes := range e.enrolled {
		for _, list := range sizes {
			for _, name := range list {
				names[name] = true
			}
		}
	}
	for name := range names {
		samples, err := decode(ctx, filepath.Join(people, name+".wav"))
		if err != nil {
			return nil, err
		}
		v, err := voiceprint.Make(samples)
		if err != nil {
			e.refused++
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			continue
		}
		e.people[name] = v
	}
	return e, nil
}

// of are the people who are enrolled for a meeting, of a number of people.
func (e *enrolment) of(meeting, size string) (people []voiceprint.Person) {
	for _, name := range e.enrolled[meeting][size] {
		if v, ok := e.people[name]; ok {
			people = append(people, voiceprint.Person{Label: name, Voiceprint: v})
		}
	}
	return people
}

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

// row writes a row of the table.
func (r *recognised) row(w io.Writer, meetings, enrolled string) {
	slices.Sort(r.delays)
	fmt.Fprintf(w, "%s\t%s\t%.1f\t%.1f\t%.1f\t%.1f s\t%.1f\t%.1f\t\n", meetings, enrolled, 100*r.correct/r.known, 100*r.wrong/r.known,
		100*r.named/r.strangers, r.delays[len(r.delays)/2], 100*r.with.DER, 100*r.without.DER)
}

// measureEnrolment prints a row for each number of enrolled people: of each folder
// of meetings, and of all folders together where there are several.
func (m *meter) measureEnrolment(ctx context.Context, out io.Writer) error {
	e, err := m.readEnrolment(ctx)
	if err != nil {
		return err
	}
	if m.calibrate {
		return e.calibrate(out)
	}
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "meetings\tenrolled\tcorrect %%\twrong %%\tstranger named %%\tmedian time to name\tDER %%\twithout\t\n")
	for _, size := range []string{"2", "8", "50"} {
		results := make([]recognised, len(e.meetings))
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(m.jobs)
		for i := range e.meetings {
			group.Go(func() error { return m.recognise(ctx, &e.meetings[i], e.of(e.meetings[i].rec.name, size), &results[i]) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		var all recognised
		bySet := make([]recognised, len(e.sets))
		for i, r := range results {
			bySet[e.meetings[i].set].add(r)
			all.add(r)
		}
		for i := range bySet {
			bySet[i].row(tw, e.sets[i].name, size)
		}
		if len(bySet) > 1 {
			all.row(tw, "all", size)
		}
	}
	return tw.Flush()
}

// recognise runs one meeting with and without the enrolled people.
func (m *meter) recognise(ctx context.Context, w *windows, people []voiceprint.Person, r *recognised) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, enrolled := range [][]voiceprint.Person{nil, people} {
		events, emitted, err := m.runWindows(w, enrolled)
		if err != nil {
			return err
		}
		hyp, err := fold(w.rec.name, events)
		if err != nil {
			return err
		}
		names := map[string]string{} // by label
		first := map[string]float64{}
		for i, ev := range events {
			if ev.Match != "" {
				names[fmt.Sprintf("SPEAKER_%02d", ev.Speaker)] = ev.Match
				if _, has := first[ev.Match]; !has {
					first[ev.Match] = emitted[i].Seconds()
				}
			}
		}
		for i := range hyp {
			if name := names[hyp[i].Speaker]; name != "" {
				hyp[i].Speaker = name
			}
		}
		report, err := evaluation.Score(w.rec.ref, hyp, w.rec.uem, m.options)
		if err != nil {
			return err
		}
		if enrolled == nil {
			r.without = report.Files[0].Result
			continue
		}
		r.with = report.Files[0].Result
		r.compare(w.rec.ref, hyp, enrolled, first)
	}
	return nil
}

func (m *meter) runWindows(w *windows, people []voiceprint.Person) (events []engine.Event, emitted []time.Duration, err error) {
	e, err := engine.NewWith(engine.Config{Latency: m.latencies[0], MaxSpeakers: m.maxSpeakers}, clustering.Default(), &replay{steps: w.steps})
	if err != nil {
		return nil, nil, err
	}
	e.Recognise(people, voiceprint.Matching{Threshold: m.threshold / 100})
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
	return events, emitted, nil
}

// compare adds the speech of enrolled people and strangers, and how long after
// the first word each enrolled person is named.
func (r *recognised) compare(ref, hyp []evaluation.Turn, people []voiceprint.Person, first map[string]float64) {
	enrolled := map[string]bool{}
	for _, p := range people {
		enrolled[p.Label] = true
	}
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
	for t := 0.0; t < end; t += step {
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
