package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"hubbub/localserver/engine"
	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
)

// recognised is what became of the names in a meeting.
type recognised struct {
	Shares [rates]share
	delays []float64 // seconds from the first word of each enrolled person to the name
}

// The rates that are measured. Those of names are of speech in frames with one speaker
// in the reference and at least one label in the result.
const (
	right         = iota // of enrolled people's speech, under their name
	wrong                // of it, under the name of somebody else
	strangerNamed        // of strangers' speech
	withNames            // DER
	withoutNames         // DER
	rates                // how many
)

// share is a part of a whole, both in seconds.
type share struct{ Part, Whole float64 }

// count adds seconds to the whole, and if they belong to it to the part.
func (s *share) count(seconds float64, belong bool) {
	s.Whole += seconds
	if belong {
		s.Part += seconds
	}
}

// add returns both together.
func (r recognised) add(o recognised) recognised {
	for i, s := range o.Shares {
		r.Shares[i].Part += s.Part
		r.Shares[i].Whole += s.Whole
	}
	r.delays = slices.Concat(r.delays, o.delays)
	return r
}

// enrolledSizes are the numbers of enrolled people.
var enrolledSizes = []string{"2", "8", "50"}

// measureNames measures, for each number of enrolled people, the names with each
// threshold and perfect names, of every label after the person with most of its speech: in
// each folder of meetings, and in all folders together where there are several.
func (ev *evaluator) measureNames(ctx context.Context, e *enrolment) (rows []namesRow, err error) {
	var labels []string // of the thresholds
	for _, threshold := range ev.thresholds {
		labels = append(labels, fmt.Sprintf("%g %%", threshold))
	}
	labels = append(labels, "perfect")
	results := make([][][]recognised, len(e.meetings)) // by size, in the order of the labels
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(ev.jobs)
	for i := range e.meetings {
		group.Go(func() (err error) {
			results[i], err = ev.recogniseAll(ctx, e, &e.meetings[i])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for n, size := range enrolledSizes {
		add := func(folder string, belongs func(set int) bool) {
			for t, label := range labels {
				row := namesRow{folder, size, label, map[string]recognised{}}
				for i, w := range e.meetings {
					if belongs(w.set) {
						row.Each[w.rec.name] = row.Each[w.rec.name].add(results[i][n][t])
					}
				}
				rows = append(rows, row)
			}
		}
		for set := range e.sets {
			add(e.sets[set].name, func(of int) bool { return of == set })
		}
		if len(e.sets) > 1 {
			add("all", func(int) bool { return true })
		}
	}
	return rows, nil
}

// recogniseAll runs one meeting without enrolled people, and with each number of them once for each threshold, with a last
// result for perfect names.
func (ev *evaluator) recogniseAll(ctx context.Context, e *enrolment, w *windows) ([][]recognised, error) {
	_, _, hyp, err := ev.runNamed(ctx, w, nil, 100)
	if err != nil {
		return nil, err
	}
	without, err := score(w, hyp)
	if err != nil {
		return nil, err
	}
	all := make([][]recognised, len(enrolledSizes))
	for n, size := range enrolledSizes {
		people, perfect := e.of(w.rec.name, size), recognised{}
		for _, threshold := range ev.thresholds {
			var named recognised
			if named, perfect, err = ev.recognise(ctx, w, people, threshold, without); err != nil {
				return nil, err
			}
			all[n] = append(all[n], named)
		}
		all[n] = append(all[n], perfect)
	}
	return all, nil
}

// score is the DER of a meeting as a share.
func score(w *windows, hyp []protocol.FileTurn) (share, error) {
	r, err := w.rec.score(hyp)
	return share{r.Seconds.Miss + r.Seconds.FalseAlarm + r.Seconds.Confusion, r.Total}, err
}

// recognise is one meeting with the names of the engine, and with perfect names.
func (ev *evaluator) recognise(ctx context.Context, w *windows, people []voiceprint.Person, threshold float64, without share) (decided, perfect recognised, err error) {
	events, emitted, hyp, err := ev.runNamed(ctx, w, people, threshold)
	if err != nil {
		return decided, perfect, err
	}
	enrolled := map[string]bool{}
	for _, p := range people {
		enrolled[p.Label] = true
	}
	matched, who := map[string]string{}, mainPeople(w.rec.ref, hyp, enrolled)
	firstMatch, firstEvent := map[string]float64{}, map[string]float64{} // by person, of labels that are theirs
	for i, event := range events {
		label, at := protocol.SpeakerLabel(event.Speaker), emitted[i].Seconds()
		person := who[label]
		if _, has := firstEvent[person]; !has {
			firstEvent[person] = at
		}
		if event.Kind == engine.Start {
			matched[label] = event.Match
		}
		if _, has := firstMatch[person]; !has && event.Match == person {
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
		if x.r.Shares[withNames], err = score(w, named); err != nil {
			return decided, perfect, err
		}
		x.r.Shares[withoutNames] = without
		x.r.compare(w.rec.ref, named, enrolled, x.first)
	}
	return decided, perfect, nil
}

// mainPeople is the person with most of each label's speech, as far as enrolled.
func mainPeople(ref, hyp []protocol.FileTurn, enrolled map[string]bool) map[string]string {
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
		if person, _, _ := mainPerson(seconds); enrolled[person] {
			names[label] = person
		}
	}
	return names
}

// runNamed runs the engine over a meeting as `hubbub live --voices` asks for it.
func (ev *evaluator) runNamed(ctx context.Context, w *windows, people []voiceprint.Person, threshold float64) (events []engine.Event, emitted []time.Duration, hyp []protocol.FileTurn, err error) {
	return ev.runEngineOn(ctx, w, clustering.Default(), people, voiceprint.Matching{Threshold: threshold / 100, Shared: true})
}

// compare adds the speech of enrolled people and strangers, and how long after
// the first word each enrolled person is named; first is when, by person.
func (r *recognised) compare(ref, hyp []protocol.FileTurn, enrolled map[string]bool, first map[string]float64) {
	const step = clustering.FrameSeconds
	at := func(turns []protocol.FileTurn, t float64) (who []string) {
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
		if !enrolled[truth[0]] {
			r.Shares[strangerNamed].count(step, named)
			continue
		}
		correct := slices.Contains(labels, truth[0])
		r.Shares[right].count(step, correct)
		r.Shares[wrong].count(step, named && !correct)
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
