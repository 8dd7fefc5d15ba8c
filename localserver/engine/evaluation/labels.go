package evaluation

import (
	"math"
	"slices"
)

// What LabelReport counts as holding, being lost and coming back.
const (
	holdsShare   = 0.10 // of a true speaker's matched speech,
	holdsSeconds = 1.0  // and at least this much of it
	silence      = 60.0 // seconds away that make a return
	greeting     = 10.0 // seconds of a return's lone speech that decide its label
	blip         = 0.5  // seconds for which another label must hold to be a switch
	audible      = 0.5  // seconds of matched speech without which a return is not judged
)

// LabelReport tells how stable labels are, which the error rate hides: whether
// one person keeps one label.
//
// All of it rests on matched lone speech: what is scored, where exactly one
// true speaker talks and at least one label does. So neither missed speech nor
// the second voice of an overlap counts as a change of label.
type LabelReport struct {
	Files int
	// Speakers and Labels are how many there are, over all files.
	Speakers, Labels int
	// Judged are the true speakers with at least one label that holds 10 % of
	// their matched lone speech, and no less than 1 s of it; Holding is how
	// many such labels there are. Holding / Judged is the number of labels for
	// each true speaker: 1 when nobody was split.
	Judged, Holding int
	// Lost are the true speakers for whom no label stands in the optimal
	// mapping, or one that covers under 10 % of their speech.
	Lost int
	// CountError is the difference between the numbers of labels and of true
	// speakers, whichever is more, summed over files.
	CountError int
	// Returns are the true speakers' comings back after more than 60 s without
	// a word, where they had a label before and 0.5 s of the return were
	// matched; Kept those whose first 10 s of lone speech belong for the most
	// part to the label that held most of their speech before.
	Returns, Kept int
	// Switches is how often the label changes inside the speech of one true
	// speaker, over all his turns: from one stretch of lone speech under one
	// label to the next under another. Stretches of less than 0.5 s without a
	// break do not count, or every edge of a turn that is a little off would
	// make two.
	Switches int
	// Matched are the seconds of matched lone speech.
	Matched float64
}

// PerSpeaker is the number of labels that hold a true speaker's speech, on
// average; NaN when nobody was found.
func (l LabelReport) PerSpeaker() float64 { return float64(l.Holding) / float64(l.Judged) }

// SwitchesPerMinute of matched lone speech; NaN when there is none.
func (l LabelReport) SwitchesPerMinute() float64 { return float64(l.Switches) / l.Matched * 60 }

// Add counts the files of other as well.
func (l *LabelReport) Add(other LabelReport) {
	l.Files += other.Files
	l.Speakers += other.Speakers
	l.Labels += other.Labels
	l.Judged += other.Judged
	l.Holding += other.Holding
	l.Lost += other.Lost
	l.CountError += other.CountError
	l.Returns += other.Returns
	l.Kept += other.Kept
	l.Switches += other.Switches
	l.Matched += other.Matched
}

// Labels measures how stable the labels of a hypothesis are, over the same
// files and regions as Score.
func Labels(ref, hyp []Turn, uem []Region) (LabelReport, error) {
	all, err := recordings(ref, hyp, uem)
	if err != nil {
		return LabelReport{}, err
	}
	var report LabelReport
	for _, r := range all {
		report.Add(r.stability())
	}
	return report, nil
}

// utterance is a piece of a speaker's lone speech, and the labels on it.
type utterance struct {
	start, end float64
	labels     []int
}

func (r *recording) stability() LabelReport {
	report := LabelReport{Files: 1}
	shared, lone := r.matrix(), r.matrix()
	spoken := make([]float64, len(r.ref))
	heard := make([]bool, len(r.hyp))
	utterances := make([][]utterance, len(r.ref))
	r.sweep(0, func(p *piece) {
		for _, l := range p.labels {
			heard[l] = true
		}
		for _, s := range p.speakers {
			spoken[s] += p.seconds()
			for _, l := range p.labels {
				shared[s][l] += p.seconds()
			}
		}
		if len(p.speakers) == 1 {
			s := p.speakers[0]
			utterances[s] = append(utterances[s], utterance{p.start, p.end, append([]int(nil), p.labels...)})
			for _, l := range p.labels {
				lone[s][l] += p.seconds()
			}
		}
	})

	for _, h := range heard {
		if h {
			report.Labels++
		}
	}
	labelOf := mapping(shared)
	for s := range r.ref {
		if spoken[s] == 0 {
			continue // never inside the scored regions
		}
		report.Speakers++
		if l := labelOf[s]; l < 0 || shared[s][l] < holdsShare*spoken[s] {
			report.Lost++
		}
		if n := holding(lone[s]); n > 0 {
			report.Judged++
			report.Holding += n
		}
		switches, matched := changes(utterances[s])
		report.Switches += switches
		report.Matched += matched
		returns, kept := r.returns(s, utterances[s])
		report.Returns += returns
		report.Kept += kept
	}
	report.CountError = max(report.Labels-report.Speakers, report.Speakers-report.Labels)
	return report
}

// holding counts the labels that hold a share of a speaker's matched speech.
func holding(seconds []float64) int {
	all := 0.0
	for _, s := range seconds {
		all += s
	}
	n := 0
	for _, s := range seconds {
		if s >= holdsSeconds && s >= holdsShare*all {
			n++
		}
	}
	return n
}

// changes counts how often the label changes, and the seconds that have one.
func changes(utterances []utterance) (switches int, matched float64) {
	settled, now, held, end := -1, -1, 0.0, 0.0
	settle := func() {
		if held < blip || now == settled {
			return
		}
		if settled >= 0 {
			switches++
		}
		settled = now
	}
	for _, u := range utterances {
		if len(u.labels) == 0 {
			continue
		}
		matched += u.end - u.start
		if known := slices.Contains(u.labels, now); !known || u.start > end {
			settle()
			held = 0
			if !known {
				now = u.labels[0]
			}
		}
		held += u.end - u.start
		end = u.end
	}
	settle()
	return switches, matched
}

// returns judges every return of a speaker.
func (r *recording) returns(speaker int, utterances []utterance) (returns, kept int) {
	turns := r.ref[speaker]
	for i := 1; i < len(turns); i++ {
		if turns[i].start-turns[i-1].end <= silence {
			continue
		}
		leave := math.Inf(1) // the next absence
		for k := i + 1; k < len(turns); k++ {
			if turns[k].start-turns[k-1].end > silence {
				leave = turns[k].start
				break
			}
		}
		before, after := make([]float64, len(r.hyp)), make([]float64, len(r.hyp))
		said := 0.0
		for _, u := range utterances {
			switch {
			case u.end <= turns[i-1].end:
				credit(before, u, u.end)
			case u.start >= turns[i].start && u.start < leave && said < greeting:
				credit(after, u, u.start+greeting-said)
				said += u.end - u.start
			}
		}
		old, new := most(before), most(after)
		if old < 0 || new < 0 || after[new] < audible {
			continue
		}
		returns++
		if old == new {
			kept++
		}
	}
	return returns, kept
}

func credit(seconds []float64, u utterance, until float64) {
	for _, l := range u.labels {
		seconds[l] += min(u.end, until) - u.start
	}
}

// most is the label of the most seconds, or -1.
func most(seconds []float64) int {
	best := -1
	for l, s := range seconds {
		if s > 0 && (best < 0 || s > seconds[best]) {
			best = l
		}
	}
	return best
}
