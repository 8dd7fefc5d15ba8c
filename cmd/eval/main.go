// Command eval measures the engine over recordings with a known truth and
// prints one table for each latency. It is what `make eval` runs.
//
// Every recording takes the way it takes in the program: decoded, cut into
// chunks of 100 ms, pushed into an engine of its own, the events folded into
// turns and scored against the reference.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"hubbub/localserver/engine"
	"hubbub/localserver/engine/evaluation"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil || errors.Is(err, pflag.ErrHelp):
		return
	case ctx.Err() != nil:
		stop()
		os.Exit(130)
	}
	fmt.Fprintln(os.Stderr, "eval:", err)
	var hint interface{ Hint() string }
	if errors.As(err, &hint) {
		fmt.Fprintln(os.Stderr, hint.Hint())
	}
	var usage *usageError
	if errors.As(err, &usage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// settings are what the flags say.
type settings struct {
	dir         string
	sets        []string
	ref         string
	wav         string
	uem         string
	latencies   []time.Duration
	maxSpeakers int
	collar      float64
	skipOverlap bool
	jobs        int
	perFile     bool
	json        bool
	out         string
	profile     string

	set, values, keep []string
	hop, rounds       int
	heard, pieces     string
	program           string
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	var latencies []string
	f := pflag.NewFlagSet("eval", pflag.ContinueOnError)
	f.SetOutput(stderr)
	f.SortFlags = false
	f.StringVar(&s.dir, "dir", "../shared/speech", "folder of the sets")
	f.StringSliceVar(&s.sets, "sets", []string{"real-dev", "sim-dev", "sim-fluent", "tts"}, "folders in it, each with X.rttm, X.uem and X.flac, .wav or .mp3")
	f.StringVar(&s.ref, "ref", "", "score one recording of your own instead: its RTTM")
	f.StringVar(&s.wav, "wav", "", "and its audio")
	f.StringVar(&s.uem, "uem", "", "and, if only parts of it are annotated, its UEM")
	f.StringSliceVar(&latencies, "latency", []string{"1"}, "latencies in seconds, one table each")
	f.IntVar(&s.maxSpeakers, "max-speakers", engine.MaxSpeakers, "labels at most")
	f.Float64Var(&s.collar, "collar", 0, "seconds on each side of a reference boundary that are not scored")
	f.BoolVar(&s.skipOverlap, "skip-overlap", false, "do not score overlapping speech")
	f.IntVar(&s.jobs, "jobs", 1, "recordings at once")
	f.BoolVar(&s.perFile, "per-file", false, "a line for each recording as well")
	f.BoolVar(&s.json, "json", false, "print JSON")
	f.StringVar(&s.program, "program", "", "run this program (bin/hubbub) on each recording, decoder, TLS and server included, instead of the engine alone")
	f.StringVar(&s.out, "out", "", "folder to write the hypotheses to, as LATENCY/X.rttm")
	f.StringVar(&s.profile, "cpuprofile", "", "file to write a CPU profile to")
	f.StringSliceVar(&s.set, "set", nil, "for tuning: NAME=NUMBER, a threshold of the clustering")
	f.StringSliceVar(&s.values, "sweep", nil, "for tuning: NAME=NUMBER/NUMBER/..., tries each")
	f.IntVar(&s.rounds, "search", 0, "for tuning: rounds of a search for better thresholds, 14 tries each, --jobs at once")
	f.StringSliceVar(&s.keep, "keep", nil, "for tuning: thresholds that --search leaves alone")
	f.IntVar(&s.hop, "hop", 2, "for tuning: tenths of a second between windows")
	f.StringVar(&s.heard, "heard", "", "for tuning: file that keeps what the networks heard, for the next run with the same weights")
	f.StringVar(&s.pieces, "pieces", "", "for training: file to write pieces of speech to, with their embeddings, and nothing else")
	f.Usage = func() {
		fmt.Fprintf(stderr, "usage: eval [flags]\n\n%s\n%s", f.FlagUsages(), legend)
	}
	// One dash does as well, as in Go's own tools.
	args = slices.Clone(args)
	for i, a := range args {
		if len(a) > 2 && a[0] == '-' && a[1] != '-' {
			args[i] = "-" + a
		}
	}
	if err := f.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return s, err
		}
		return s, usagef("eval --help lists the flags", "%w", err)
	}
	switch {
	case f.NArg() > 0:
		return s, usagef("recordings are given by --ref and --wav", "unknown argument %q", f.Arg(0))
	case (s.ref == "") != (s.wav == ""):
		return s, usagef("give both --ref X.rttm and --wav X.wav", "a recording needs its reference")
	case s.uem != "" && s.ref == "":
		return s, usagef("the sets bring their own; use it with --ref and --wav", "a UEM is for a recording of your own")
	case s.program != "" && (s.tunes() || s.pieces != ""):
		return s, usagef("leave --program out", "tuning and training happen in this process")
	case s.pieces != "" && s.tunes():
		return s, usagef("do one after the other", "--pieces comes without thresholds")
	case s.jobs < 1:
		return s, usagef("choose 1 or more", "%d jobs are not possible", s.jobs)
	}
	for _, text := range latencies {
		d, err := latency(text)
		if err != nil {
			return s, err
		}
		s.latencies = append(s.latencies, d)
	}
	return s, nil
}

// tunes tells whether thresholds are to be tried.
func (s *settings) tunes() bool { return len(s.set)+len(s.values)+s.rounds > 0 }

// latency reads seconds ("0.5") and durations ("500ms").
func latency(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil {
		return 0, usagef("give seconds, for instance --latency 0.5,1,2,5", "latency %q is no number", text)
	}
	if err := (engine.Config{Latency: d}).Validate(); err != nil {
		return 0, &usageError{err}
	}
	return d, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if err := (engine.Config{MaxSpeakers: s.maxSpeakers}).Validate(); err != nil {
		return &usageError{err}
	}
	sets, err := s.find()
	if err != nil {
		return err
	}
	if s.profile != "" {
		file, err := os.Create(s.profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}

	m := &meter{
		settings: s,
		options:  evaluation.Options{Collar: s.collar, SkipOverlap: s.skipOverlap},
	}
	if file, ok := stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		m.progress = stderr
	}
	if s.pieces != "" {
		return m.writePieces(ctx, sets)
	}
	if s.tunes() {
		return m.sweep(ctx, sets, stdout)
	}
	tables, err := m.measure(ctx, sets)
	if err != nil {
		return err
	}
	if s.json {
		return writeJSON(stdout, tables)
	}
	return writeText(stdout, tables, s)
}

func (s settings) find() ([]set, error) {
	if s.ref != "" {
		own, err := ownRecording(s.ref, s.wav, s.uem)
		return []set{own}, err
	}
	return findSets(s.dir, s.sets)
}

// hinted is an error that also says what to do next.
type hinted struct {
	err  error
	hint string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }
func (h *hinted) Hint() string  { return h.hint }

// usageError is a mistake in the flags.
type usageError struct{ err error }

func (u *usageError) Error() string { return u.err.Error() }
func (u *usageError) Unwrap() error { return u.err }

func usagef(hint, format string, args ...any) error {
	return &usageError{&hinted{fmt.Errorf(format, args...), hint}}
}
