package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hubbub/capture"
	"hubbub/protocol"
)

// watchFlags is the command line of `hubbub watch`.
type watchFlags struct {
	liveFlags
}

func newWatch(a *App) *cobra.Command {
	f := &watchFlags{liveFlags{
		displayFlags: displayFlags{output: choice{"", []string{"tui", "lines", "json", "events", "rttm", "wire"}}},
		pace:         choice{value: "realtime"},
	}}
	cmd := &cobra.Command{
		Use:   "watch ID",
		Short: "Follow a stream that somebody else sends",
		Long: `Show a stream that another program sends to a service, in the same display: what
was said so far, and then what is said. As many as like may watch, on any node of
the service, with an API key of the account that sends. Nothing is sent from here,
and no sound comes: the level and the audio stay with the sender.

'hubbub live --server' names the ID when it begins, and under the key ?. A lost
connection is taken up where it broke. Exits with 1 when the stream ended in error.`,
		Example: `  hubbub watch 7c0e9a52-8f4b-4f0a-9c64-1f2b7d1f3a10 --server https://diarization.example
  hubbub watch ID --server https://diarization.example --output rttm > meeting.rttm`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] != "" {
				return nil
			}
			return &usageError{"hubbub watch needs the ID of a stream",
				"Its sender has it: hubbub live --server names it when it begins. A service does not list streams."}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.complete(cmd); err != nil {
				return err
			}
			if f.server == "" {
				return &usageError{"hubbub watch needs a service", "Give its address with --server URL or in HUBBUB_SERVER; a built-in server has no other watchers."}
			}
			return a.watchStream(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.server, "server", "", "`URL` of the service (HUBBUB_SERVER)")
	flags.StringVar(&f.apiKey, "api-key", "", "`KEY` for it (HUBBUB_API_KEY, or the key ring)")
	flags.StringVar(&f.ca, "ca", "", "PEM `FILE` of the authority to trust for it")
	flags.BoolVar(&f.insecure, "insecure", false, "do not check its certificate")
	flags.StringVar(&f.record, "record", "", "`DIR` to keep events and turns in, without the audio")
	f.displayFlags.add(cmd)
	_ = cmd.MarkFlagFilename("ca", "pem", "crt")
	_ = cmd.MarkFlagDirname("record")
	return cmd
}

// watchStream is live without its left half: no source, no chunks; the events
// of somebody else's stream are folded into a timeline, and a display draws it.
func (a *App) watchStream(ctx context.Context, id string, f *watchFlags) (err error) {
	display, err := a.chooseDisplay(f.displayFlags)
	if err != nil {
		return err
	}
	ctx, look := a.lookAtWire(ctx, display)
	defer func() { err = firstOf(look.close(), err) }()
	f.tap = look.tap
	server, err := a.connect(ctx, &f.liveFlags)
	if err != nil {
		return err
	}
	defer server.close()
	wire, err := server.Watch(ctx, id)
	if err != nil {
		return err
	}
	defer wire.Close()
	source := capture.Info{Kind: watched, Name: "stream " + protocol.Clean(id, 64), Base: protocol.Clean(id, 64)}
	notes := protocol.NewAnnotationsStore(f.notes)
	info := about(source, server.name, 0, capture.Realtime)
	info.Watched = id
	record, err := openRecording(f.record, source, info, notes)
	if err != nil {
		return err
	}
	s := &watchSession{id: id, source: source, server: withoutCredentials(server.name), wire: wire, now: time.Now,
		timeline: protocol.NewTimeline(), record: record, display: display, notes: notes}
	err = s.run(ctx)
	return firstOf(err, record.close(), record.ended(nil))
}

// outcome says in one error how a stream ended that was watched; nil for one
// that is done.
func watchOutcome(end protocol.CloseInfo) error {
	switch {
	case end.Err != nil:
		return end.Err
	case end.Text == protocol.StatusDone:
		return nil
	}
	return &failure{fmt.Errorf("the stream is over: %s", orElse(end.Text, "the service does not say how")),
		"What was said up to there is complete; its sender knows more."}
}
