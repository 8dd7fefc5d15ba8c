package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"hubbub/capture"
)

const (
	// maxLoadStreams bounds what one process can carry without running out of
	// sockets under common limits.
	maxLoadStreams = 10000
	// politeStreams is how many streams may be aimed at a machine that is not
	// this one without saying so twice.
	politeStreams = 8
	// startSpread is the time over which the streams are started.
	startSpread = time.Second
)

// loadFlags is the command line of `hubbub load`.
type loadFlags struct {
	liveFlags
	streams   count
	yesRemote bool
	format    choice
}

func newLoad(a *App) *cobra.Command {
	f := &loadFlags{
		liveFlags: liveFlags{pace: choice{value: "realtime"}, engine: defaultEngineFlags()},
		streams:   count{1, 1, maxLoadStreams},
		format:    choice{"text", []string{"text", "json"}},
	}
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Put a server under load: many streams in real time",
		Long: `Send a file N times at once, each stream paced in real time like a microphone,
and measure how far events lag behind the audio that they are about. Without
--server the built-in server carries the load.`,
		Example: `  hubbub load --streams 20 --input meeting.wav
  hubbub load --streams 8 --input meeting.wav --server https://diarization.example --output json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.complete(cmd); err != nil {
				return err
			}
			return a.load(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VarP(&f.streams, "streams", "n", "`N` streams at once, started within a second")
	flags.StringVarP(&f.input, "input", "i", "", "`FILE` that every stream sends: WAV, FLAC or MP3, or - for standard input")
	flags.StringVar(&f.server, "server", "", "`URL` of a remote service (HUBBUB_SERVER); default: the built-in server")
	flags.StringVar(&f.apiKey, "api-key", "", "`KEY` for the remote service (HUBBUB_API_KEY)")
	flags.StringVar(&f.ca, "ca", "", "PEM `FILE` of the authority to trust for the remote service")
	flags.BoolVar(&f.insecure, "insecure", false, "do not check the remote service's certificate")
	flags.BoolVar(&f.yesRemote, "yes-remote", false, fmt.Sprintf("send more than %d streams to another machine", politeStreams))
	f.engine.add(flags)
	flags.VarP(&f.format, "output", "o", "`FORMAT`: text or json")
	_ = cmd.MarkFlagFilename("input", "wav", "flac", "mp3")
	_ = cmd.MarkFlagFilename("ca", "pem", "crt")
	completeChoices(cmd, "output", f.format.allowed)
	return cmd
}

// complete refuses what cannot or must not be.
func (f *loadFlags) complete(cmd *cobra.Command) error {
	switch {
	case f.input == "":
		return &usageError{"hubbub load needs an input", "Give a file with --input FILE."}
	case f.input == "mic" || strings.HasPrefix(f.input, "mic:"):
		return &usageError{"a microphone cannot be sent many times", "Give a file with --input FILE."}
	}
	if err := f.liveFlags.complete(cmd); err != nil {
		return err
	}
	if f.server != "" && f.tooMany(f.server) {
		return &usageError{
			fmt.Sprintf("%d streams at once are an attack on a service that does not expect them", f.streams.value),
			fmt.Sprintf("If the service's operator agrees, add --yes-remote; up to %d streams, or a server on this machine, need none.", politeStreams),
		}
	}
	return nil
}

// tooMany tells whether the load must not go to an address: it is many
// streams, to another machine, and the user did not insist.
func (f *loadFlags) tooMany(address string) bool {
	u, err := url.Parse(address)
	if err != nil || f.yesRemote || f.streams.value <= politeStreams {
		return false // an address that is none fails later, with its own reason
	}
	ip := net.ParseIP(u.Hostname())
	return !strings.EqualFold(u.Hostname(), "localhost") && (ip == nil || !ip.IsLoopback())
}

// load decodes the file once, runs all streams to their end and reports.
func (a *App) load(ctx context.Context, f *loadFlags) error {
	samples, err := decodeAll(ctx, capture.Spec{Input: f.input, Stdin: a.Stdin})
	if err != nil {
		return err
	}
	f.maxStreams = f.streams.value
	server, err := a.connect(ctx, &f.liveFlags)
	if err != nil {
		return err
	}
	defer server.close()

	tally := newTally(f.streams.value)
	ended := make(chan struct{})
	var progress sync.WaitGroup
	if isTerminal(a.Stderr) {
		progress.Go(func() { showLoad(a.Stderr, tally, ended) })
	}
	var streams sync.WaitGroup
	begin := time.Now()
	for i := range f.streams.value {
		streams.Go(func() {
			s := loadStream{server: server, samples: samples, tally: tally, refuse: f.tooMany}
			at := begin.Add(startSpread * time.Duration(i) / time.Duration(f.streams.value))
			tally.ended(s.run(ctx, at))
		})
	}
	streams.Wait()
	close(ended)
	progress.Wait()

	report := tally.report()
	if err := report.print(a.Stdout, f.format.value); err != nil {
		return err
	}
	if cause := tally.cause(); cause != nil {
		return &failure{fmt.Errorf("%d of %d streams failed, the first one: %w", report.Failed, report.Streams, cause),
			hintOf(cause, "Try fewer streams, or see the server's log.")}
	}
	return nil
}

// decodeAll reads a source to its end: 16 kHz, mono.
func decodeAll(ctx context.Context, spec capture.Spec) ([]float32, error) {
	src, err := capture.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	var all []float32
	buf := make([]float32, capture.SampleRate)
	for {
		n, err := src.Read(ctx, buf)
		all = append(all, buf[:n]...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, &failure{errors.New("the input holds no audio"), "Give a file with some seconds of speech."}
	}
	return all, nil
}

// hintOf is what an error says to do next, or else.
func hintOf(err error, otherwise string) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) && h.Hint() != "" {
		return h.Hint()
	}
	return otherwise
}

// loadReport is what `hubbub load --output json` prints.
type loadReport struct {
	Streams   int   `json:"streams"`
	Completed int   `json:"completed"`
	Failed    int   `json:"failed"`
	Events    int64 `json:"events"`
	// Lag is how long after its audio an event came, in milliseconds; zeros
	// when there was no event.
	Lag struct {
		P50 float64 `json:"p50"`
		P95 float64 `json:"p95"`
		P99 float64 `json:"p99"`
	} `json:"lag_ms"`
	DroppedChunks int64 `json:"dropped_chunks"`

	open int // streams, while it is not the last report
}

func (r loadReport) print(w io.Writer, format string) error {
	if format == "json" {
		return json.NewEncoder(w).Encode(r)
	}
	_, err := fmt.Fprintf(w, "streams    %d: %d completed, %d failed\nevents     %d\nlag        p50 %.0f ms, p95 %.0f ms, p99 %.0f ms\ndropped    %d chunks\n",
		r.Streams, r.Completed, r.Failed, r.Events, r.Lag.P50, r.Lag.P95, r.Lag.P99, r.DroppedChunks)
	return err
}

// showLoad redraws one line a second until ended, and leaves none behind.
func showLoad(w io.Writer, t *tally, ended <-chan struct{}) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			r := t.report()
			fmt.Fprintf(w, "\r%d open, %d completed, %d failed, %d events, p99 lag %.0f ms, %d chunks dropped\x1b[K",
				r.open, r.Completed, r.Failed, r.Events, r.Lag.P99, r.DroppedChunks)
		case <-ended:
			fmt.Fprint(w, "\r\x1b[K")
			return
		}
	}
}
