package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/cmd/hubbub/internal/session"
	"hubbub/protocol"
)

func newReplay(a *App) *cobra.Command {
	var f displayFlags
	speed := newRate(1, recording.MinSpeed, recording.MaxSpeed)
	cmd := &cobra.Command{
		Use:   "replay DIR",
		Short: "Replay a recording in the same display",
		Long: `Replay a folder recorded with --record as it appeared on the screen. Keys pause,
seek and change the speed. The recording's names, merges and bookmarks are
applied; changes to them are saved in it. The audio is not played.

With another output than the full-screen display, the turns are printed with the
speakers' names, all at once unless --speed is given.`,
		Example: `  hubbub replay monday
  hubbub replay monday --speed 4
  hubbub replay monday --output rttm > monday.rttm`,
		Args: exactArgs("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.complete(cmd); err != nil {
				return err
			}
			return a.replay(cmd.Context(), args[0], f, speed)
		},
	}
	flags := cmd.Flags()
	flags.Var(&speed, "speed", "replay at `N` times the recorded speed, 0.1 to 1000")
	f.add(cmd, "tui", "lines", "json", "events", "rttm")
	return cmd
}

// replay is live with a recording as the source.
func (a *App) replay(ctx context.Context, dir string, f displayFlags, speed rate) (err error) {
	display, err := a.newDisplay(f)
	if err != nil {
		return err
	}
	rec, err := recording.Read(ctx, dir)
	if err != nil {
		return err
	}
	if !display.Properties().Attended && !speed.given {
		speed.value = 0 // all at once
	}
	annotations := protocol.NewAnnotationsStore(rec.Annotations)
	saver := recording.SaveAnnotations(dir, annotations, 0)
	defer func() { err = cmp.Or(err, saver.Close()) }()
	return session.Run(ctx, session.NewReplay(rec, speed.value, annotations), display)
}
