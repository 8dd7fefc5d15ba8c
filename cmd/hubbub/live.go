package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"hubbub/capture"
	"hubbub/protocol"
)

// liveFlags is the command line of `hubbub live`.
type liveFlags struct {
	input    string
	server   string
	apiKey   string
	ca       string
	insecure bool
	displayFlags
	pace      choice
	engine    engineFlags
	record    string
	reconnect span
	notes     protocol.Annotations // names that the settings give

	maxStreams int           // of the built-in server; 0 = its default
	counted    bool          // the built-in server bounds requests as others do
	timeout    time.Duration // of one step towards a service; 0 = the client's default
	tap        protocol.Tap  // is told of everything on the wire; nil = nobody looks
}

func newLive(a *App) *cobra.Command {
	f := &liveFlags{
		displayFlags: displayFlags{output: choice{"", []string{"tui", "lines", "json", "events", "rttm", "wire"}}},
		pace:         choice{"realtime", []string{"realtime", "fast"}},
		engine:       defaultEngineFlags(),
		reconnect:    newReconnect(),
	}
	cmd := &cobra.Command{
		Use:   "live",
		Short: "Show who is talking, live (the default command)",
		Long: `Listen to the microphone, a file or standard input, and show every speaker's
turns while people talk. Without --server the built-in server does the work;
nothing leaves the machine.`,
		Example: `  hubbub live
  hubbub live --input meeting.wav --output rttm --pace fast > meeting.rttm
  hubbub live --input mic:USB --record monday
  arecord -f FLOAT_LE -r 16000 -c 1 -t raw | hubbub live --input -`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.complete(cmd); err != nil {
				return err
			}
			return a.live(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.input, "input", "i", "", "`SOURCE`: mic, mic:NAME, a WAV, FLAC or MP3 file, or - for standard input (default: the microphone, or the demo where there is none)")
	flags.StringVar(&f.server, "server", "", "`URL` of a remote service (HUBBUB_SERVER); default: the built-in server")
	flags.StringVar(&f.apiKey, "api-key", "", "`KEY` for the remote service; better in HUBBUB_API_KEY or the key ring (hubbub config set-key), which others cannot read")
	flags.StringVar(&f.ca, "ca", "", "PEM `FILE` of the authority to trust for the remote service")
	flags.BoolVar(&f.insecure, "insecure", false, "do not check the remote service's certificate")
	flags.Var(&f.pace, "pace", "`PACE`: realtime, or fast: a file as fast as the built-in engine takes it")
	flags.Var(&f.reconnect, "reconnect", "`TIME` that a lost stream is tried to be resumed, 0 = not at all; without a screen 15s if not given")
	f.engine.add(flags)
	flags.StringVar(&f.record, "record", "", "`DIR` to keep the session in: audio.wav, events.ndjson, turns.rttm and what replay needs")
	f.displayFlags.add(cmd)
	_ = cmd.MarkFlagFilename("input", "wav", "flac", "mp3")
	_ = cmd.MarkFlagFilename("ca", "pem", "crt")
	_ = cmd.MarkFlagDirname("record")
	completeChoices(cmd, "pace", f.pace.allowed)
	return cmd
}

// complete fills in the environment and refuses what cannot go together.
func (f *liveFlags) complete(cmd *cobra.Command) error {
	file, err := settle(cmd)
	if err != nil {
		return err
	}
	if f.notes, err = file.annotations(); err != nil {
		return err
	}
	help := fmt.Sprintf("Run '%s --help' for the flags.", cmd.CommandPath())
	switch {
	case f.server != "" && f.pace.value == "fast":
		return &usageError{"--pace fast works with the built-in server only: a service refuses audio that is ahead of real time",
			"Leave out --pace, or choose the built-in server with --server \"\"."}
	case f.server == "" && (cmd.Flags().Changed("ca") || cmd.Flags().Changed("insecure")) && (f.ca != "" || f.insecure):
		return &usageError{"--ca and --insecure are for a remote service", "Give its address with --server URL, or leave them out."}
	case f.ca != "" && f.insecure:
		return &usageError{"--ca and --insecure exclude each other", help}
	}
	if err := f.displayFlags.check(cmd); err != nil {
		return err
	}
	return f.service(cmd)
}

// live is the way of the audio, in order: a source is cut into chunks, the
// wire takes them to a server, the server's events are folded into a timeline,
// and a display draws it. Teardown runs the other way round.
func (a *App) live(ctx context.Context, f *liveFlags) (err error) {
	f.progress = f.pace.value == "fast"
	display, err := a.chooseDisplay(f.displayFlags)
	if err != nil {
		return err
	}
	pace, err := capture.ParsePace(f.pace.value)
	if err != nil {
		return err
	}
	ctx, look := a.lookAtWire(ctx, display)
	defer func() { err = firstOf(look.close(), err) }()
	f.tap = look.tap
	source, err := capture.Open(ctx, capture.Spec{Input: f.input, Stdin: a.Stdin})
	if err != nil {
		return err
	}
	server, err := a.connect(ctx, f)
	if err != nil {
		return firstOf(err, source.Close())
	}
	defer server.close()
	input, endInput := context.WithCancel(ctx)
	defer endInput()
	wire, err := server.OpenLink(ctx, protocol.LinkOptions{
		Limit: f.reconnectFor(display), Live: source.Info().Kind == capture.Mic, Unpaced: f.server == "" && pace == capture.Fast,
		Latency: server.latency, Hurry: input.Done(),
	})
	if err != nil {
		return firstOf(err, source.Close())
	}
	defer wire.Close()
	notes := protocol.NewAnnotationsStore(f.notes)
	record, err := openRecording(f.record, source.Info(), about(source.Info(), server.name, server.latency, pace), notes)
	if err != nil {
		return firstOf(err, source.Close())
	}

	chunks := capture.Start(input, source, capture.StreamOptions{Pace: pace, Tap: record.audio})
	look.setQueue(chunks.Queued)
	s := &session{
		source: source.Info(), server: server.name, latency: server.latency,
		streamID: watchable(server, wire),
		chunks:   chunks, endInput: endInput, wire: wire,
		timeline: protocol.NewTimeline(), record: record, display: display, notes: notes,
	}
	err = s.run(ctx)
	return firstOf(err, record.close(), record.ended(s.gaps()))
}

// watchable gives the id by which others can watch the newest stream; "" where
// nobody can.
func watchable(server *connection, wire *protocol.Link) func() string {
	return func() string {
		if !server.others {
			return ""
		}
		return protocol.Clean(wire.ID(), 64)
	}
}

// completeChoices offers a flag's words to the shell.
func completeChoices(cmd *cobra.Command, flag string, words []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}
