package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"hubbub/cmd/hubbub/internal/session"
	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/protocol"
)

// watchFlags are the flags of `hubbub watch`.
type watchFlags struct {
	serviceFlags
	displayFlags
	words     bool
	reconnect durationFlag
}

func newWatch(a *App) *cobra.Command {
	f := &watchFlags{reconnect: defaultReconnect()}
	cmd := &cobra.Command{
		Use:   "watch ID",
		Short: "Display a stream that another client sends",
		Long: `Display a stream that another client sends to a service: first its turns so far,
then new ones as they are committed. Several clients can watch the same stream, on
any node of the service, with an API key of the sender's account. A watching
client sends no audio and receives none, so it shows no input level.

'hubbub live --server' shows the stream's ID in its help (key ?) and prints it at
the end; without the full screen it prints it at the start. A lost connection is
resumed where it broke. When the sender loses its stream and resumes it, the new
one is displayed as its continuation. The exit code is 1 if the stream ended with
an error.`,
		Example: `  hubbub watch 7c0e9a52-8f4b-4f0a-9c64-1f2b7d1f3a10 --server https://diarization.example
  hubbub watch ID --server https://diarization.example --output rttm > meeting.rttm`,
		Args: neededArgs("'hubbub live --server URL' shows it, at the start or under ?. A service does not list streams.", "the ID of a stream"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.complete(cmd); err != nil {
				return err
			}
			return a.watch(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	f.serviceFlags.addRemote(cmd)
	flags.Var(&f.reconnect, "reconnect", "longest `TIME` to try to reconnect, or to wait for a sender that resumes, 0 = never; 15s by default without a full-screen display")
	flags.BoolVar(&f.words, "words", false, "display what is said, if the sender has asked the service for it")
	f.displayFlags.add(cmd, "tui", "lines", "json", "events", "rttm", "wire")
	return cmd
}

func (f *watchFlags) complete(cmd *cobra.Command) error {
	if err := f.displayFlags.complete(cmd); err != nil {
		return err
	}
	if f.server == "" {
		return usage.Error("hubbub watch needs a service", "Give its address with --server URL or in HUBBUB_SERVER; a built-in server has no other watchers.")
	}
	return f.serviceFlags.complete(cmd)
}

// watch is live without a source: the events of another client's stream go to
// the display.
func (a *App) watch(ctx context.Context, id string, f *watchFlags) (err error) {
	display, err := a.newDisplay(f.displayFlags)
	if err != nil {
		return err
	}
	ctx, tracer, closeTrace := display.Traced(ctx)
	defer func() { err = cmp.Or(closeTrace(), err) }()
	server, err := a.connect(ctx, f.serviceFlags, connectOptions{tracer: tracer})
	if err != nil {
		return err
	}
	defer server.close()
	connected := a.connecting(server)
	stream, err := server.Watch(ctx, id, reconnectLimit(f.reconnect, display), f.words)
	connected()
	if err != nil {
		return err
	}
	defer stream.Close()
	watched := session.NewWatched(id, stream, protocol.NewAnnotationsStore(f.settings.Names), server.name)
	return session.Run(ctx, watched, display)
}
