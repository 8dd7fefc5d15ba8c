package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"hubbub/localserver/engine"
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
		overlap := "overlap scored"
		if s.skipOverlap {
			overlap = "overlap skipped"
		}
		pass := fmt.Sprintf("latency %v, at most %d labels", t.latency, s.maxSpeakers)
		if s.offline {
			pass = "second pass"
		}
		fmt.Fprintf(w, "%s, engine %s, weights %s; collar %g s, %s\n",
			pass, engine.Version(), engine.WeightsVersion(), s.collar, overlap)
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprint(tw, "set\tfiles\tminutes\tDER\tmiss\tfalse\tconf\tsplit\tlabels\tlost\tcount\texact\twithin 1\treturns\tsw/min\tlag p50\tp95\tRTF\t\n")
		var all []outcome
		for _, r := range t.results {
			if s.perFile {
				for _, o := range r.outcomes {
					row(tw, r.set+"/"+o.name, sum([]outcome{o}))
				}
			}
			if len(r.outcomes) > 1 || !s.perFile {
				row(tw, r.set, sum(r.outcomes))
			}
			all = append(all, r.outcomes...)
		}
		if len(t.results) > 1 {
			row(tw, "all", sum(all))
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

func row(w io.Writer, name string, s summary) {
	l := s.labels
	fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t%d/%d\t%d of %d\t%.2f\t%.0f %%\t%.0f %%\t%d of %d\t%s\t%s\t%s\t%.4f\t\n",
		name, s.files, s.seconds/60, 100*s.score.DER, 100*s.score.Miss, 100*s.score.FalseAlarm, 100*s.score.Confusion,
		number(l.PerSpeaker()), l.Labels, l.Speakers, l.Lost, l.Speakers, float64(l.CountError)/float64(s.files),
		100*float64(s.exact)/float64(s.files), 100*float64(s.close)/float64(s.files), l.Kept, l.Returns,
		number(l.SwitchesPerMinute()), number(percentile(s.lags, 50)), number(percentile(s.lags, 95)), s.factor())
}

func (s summary) factor() float64 {
	if s.seconds == 0 {
		return 0
	}
	return s.cpu.Seconds() / s.seconds
}

func number(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.2f", x)
}

// figures are a row of a table as JSON. Rates are fractions, times seconds.
type figures struct {
	Name          string    `json:"name"`
	Files         int       `json:"files"`
	Seconds       float64   `json:"seconds"`
	DER           float64   `json:"der"`
	Miss          float64   `json:"miss"`
	FalseAlarm    float64   `json:"false_alarm"`
	Confusion     float64   `json:"confusion"`
	Total         float64   `json:"total"`
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

func figuresOf(name string, s summary) figures {
	finite := func(x float64) *float64 {
		if math.IsNaN(x) {
			return nil
		}
		return &x
	}
	return figures{
		Name: name, Files: s.files, Seconds: s.seconds,
		DER: s.score.DER, Miss: s.score.Miss, FalseAlarm: s.score.FalseAlarm, Confusion: s.score.Confusion, Total: s.score.Total,
		Split: finite(s.labels.PerSpeaker()), Labels: s.labels.Labels, Speakers: s.labels.Speakers, Lost: s.labels.Lost,
		CountError: float64(s.labels.CountError) / float64(s.files),
		CountExact: float64(s.exact) / float64(s.files), CountWithin1: float64(s.close) / float64(s.files), Returns: s.labels.Returns, Kept: s.labels.Kept,
		Switches: finite(s.labels.SwitchesPerMinute()),
		LagP50:   finite(percentile(s.lags, 50)), LagP95: finite(percentile(s.lags, 95)), LagMax: finite(percentile(s.lags, 100)),
		RTF: s.factor(),
	}
}

// jsonTable is a table as JSON.
type jsonTable struct {
	Latency float64   `json:"latency"`
	Engine  string    `json:"engine"`
	Weights string    `json:"weights"`
	Sets    []figures `json:"sets"`
	All     figures   `json:"all"`
}

func jsonTables(tables []table) (list []jsonTable) {
	for _, t := range tables {
		b := jsonTable{Latency: t.latency.Seconds(), Engine: engine.Version(), Weights: engine.WeightsVersion()}
		var all []outcome
		for _, r := range t.results {
			f := figuresOf(r.set, sum(r.outcomes))
			for _, o := range r.outcomes {
				f.EachRecording = append(f.EachRecording, figuresOf(o.name, sum([]outcome{o})))
			}
			b.Sets = append(b.Sets, f)
			all = append(all, r.outcomes...)
		}
		b.All = figuresOf("all", sum(all))
		list = append(list, b)
	}
	return list
}
