package evaluation

import (
	"errors"
	"fmt"

	"hubbub/protocol"
)

// Options of Score. The zero value is the strictest: no collar, overlap scored.
type Options struct {
	// Collar is how many seconds on each side of every reference boundary are
	// not scored, as in NIST's md-eval (usually 0.25). Some tools state the
	// whole width instead.
	Collar float64
	// SkipOverlap leaves out speech of more than one true speaker.
	SkipOverlap bool
}

// Result is the diarization error of one file, or of several together.
//
// In overlapping speech every speaker counts: Total is the sum of the scored
// seconds of all speakers, and the errors are fractions of it. Where there is
// no reference speech at all, false alarms make an error rate of 1.
type Result struct {
	DER        float64 `json:"der"`
	Miss       float64 `json:"miss"`
	FalseAlarm float64 `json:"false_alarm"`
	Confusion  float64 `json:"confusion"`
	Total      float64 `json:"total"` // seconds

	// Seconds are the same errors before the division.
	Seconds Seconds `json:"-"`
}

// Seconds are the parts of the diarization error in seconds.
type Seconds struct{ Miss, FalseAlarm, Confusion float64 }

// FileResult is the Result of one file.
type FileResult struct {
	File string `json:"file"`
	Result
	// Mapping is the label that is mapped to each true speaker, for those that
	// have one.
	Mapping map[string]string `json:"-"`
}

// Report is the result of Score: all files together, and each, in order of name.
type Report struct {
	Total Result
	Files []FileResult
}

// Score compares a hypothesis with a reference by the diarization error rate
// of NIST's Rich Transcription evaluations (md-eval): labels are mapped to
// true speakers one to one, file by file, so that they share the most scored
// time. The remaining errors are missed speech, false alarm or confusion. With a collar
// or without overlap the mapping is that of pyannote.metrics: md-eval maps over all
// speech of the regions and then leaves some out, so its errors can be larger.
//
// Turns of one speaker that overlap are merged. With a UEM exactly the files
// that it names are scored, in its regions; with nil every file of either side
// is, from its first turn to its last. A file that only the reference has is
// missed, one that only the hypothesis has is false alarm.
func Score(ref, hyp []protocol.FileTurn, uem []protocol.UEMRegion, o Options) (Report, error) {
	if len(ref) == 0 {
		return Report{}, errors.New("the reference holds no turn")
	}
	if uem != nil && len(uem) == 0 {
		return Report{}, errors.New("the UEM holds no region")
	}
	all := recordings(ref, hyp, uem)
	report := Report{Files: make([]FileResult, 0, len(all))}
	referenced := false
	for _, r := range all {
		referenced = referenced || len(r.ref.names) > 0
		result := r.score(o)
		report.Total.add(result.Result)
		report.Files = append(report.Files, result)
	}
	if !referenced {
		return Report{}, fmt.Errorf("no file of the reference (%s, ...) is in the UEM (%s, ...)", ref[0].File, all[0].file)
	}
	report.Total.divide()
	return report, nil
}

func (r *recording) score(o Options) FileResult {
	scored := func(visit func(*interval)) {
		r.sweep(o.Collar, func(p *interval) {
			if !o.SkipOverlap || len(p.speakers) < 2 {
				visit(p)
			}
		})
	}
	// Twice: the mapping is known only at the end.
	shared := r.matrix()
	scored(func(p *interval) {
		for _, s := range p.speakers {
			for _, l := range p.labels {
				shared[s][l] += p.seconds()
			}
		}
	})
	labelOf := mapping(shared)

	result := FileResult{File: r.file, Mapping: map[string]string{}}
	for s, l := range labelOf {
		if l >= 0 {
			result.Mapping[r.ref.names[s]] = r.hyp.names[l]
		}
	}
	scored(func(p *interval) {
		right := 0
		for _, s := range p.speakers {
			for _, l := range p.labels {
				if labelOf[s] == l {
					right++
				}
			}
		}
		truth, found, seconds := len(p.speakers), len(p.labels), p.seconds()
		result.Total += seconds * float64(truth)
		result.Seconds.Miss += seconds * float64(max(0, truth-found))
		result.Seconds.FalseAlarm += seconds * float64(max(0, found-truth))
		result.Seconds.Confusion += seconds * float64(min(truth, found)-right)
	})
	result.divide()
	return result
}

func (r *recording) matrix() [][]float64 {
	m := make([][]float64, len(r.ref.names))
	for i := range m {
		m[i] = make([]float64, len(r.hyp.names))
	}
	return m
}

// mapping is the label mapped to each true speaker, or -1.
func mapping(shared [][]float64) []int {
	labelOf := assign(shared)
	for s, l := range labelOf {
		if l >= 0 && shared[s][l] <= 0 {
			labelOf[s] = -1
		}
	}
	return labelOf
}

// Sum is the result of several files together: every second counts the same.
func Sum(results ...Result) Result {
	var all Result
	for _, r := range results {
		all.add(r)
	}
	all.divide()
	return all
}

func (r *Result) add(other Result) {
	r.Total += other.Total
	r.Seconds.Miss += other.Seconds.Miss
	r.Seconds.FalseAlarm += other.Seconds.FalseAlarm
	r.Seconds.Confusion += other.Seconds.Confusion
}

// divide computes the fractions from the seconds.
func (r *Result) divide() {
	total := r.Total
	if total == 0 {
		if r.Seconds.FalseAlarm > 0 {
			r.DER, r.FalseAlarm = 1, 1
		}
		return
	}
	r.Miss = r.Seconds.Miss / total
	r.FalseAlarm = r.Seconds.FalseAlarm / total
	r.Confusion = r.Seconds.Confusion / total
	r.DER = (r.Seconds.Miss + r.Seconds.FalseAlarm + r.Seconds.Confusion) / total
}
