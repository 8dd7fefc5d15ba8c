package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"hubbub/localserver/engine"
	"hubbub/protocol/evaluation"
)

const legend = `DER, miss, false alarm and confusion are per cent of the reference speech, overlap counted for each speaker.
  split    labels that hold at least 10 % and 1 s of a true speaker's matched single-speaker speech, on average (1.00: nobody is split)
  labels   labels / true speakers
  lost     true speakers whose mapped label covers under 10 % of their speech, or who have none
  count    difference between the numbers of labels and of true speakers, on average over files
  exact    files with as many labels as true speakers; within 1: with one more or less at most
  returns  true speakers back after more than 60 s of silence who keep their label
  sw/min   changes of label inside one true speaker's speech, per minute of matched single-speaker speech
  lag      newest sample at an event's emission minus the event's time, on the audio's clock (p50, p95 of all events before the input's end)
  RTF      CPU seconds of the engine per second of audio
`

func writeText(w io.Writer, tables []table, s settings) error {
	for i, t := range tables {
		if i > 0 {
			fmt.Fprintln(w)
		}
		pass := fmt.Sprintf("latency %v", s.latencies[i])
		if s.offline {
			pass = "second pass"
		}
		fmt.Fprintf(w, "%s, engine %s, weights %s; collar 0, overlap scored\n", pass, engine.Version(), engine.WeightsVersion())
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprint(tw, "set\tfiles\tminutes\tDER\tmiss\tfalse\tconf\tsplit\tlabels\tlost\tcount\texact\twithin 1\treturns\tsw/min\tlag p50\tp95\tRTF\t\n")
		for _, set := range t.Sets {
			if s.perFile {
				for _, r := range set.EachRecording {
					row(tw, set.Name+"/"+r.Name, r)
				}
			}
			if set.Files > 1 || !s.perFile {
				row(tw, set.Name, set)
			}
		}
		if len(t.Sets) > 1 {
			row(tw, "all", t.All)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	if len(tables) > 0 {
		fmt.Fprintln(w)
		fmt.Fprint(w, legend)
	}
	return nil
}

func row(w io.Writer, name string, f figures) {
	fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t%d/%d\t%d of %d\t%.2f\t%.0f %%\t%.0f %%\t%d of %d\t%s\t%s\t%s\t%.4f\t\n",
		name, f.Files, f.Seconds/60, 100*f.DER, 100*f.Miss, 100*f.FalseAlarm, 100*f.Confusion,
		figure(f.Split), f.Labels, f.Speakers, f.Lost, f.Speakers, f.CountError, 100*f.CountExact, 100*f.CountWithin1,
		f.Kept, f.Returns, figure(f.Switches), figure(f.LagP50), figure(f.LagP95), f.RTF)
}

// figure is a number of a row, which may be missing.
func figure(x *float64) string {
	if x == nil {
		return "-"
	}
	return number(*x)
}

func number(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.2f", x)
}

// figures are a row of a table. Rates are fractions, times seconds.
type figures struct {
	Name    string  `json:"name"`
	Files   int     `json:"files"`
	Seconds float64 `json:"seconds"` // of audio
	evaluation.Result
	Split         *float64  `json:"labels_per_speaker"` // null: no speaker was found
	Labels        int       `json:"labels"`
	Speakers      int       `json:"speakers"`
	Lost          int       `json:"lost"`
	CountError    float64   `json:"count_error"`
	CountExact    float64   `json:"count_exact"`
	CountWithin1  float64   `json:"count_within_1"`
	Returns       int       `json:"returns"`
	Kept          int       `json:"returns_kept"`
	Switches      *float64  `json:"switches_per_minute"`
	LagP50        *float64  `json:"lag_p50"` // null: not measured with --program
	LagP95        *float64  `json:"lag_p95"`
	LagMax        *float64  `json:"lag_max"`
	RTF           float64   `json:"rtf"`
	EachRecording []figures `json:"recordings,omitempty"`
}

// sum is the row of some recordings.
func sum(name string, outcomes []outcome) figures {
	f := figures{Name: name, Files: len(outcomes)}
	var labels evaluation.LabelReport
	var lags []time.Duration
	var cpu time.Duration
	exact, oneOff := 0.0, 0.0 // recordings with as many labels as speakers, and with one more or less
	results := make([]evaluation.Result, len(outcomes))
	for i, o := range outcomes {
		results[i] = o.score
		labels.Add(o.labels)
		lags = append(lags, o.lags...)
		cpu += o.cpu
		f.Seconds += o.seconds
		switch o.labels.Labels - o.labels.Speakers {
		case 0:
			exact++
		case -1, 1:
			oneOff++
		}
	}
	slices.Sort(lags)
	finite := func(x float64) *float64 {
		if math.IsNaN(x) {
			return nil
		}
		return &x
	}
	f.Result = evaluation.Sum(results...)
	f.Split, f.Switches = finite(labels.PerSpeaker()), finite(labels.SwitchesPerMinute())
	f.Labels, f.Speakers, f.Lost, f.Returns, f.Kept = labels.Labels, labels.Speakers, labels.Lost, labels.Returns, labels.Kept
	files := float64(f.Files)
	f.CountError, f.CountExact, f.CountWithin1 = float64(labels.CountError)/files, exact/files, (exact+oneOff)/files
	f.LagP50, f.LagP95, f.LagMax = finite(percentile(lags, 50)), finite(percentile(lags, 95)), finite(percentile(lags, 100))
	if f.Seconds > 0 {
		f.RTF = cpu.Seconds() / f.Seconds
	}
	return f
}

// table is the results of all sets at one latency, as --json writes it.
type table struct {
	Latency float64   `json:"latency"`
	Engine  string    `json:"engine"`
	Weights string    `json:"weights"`
	Sets    []figures `json:"sets"`
	All     figures   `json:"all"`
}

func newTable(latency time.Duration, sets []set, outcomes [][]outcome) table {
	t := table{Latency: latency.Seconds(), Engine: engine.Version(), Weights: engine.WeightsVersion(), All: sum("all", slices.Concat(outcomes...))}
	for i, s := range sets {
		f := sum(s.name, outcomes[i])
		for _, o := range outcomes[i] {
			f.EachRecording = append(f.EachRecording, sum(o.name, []outcome{o}))
		}
		t.Sets = append(t.Sets, f)
	}
	return t
}
