package evaluation

import (
	"math"
	"slices"

	"hubbub/protocol"
)

// The limits of LabelReport.
const (
	substantialShare   = 0.10 // of a true speaker's matched speech
	substantialSeconds = 1.0
	returnSilence      = 60.0 // seconds without speech before a return
	returnSpeech       = 10.0 // seconds of single-speaker speech that decide the label of a return
	minReturnMatch     = 0.5  // seconds of matched speech that a return needs to count
	minSwitch          = 0.5  // seconds that another label must last to be a switch
)

// LabelReport measures the stability of labels, which the error rate does not
// show: whether one person keeps one label.
//
// It is based on matched single-speaker speech: scored speech of exactly one true
// speaker under at least one label. So neither missed speech nor the second
// speaker of an overlap counts as a change of label.
type LabelReport struct {
	// Speakers and Labels are their numbers over all files.
	Speakers, Labels int
	// A label is substantial for a true speaker when it has 10 % of the speaker's
	// matched single-speaker speech and 1 s of it. Found is the number of true
	// speakers with a substantial label, Substantial the number of those labels.
	Found, Substantial int
	// Lost is the number of true speakers without a mapped label, or with one
	// that covers less than 10 % of their speech.
	Lost int
	// CountError is the absolute difference between the numbers of labels and of
	// true speakers, summed over files.
	CountError int
	// Returns is how often a true speaker talks again after more than 60 s of
	// silence, if the speaker had a label before and 0.5 s of the return are
	// matched. Kept is how many of them have, for most of the first 10 s of
	// single-speaker speech, the label that most of the speaker's speech had
	// before.
	Returns, Kept int
	// Switches is how often the label changes inside the speech of one true
	// speaker, over all turns. A label that lasts less than 0.5 s without a break
	// does not count, because otherwise every inaccurate turn boundary would be
	// two switches.
	Switches int
	// Matched is the matched single-speaker speech in seconds.
	Matched float64
}

// PerSpeaker is the mean number of substantial labels of a true speaker: 1 when
// no speaker is split, NaN when no speaker was found.
func (l LabelReport) PerSpeaker() float64 { return float64(l.Substantial) / float64(l.Found) }

// SwitchesPerMinute is the switches per minute of matched single-speaker speech;
// NaN when there is none.
func (l LabelReport) SwitchesPerMinute() float64 { return float64(l.Switches) / l.Matched * 60 }

// Add adds the numbers of other.
func (l *LabelReport) Add(other LabelReport) {
	l.Speakers += other.Speakers
	l.Labels += other.Labels
	l.Found += other.Found
	l.Substantial += other.Substantial
	l.Lost += other.Lost
	l.CountError += other.CountError
	l.Returns += other.Returns
	l.Kept += other.Kept
	l.Switches += other.Switches
	l.Matched += other.Matched
}

// Labels measures the stability of a hypothesis's labels, over the same files and
// regions as Score.
func Labels(ref, hyp []protocol.FileTurn, uem []protocol.UEMRegion) (report LabelReport) {
	for _, r := range recordings(ref, hyp, uem) {
		report.Add(r.stability())
	}
	return report
}

func (r *recording) stability() LabelReport {
	var report LabelReport
	shared, single := r.matrix(), r.matrix()
	spoken := make([]float64, len(r.ref.names))
	used := make([]bool, len(r.hyp.names))
	utterances := make([][]interval, len(r.ref.names)) // the single-speaker speech of each speaker
	r.sweep(0, func(p *interval) {
		for _, l := range p.labels {
			used[l] = true
		}
		for _, s := range p.speakers {
			spoken[s] += p.seconds()
			for _, l := range p.labels {
				shared[s][l] += p.seconds()
			}
		}
		if len(p.speakers) == 1 {
			s := p.speakers[0]
			utterances[s] = append(utterances[s], interval{start: p.start, end: p.end, labels: slices.Clone(p.labels)})
			for _, l := range p.labels {
				single[s][l] += p.seconds()
			}
		}
	})

	for _, u := range used {
		if u {
			report.Labels++
		}
	}
	labelOf := mapping(shared)
	for s := range r.ref.names {
		if spoken[s] == 0 {
			continue // not in the scored regions
		}
		report.Speakers++
		if l := labelOf[s]; l < 0 || shared[s][l] < substantialShare*spoken[s] {
			report.Lost++
		}
		if n := substantial(single[s]); n > 0 {
			report.Found++
			report.Substantial += n
		}
		n, matched := switches(utterances[s])
		report.Switches += n
		report.Matched += matched
		returns, kept := r.returns(s, utterances[s])
		report.Returns += returns
		report.Kept += kept
	}
	report.CountError = max(report.Labels-report.Speakers, report.Speakers-report.Labels)
	return report
}

// substantial counts the substantial labels of a true speaker.
func substantial(seconds []float64) int {
	all := 0.0
	for _, s := range seconds {
		all += s
	}
	n := 0
	for _, s := range seconds {
		if s >= substantialSeconds && s >= substantialShare*all {
			n++
		}
	}
	return n
}

// switches counts how often the label changes, and the seconds that have one.
func switches(utterances []interval) (n int, matched float64) {
	confirmed, current, lasted, end := -1, -1, 0.0, 0.0
	confirm := func() {
		if lasted < minSwitch || current == confirmed {
			return
		}
		if confirmed >= 0 {
			n++
		}
		confirmed = current
	}
	for _, u := range utterances {
		if len(u.labels) == 0 {
			continue
		}
		matched += u.seconds()
		if same := slices.Contains(u.labels, current); !same || u.start > end {
			confirm()
			lasted = 0
			if !same {
				current = u.labels[0]
			}
		}
		lasted += u.seconds()
		end = u.end
	}
	confirm()
	return n, matched
}

// returns counts the returns of a speaker, and those under the label of before.
func (r *recording) returns(speaker int, utterances []interval) (returns, kept int) {
	turns := r.ref.turns[speaker]
	for i := 1; i < len(turns); i++ {
		if turns[i].start-turns[i-1].end <= returnSilence {
			continue
		}
		until := math.Inf(1) // start of the next return
		for k := i + 1; k < len(turns); k++ {
			if turns[k].start-turns[k-1].end > returnSilence {
				until = turns[k].start
				break
			}
		}
		before, after := make([]float64, len(r.hyp.names)), make([]float64, len(r.hyp.names))
		spoken := 0.0
		for _, u := range utterances {
			switch {
			case u.end <= turns[i-1].end:
				credit(before, u, u.end)
			case u.start >= turns[i].start && u.start < until && spoken < returnSpeech:
				credit(after, u, u.start+returnSpeech-spoken)
				spoken += u.seconds()
			}
		}
		old, new := most(before), most(after)
		if old < 0 || new < 0 || after[new] < minReturnMatch {
			continue
		}
		returns++
		if old == new {
			kept++
		}
	}
	return returns, kept
}

// credit adds an utterance, up to a time, to the seconds of its labels.
func credit(seconds []float64, u interval, until float64) {
	for _, l := range u.labels {
		seconds[l] += min(u.end, until) - u.start
	}
}

// most is the label with the most seconds, or -1.
func most(seconds []float64) int {
	best := -1
	for l, s := range seconds {
		if s > 0 && (best < 0 || s > seconds[best]) {
			best = l
		}
	}
	return best
}
