package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/localserver/engine/evaluation"
	"hubbub/localserver/engine/offline"
	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/tui/plain"
)

// audioTolerance is how much earlier than its last turn the audio of a recording
// may end: that of a session that was killed lacks up to a second.
const audioTolerance = 2 * time.Second

// withoutRefine is the hint for a recording without usable audio.
const withoutRefine = "Export it without --refine: that needs no audio."

// refine runs the second pass over the audio of a recording and returns its turns
// under the labels of the session. It lists the turns that changed on standard
// error.
func (a *App) refine(ctx context.Context, rec *recording.Recording) ([]protocol.Turn, error) {
	if rec.Audio == "" {
		return nil, hint.Add(fmt.Errorf("%s contains no readable audio, which --refine needs", rec.Dir), withoutRefine)
	}
	var p progress
	stop := p.show(a.Stderr, 1)
	pass, err := secondPass(ctx, rec.Audio, capture.Mix, offline.Options{}, &p)
	stop()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, hint.Add(fmt.Errorf("cannot refine %s: %w", rec.Dir, err), withoutRefine)
	}
	for _, n := range pass.notices {
		a.notice("%s", n)
	}
	live, last := rec.Turns(), 0.0
	for _, t := range live {
		last = max(last, t.End)
	}
	if missing := last - pass.length.Seconds(); missing > audioTolerance.Seconds() {
		return nil, hint.Add(fmt.Errorf("cannot refine %s: %s ends %.0f s before the last turn", rec.Dir, rec.Audio, missing), withoutRefine)
	}
	turns := relabel(live, labelled(pass.Turns), rec.Notes)
	return turns, a.printChanges(turnChanges(live, turns, rec.Notes))
}

// relabel gives each speaker of the second pass the label of the live speaker with
// whom they share the most time, one to one, with the largest sum. Other speakers
// get labels that the session does not have. Merged labels are one live speaker,
// and turns that were moved are those of their new speaker.
func relabel(live, second []protocol.Turn, notes protocol.Annotations) []protocol.Turn {
	used, match := map[string]bool{}, map[string]string{}
	var ref, hyp []evaluation.Turn
	for _, t := range live {
		owner := notes.Owner(t)
		used[t.Speaker], used[owner] = true, true
		if owner == notes.Root(t.Speaker) { // a moved turn says nothing about its new speaker
			match[owner] = cmp.Or(match[owner], t.Match)
		}
		ref = append(ref, evaluation.Turn{Speaker: owner, Start: t.Start, End: t.End})
	}
	for label := range notes.Names() {
		used[label] = true
	}
	for _, m := range notes.Merges() {
		used[m.From], used[m.Into] = true, true
	}
	for _, m := range notes.Moves() {
		used[m.From], used[m.To] = true, true
	}
	for _, label := range notes.MutedLabels() {
		used[label] = true
	}
	for _, t := range second {
		hyp = append(hyp, evaluation.Turn{Speaker: t.Speaker, Start: t.Start, End: t.End})
	}
	labels := map[string]string{}
	// The only error that these turns can cause is that there are none.
	if report, err := evaluation.Score(ref, hyp, nil, evaluation.Options{}); err == nil {
		for liveLabel, label := range report.Files[0].Mapping {
			labels[label] = liveLabel
		}
	}
	next := 0
	turns := slices.Clone(second)
	for i := range turns {
		label, ok := labels[turns[i].Speaker]
		for ; !ok; next++ {
			label = protocol.SpeakerLabel(next)
			ok = !used[label]
		}
		labels[turns[i].Speaker] = label
		turns[i].Speaker, turns[i].Match = label, match[label]
	}
	return turns
}

// turnChange is a turn that only one of two results has.
type turnChange struct {
	turn  protocol.Turn // with the speaker's name
	added bool          // the second result has it
}

// turnChanges are the turns of either result of which less than half belongs to
// the same person in the other one, in order of time.
func turnChanges(before, after []protocol.Turn, notes protocol.Annotations) []turnChange {
	var changes []turnChange
	was, is := byOwner(before, notes), byOwner(after, notes)
	compare := func(list, other map[string][]protocol.Turn, added bool) {
		for owner, turns := range list {
			for _, t := range turns {
				if shared(t, other[owner]) < (t.End-t.Start)/2 {
					t.Speaker = notes.Name(owner)
					changes = append(changes, turnChange{t, added})
				}
			}
		}
	}
	compare(was, is, false)
	compare(is, was, true)
	slices.SortFunc(changes, func(a, b turnChange) int {
		return cmp.Or(cmp.Compare(a.turn.Start, b.turn.Start), cmp.Compare(a.turn.End, b.turn.End), cmp.Compare(a.turn.Speaker, b.turn.Speaker))
	})
	return changes
}

// byOwner sorts turns by the label that stands for their person, each list in
// order of start.
func byOwner(turns []protocol.Turn, notes protocol.Annotations) map[string][]protocol.Turn {
	lists := map[string][]protocol.Turn{}
	for _, t := range turns {
		owner := notes.Owner(t)
		lists[owner] = append(lists[owner], t)
	}
	for _, list := range lists {
		slices.SortStableFunc(list, func(a, b protocol.Turn) int { return cmp.Compare(a.Start, b.Start) })
	}
	return lists
}

// shared is how many seconds of a turn are covered by others, in order of start.
func shared(t protocol.Turn, others []protocol.Turn) float64 {
	seconds, until := 0.0, t.Start
	for _, o := range others {
		if o.Start >= t.End {
			break
		}
		if end := min(o.End, t.End); end > until {
			seconds += end - max(o.Start, until)
			until = end
		}
	}
	return seconds
}

// printChanges lists changed turns on standard error.
func (a *App) printChanges(changes []turnChange) error {
	switch len(changes) {
	case 0:
		a.notice("the second pass changed no turns")
		return nil
	case 1:
		a.notice("the second pass changed 1 turn (- removed, + added):")
	default:
		a.notice("the second pass changed %d turns (- removed, + added):", len(changes))
	}
	p, err := plain.NewPrinter(a.Stderr, plain.FormatLines, "")
	if err != nil {
		return err
	}
	for _, c := range changes {
		sign := "-"
		if c.added {
			sign = "+"
		}
		fmt.Fprint(a.Stderr, sign, " ")
		if err := p.Turn(c.turn); err != nil {
			return err
		}
	}
	return nil
}
