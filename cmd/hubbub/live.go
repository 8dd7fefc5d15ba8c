package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/cmd/hubbub/internal/session"
	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/cmd/hubbub/internal/voices"
	"hubbub/localserver"
	"hubbub/protocol"
	"hubbub/protocol/client"
	"hubbub/protocol/hint"
	"hubbub/protocol/words"
)

// liveFlags are the flags of `hubbub live`.
type liveFlags struct {
	serviceFlags
	engineFlags
	displayFlags
	input     inputFlag
	channels  channelsFlag
	pace      choice
	record    string
	reconnect durationFlag
	voicesFlags
	// sendVoices sends the stored voiceprints to a remote service.
	sendVoices bool
	wordsFlags
	rooms bool // every channel may have several speakers
}

func newLive(a *App) *cobra.Command {
	f := &liveFlags{pace: choice{"realtime", []string{"realtime", "fast"}}, reconnect: defaultReconnect()}
	cmd := &cobra.Command{
		Use:   "live",
		Short: "Show who is talking, live (the default command)",
		Long: `Read audio from the microphone, a file or standard input, and display the turns
of each speaker while people talk. Without --server the built-in server is used,
and no audio leaves the machine unless --words names a recogniser elsewhere.`,
		Example: `  hubbub live
  hubbub live --input meeting.wav --output rttm --pace fast > meeting.rttm
  hubbub live --input mic:USB --record monday
  hubbub live --input mic --input speakers
  hubbub live --input call.wav --channels each
  arecord -f FLOAT_LE -r 16000 -c 1 -t raw | hubbub live --input -`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmp.Or(f.complete(cmd), f.input.check(), a.checkInput(f.input.first)); err != nil {
				return err
			}
			if f.server != "" {
				a.noEffect(cmd, "on a remote service", "latency")
				if f.channels.value != capture.Each {
					a.noEffect(cmd, "on a remote service", "max-speakers")
				}
			}
			a.noEffectAlone(cmd, f.voicesFlags, f.wordsFlags)
			return a.live(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.VarP(&f.input, "input", "i", "audio `SOURCE`: mic, mic:NAME, a recorder such as parec or parec:NAME, speakers (what the machine plays), a WAV, FLAC or MP3 file, - for standard input, or demo for the built-in conversation (default: the microphone; without one, the demo). Twice, as mic and speakers: two devices, whose speakers get labels of their own")
	addChannels(cmd, &f.channels, "or up to N with --max-speakers N")
	f.serviceFlags.add(cmd)
	f.pace.add(cmd, "pace", "", "`PACE`: realtime, or fast: a file as fast as the built-in engine can process it")
	flags.Var(&f.reconnect, "reconnect", "longest `TIME` to try to reconnect a lost stream, 0 = never; 15s by default without a full-screen display")
	f.engineFlags.add(flags)
	flags.Var((*nonEmpty)(&f.record), "record", "record the session into `DIR`: audio.wav, events.ndjson, turns.rttm, and the files that replay needs")
	f.voicesFlags.add(flags)
	flags.BoolVar(&f.sendVoices, "send-voices", false, "with --voices and --server: send the voiceprints to the remote service")
	f.wordsFlags.add(flags, "show what is said, from your `RECOGNISER`: "+recogniserHelp+", or service: the words of the remote service")
	f.displayFlags.add(cmd, "tui", "lines", "json", "events", "rttm", "wire")
	_ = cmd.MarkFlagFilename("input", "wav", "flac", "mp3")
	_ = cmd.MarkFlagDirname("record")
	return cmd
}

// inputFlag is the value of --input: a source, or two devices.
type inputFlag struct{ first, second string }

func (f *inputFlag) Type() string { return "source" }

func (f *inputFlag) String() string {
	if f.second != "" {
		return f.first + " " + f.second
	}
	return f.first
}

func (f *inputFlag) Set(text string) error {
	switch {
	case f.first == "":
		f.first = text
	case f.second == "":
		f.second = text
	default:
		return errors.New("two inputs are the most")
	}
	return nil
}

// check rejects two inputs that are not two devices.
func (f *inputFlag) check() error {
	if f.second == "" || f.first != f.second && capture.IsDevice(f.first) && capture.IsDevice(f.second) {
		return nil
	}
	return usage.Error("two inputs must be two devices", "Give --input mic --input speakers, or one input.")
}

func (f *liveFlags) complete(cmd *cobra.Command) error {
	if err := f.displayFlags.complete(cmd); err != nil {
		return err
	}
	f.rooms = f.input.second != "" || cmd.Flags().Changed("max-speakers")
	if f.input.first == "" && cmd.Flags().Changed("input") {
		return usage.Error("--input is empty", "Name a source, or leave it out for the default.")
	}
	if f.server != "" && f.fast() {
		return usage.Error("--pace fast works with the built-in server only: a service refuses audio that is ahead of real time",
			"Leave out --pace, or choose the built-in server with --server \"\".")
	}
	if f.wordsOfService() && f.server == "" {
		return usage.Error("--words service needs a remote service", "Give its address with --server, or your own recogniser with --words.")
	}
	return f.serviceFlags.complete(cmd)
}

func (f *liveFlags) wordsOfService() bool { return f.words == wordsOfService }

// checkInput rejects standard input if it is a terminal: it would be waited for,
// on a screen without keys.
func (a *App) checkInput(input string) error {
	if input != "-" || !session.IsTerminal(a.Stdin) {
		return nil
	}
	return usage.Error("--input -: standard input is a terminal, not audio",
		"Pipe audio into hubbub, such as: ffmpeg -i meeting.m4a -f wav - | hubbub live --input -")
}

func (f *liveFlags) recognises() bool { return f.voices && (f.server == "" || f.sendVoices) }

func (f *liveFlags) fast() bool { return f.pace.value == "fast" }

// ownRecogniser is the recogniser of the user; nil = there is none, or the service
// is asked for words.
func (f *liveFlags) ownRecogniser() (words.Recogniser, error) {
	if f.wordsOfService() {
		return nil, nil
	}
	return f.recogniser(words.LiveTimeout)
}

// liveDisplay is the display, which shows where the voices are that are recognised.
func (a *App) liveDisplay(f *liveFlags) (session.Display, error) {
	if f.fast() {
		f.options.Progress = a.progress
	}
	if f.recognises() {
		store, err := voices.Default()
		if err != nil {
			return nil, err
		}
		f.options.Screen.Voices = store.Dir
	}
	return a.newDisplay(f.displayFlags)
}

// unattendedReconnect is how long a lost stream is tried without a screen:
// enough for a service that restarts. A script must not wait longer.
const unattendedReconnect = 15 * time.Second

func defaultReconnect() durationFlag {
	return newDuration(client.DefaultReconnect, 0, 24*time.Hour)
}

// reconnectLimit is how long a session on a display tries to reconnect.
func reconnectLimit(f durationFlag, d session.Display) time.Duration {
	if !d.Properties().Attended && !f.given {
		return min(unattendedReconnect, f.value)
	}
	return f.value
}

// source is what to open. The demo stands in for a missing microphone only where
// somebody sees that it does: a recording or an output for another program would
// hold a conversation that never took place.
func (f *liveFlags) source() string {
	if f.input.first == "" && (f.record != "" || f.output.value != "") {
		return "mic"
	}
	return f.input.first
}

// openStream opens a stream for a source, or one for each of its tracks. It recognises the stored
// people.
func (a *App) openStream(ctx context.Context, f *liveFlags, server *serviceClient, source capture.Info, o client.ResilientOptions) (_ session.Stream, err error) {
	if o.Enrolment, err = a.enrolment(f); err != nil {
		return nil, err
	}
	if f.voices && !f.recognises() {
		a.notice("nobody is recognised: the voiceprints are sent to the service only with --send-voices")
	}
	defer a.connecting(server)()
	if source.Tracks > 1 {
		if o.Words {
			return nil, usage.Error("--words service works with one channel", "Leave out --channels, or give your own recogniser with --words.")
		}
		return server.OpenTracks(ctx, o, source.Tracks, f.rooms)
	}
	stream, err := server.OpenResilient(ctx, o)
	if err == nil && o.Words && !stream.Words() {
		stream.Close()
		return nil, hint.Add(errors.New("the service has no speech recogniser"), "Give your own with --words, or leave it out.")
	}
	return stream, err
}

// enrolment is the people whom a stream recognises, nil without --voices.
func (a *App) enrolment(f *liveFlags) (*protocol.Enrolment, error) {
	if !f.recognises() {
		return nil, nil
	}
	list, err := a.currentVoices()
	if err != nil || len(list) == 0 {
		return nil, err
	}
	// Where the engine has divided one person into two labels, both get the name.
	threshold, exclusive := float64(f.threshold.value), false
	e := &protocol.Enrolment{Matching: &protocol.Matching{Threshold: &threshold, Exclusive: &exclusive}}
	for _, v := range list {
		e.Voiceprints = append(e.Voiceprints, protocol.LabelledVoiceprint{Label: v.Name, Voiceprint: v.Voiceprint})
	}
	return e, nil
}

// newLearner learns voices while a session runs, on displays with a user; it is nil
// on others. correct is for the end of the session.
func newLearner(d session.Display, annotations *protocol.AnnotationsStore) (l *voices.Learner, correct func() error) {
	store, err := voices.Default()
	if err != nil || !d.Properties().Attended { // without a home folder nothing can be remembered
		return nil, func() error { return nil }
	}
	learner := voices.NewLearner(store)
	return learner, func() error {
		names, _ := annotations.Load()
		_, err := learner.Correct(names)
		return err
	}
}

// inputError adds to the error of an input that may be a microphone how one is named.
func inputError(err error) error {
	if errors.Is(err, capture.ErrNoFile) {
		return hint.Add(err, hint.Of(err)+" A microphone is mic or mic:NAME.")
	}
	return err
}

// live is the data path: a source is cut into chunks, which a stream carries to
// a server; session.Run passes its events to the recording and the display.
func (a *App) live(ctx context.Context, f *liveFlags) (err error) {
	display, err := a.liveDisplay(f)
	if err != nil {
		return err
	}
	ctx, tracer, closeTrace := display.Traced(ctx)
	defer func() { err = cmp.Or(closeTrace(), err) }()
	recogniser, err := f.ownRecogniser()
	if err != nil {
		return err
	}
	source, err := capture.Open(ctx, capture.Spec{Input: f.source(), Second: f.input.second, Channels: f.channels.value, Stdin: a.Stdin})
	if err != nil {
		return inputError(err)
	}
	defer source.Close()
	if f.fast() && source.Info().Kind.Live() {
		a.notice("--pace has no effect on a device")
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	server, err := a.connect(ctx, f.serviceFlags, connectOptions{
		tracer: tracer, waiting: a.noticeWait, maxStreams: max(localserver.DefaultMaxStreams(), source.Info().Tracks), engine: f.engineFlags.config(), unpaced: f.fast(), failed: end,
	})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(server.close(), err) }() // the end of the server is the cause of the session's errors
	input, endInput := context.WithCancel(ctx)
	defer endInput()
	stream, err := a.openStream(ctx, f, server, source.Info(), client.ResilientOptions{
		Limit: reconnectLimit(f.reconnect, display), Live: source.Info().Kind.Live(), Unpaced: f.fast(),
		Latency: server.latency, Ending: input.Done(), Words: f.wordsOfService(),
	})
	if err != nil {
		return err
	}
	defer stream.Close()
	annotations := protocol.NewAnnotationsStore(f.settings.Names)
	info := recording.NewInfo("hubbub "+version, source.Info(), server.name, server.latency, capture.Pace(f.pace.value))
	recorder := recording.NewRecorder(info, annotations)
	if err := recorder.Start(f.record); err != nil {
		return err
	}
	learner, correct := newLearner(display, annotations)
	defer func() { err = cmp.Or(err, correct()) }()
	defer func() { err = cmp.Or(err, recorder.Close()) }()
	chunks := capture.NewChunkReader(input, source, capture.Pace(f.pace.value))
	live := session.NewLive(session.LiveParts{
		Source: source.Info(), Chunks: chunks, EndInput: endInput, Stream: stream, Recorder: recorder, Annotations: annotations, Voices: learner, Recogniser: recogniser,
		Server: server.name, Latency: server.latency, Shared: f.server != "", Trust: f.trust(),
	})
	a.onSecondInterrupt(live.SkipWords)
	return session.Run(ctx, live, display)
}
