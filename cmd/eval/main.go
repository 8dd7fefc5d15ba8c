// Command eval scores the engine on recordings with a reference and prints one
// table for each latency. `make eval` runs it.
//
// Every recording is processed as in the program: decoded, divided into chunks of
// 100 ms and pushed into an engine of its own. The events are folded into turns
// and scored against the reference.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"hubbub/localserver/engine"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
	"hubbub/protocol/hint"
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
	if next := hint.Of(err); next != "" {
		fmt.Fprintln(os.Stderr, next)
	}
	if _, usage := errors.AsType[*usageError](err); usage {
		os.Exit(2)
	}
	os.Exit(1)
}

// settings are the values of the flags.
type settings struct {
	dir       string
	sets      []string
	allSets   bool // must exist, because --sets names them
	ref       string
	wav       string
	latencies []time.Duration
	gain      float64 // decibels
	jobs      int
	perFile   bool
	json      bool
	against   string

	set, values    []string
	windowsFile    string // --windows
	decoderDir     string // --decoder
	program        string
	offline, known bool

	enrolment, people string
	meetings          []string
	thresholds        []float64
	calibrate         bool
	cohort            string
}

// flags are all flags. They set s, and the texts of --latency.
func (s *settings) flags(latencies *[]string) *pflag.FlagSet {
	f := pflag.NewFlagSet("eval", pflag.ContinueOnError)
	f.SortFlags = false
	f.StringVar(&s.dir, "dir", "../shared/speech", "folder of the sets")
	f.StringSliceVar(&s.sets, "sets", []string{"real-dev", "sim-dev", "sim-fluent", "tts", "real-calls"}, "folders in it, each with X.rttm, X.uem and X.flac, .wav or .mp3")
	f.StringVar(&s.ref, "ref", "", "score this recording instead of the sets: its RTTM, with a UEM beside it if only parts are annotated")
	f.StringVar(&s.wav, "wav", "", "and its audio")
	f.StringSliceVar(latencies, "latency", []string{"1"}, "latencies in seconds, one table each")
	f.Float64Var(&s.gain, "gain", 0, "decibels by which the audio is amplified, for the engine alone")
	f.IntVar(&s.jobs, "jobs", 1, "recordings at once")
	f.BoolVar(&s.perFile, "per-file", false, "a line for each recording as well")
	f.BoolVar(&s.json, "json", false, "print JSON")
	f.StringVar(&s.against, "against", "", "file that --json has written: print the differences by recording, or of names by meeting, with their standard errors as well")
	f.StringVar(&s.program, "program", "", "run this program (bin/hubbub) on each recording, decoder, TLS and server included, instead of the engine alone")
	f.BoolVar(&s.offline, "offline", false, "run the second pass over whole recordings instead of the live engine; --set then changes its parameters")
	f.BoolVar(&s.known, "known", false, "and tell it the number of speakers of the reference")
	f.StringSliceVar(&s.set, "set", nil, "for tuning: NAME=NUMBER, a parameter of the clustering")
	f.StringSliceVar(&s.values, "sweep", nil, "for tuning: NAME=NUMBER/NUMBER/..., tries each, and prints the difference by recording with its standard error")
	f.StringVar(&s.windowsFile, "windows", "", "for tuning: file that keeps the output of the networks for the next run")
	f.StringVar(&s.decoderDir, "decoder", "", "for training: folder to write what the decoder (with --offline that of the second pass) sees of each recording to, instead of scoring")
	f.StringVar(&s.enrolment, "enrolment", "", "measure voiceprints: folder that localserver/engine/training/enrolment.py has made")
	f.StringSliceVar(&s.meetings, "meetings", nil, "with --enrolment: folders of its meetings in other recording conditions")
	f.StringVar(&s.people, "people", "", "with --enrolment: its enrolment speech in another recording condition")
	f.Float64SliceVar(&s.thresholds, "threshold", []float64{100 * voiceprint.DefaultThreshold}, "with --enrolment: confidences that a match needs, 0 to 100, one row each")
	f.BoolVar(&s.calibrate, "calibrate", false, "with --enrolment: learn the calibration of matches instead of measuring")
	f.StringVar(&s.cohort, "cohort", "", "for new weights: file to write the cohort of the voiceprints to, of the people in --people, instead of measuring")
	return f
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	var latencies []string
	f := s.flags(&latencies)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprintf(stderr, "usage: eval [flags]\n\n%s\n%s", f.FlagUsages(), legend)
	}
	if err := f.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return s, err
		}
		return s, usagef("eval --help lists the flags", "%w", err)
	}
	if f.NArg() > 0 {
		return s, usagef("recordings are given by --ref and --wav", "unknown argument %q", f.Arg(0))
	}
	for _, text := range latencies {
		d, err := latency(text)
		if err != nil {
			return s, err
		}
		s.latencies = append(s.latencies, d)
	}
	s.allSets = f.Changed("sets")
	return s, s.check(f)
}

// modes are what else than scoring the engine eval does, by the flag that asks for it, with the flags that have an
// effect then. Where several of these flags are given, the first one here decides.
var modes = []struct{ flag, with string }{
	{"cohort", "people"},
	{"calibrate", "enrolment meetings people gain jobs windows"},
	{"enrolment", "meetings people threshold latency gain jobs json against windows"},
	{"decoder", "dir sets ref wav gain jobs offline"},
	{"program", "dir sets ref wav latency jobs per-file json against"},
	{"offline", "dir sets ref wav gain jobs per-file json against known set windows"},
	{"sweep", "dir sets ref wav latency gain jobs set windows"},
	{"set", "dir sets ref wav latency gain jobs windows"},
	{"", "dir sets ref wav latency gain jobs per-file json against"},
}

// checkEffect rejects flags that have no effect beside the others.
func checkEffect(f *pflag.FlagSet) error {
	var given []string
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Value.String() != flag.DefValue {
			given = append(given, flag.Name)
		}
	})
	var mode struct{ flag, with string }
	for _, mode = range modes {
		if mode.flag == "" || slices.Contains(given, mode.flag) {
			break
		}
	}
	for _, name := range given {
		switch {
		case name == mode.flag || slices.Contains(strings.Fields(mode.with), name):
		case mode.flag != "":
			return usagef("leave one of them out", "--%s has no effect with --%s", name, mode.flag)
		default:
			var with []string
			for _, m := range modes {
				if slices.Contains(strings.Fields(m.with), name) {
					with = append(with, "--"+m.flag)
				}
			}
			return usagef("it goes with "+strings.Join(with, ", "), "--%s has no effect alone", name)
		}
	}
	return nil
}

// check rejects flags that exclude or need each other.
func (s *settings) check(f *pflag.FlagSet) error {
	if err := checkEffect(f); err != nil {
		return err
	}
	switch {
	case (s.ref == "") != (s.wav == ""):
		return usagef("give both --ref X.rttm and --wav X.wav", "a recording needs its reference")
	case s.against != "" && s.json:
		return usagef("leave one of them out", "--against prints a table, and --json only JSON")
	case s.calibrate && s.enrolment == "":
		return usagef("add --enrolment DIR", "--calibrate is for meetings of enrolled people")
	case s.cohort != "" && s.people == "":
		return usagef("add --people DIR, the speech of many people", "--cohort needs speech")
	case s.jobs < 1:
		return usagef("choose 1 or more", "%d jobs are not possible", s.jobs)
	case len(s.latencies) == 0, len(s.latencies) > 1 && (s.tunes() || s.enrolment != ""):
		return usagef("give one, such as --latency 1", "%d latencies are not possible", len(s.latencies))
	}
	return nil
}

// tunes reports whether parameters of the clustering are to be tried.
func (s *settings) tunes() bool { return !s.offline && len(s.set)+len(s.values) > 0 }

// latency reads seconds ("0.5") and durations ("500ms").
func latency(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil {
		return 0, usagef("give seconds, for instance --latency 0.5,1,2,5", "latency %q is not a number", text)
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
	var sets []set
	if s.enrolment == "" && s.cohort == "" {
		sets, err = s.find()
	}
	if err != nil {
		return err
	}
	var earlier []table
	if s.against != "" && s.enrolment == "" {
		if earlier, err = readEarlier[[]table](s.against); err != nil {
			return err
		}
	}
	ev := &evaluator{settings: s}
	if file, ok := stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		ev.progress = stderr
	}
	switch {
	case s.cohort != "":
		return ev.writeCohort(ctx, stdout)
	case s.enrolment != "":
		return ev.measureEnrolment(ctx, stdout)
	case s.decoderDir != "":
		return ev.exportDecoder(ctx, sets)
	case s.tunes():
		return ev.sweep(ctx, sets, stdout)
	}
	tables, err := ev.measure(ctx, sets)
	if err != nil {
		return err
	}
	if s.json {
		return protocol.WriteJSON(stdout, tables)
	}
	if err := writeText(stdout, tables, s); err != nil || s.against == "" {
		return err
	}
	return writeAgainst(stdout, tables, earlier)
}

func (s settings) find() ([]set, error) {
	if s.ref != "" {
		r, err := readRecording(s.wav, s.ref)
		return []set{{name: r.name, recordings: []recording{r}}}, err
	}
	sets, err := findSets(s.dir, s.sets, s.allSets)
	if err == nil && s.decoderDir != "" {
		err = checkNames(sets)
	}
	return sets, err
}

// usageError is a mistake in the flags.
type usageError struct{ err error }

func (u *usageError) Error() string { return u.err.Error() }
func (u *usageError) Unwrap() error { return u.err }

func usagef(next, format string, args ...any) error {
	return &usageError{hint.Errorf(next, format, args...)}
}
