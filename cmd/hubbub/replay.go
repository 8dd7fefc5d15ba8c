package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"hubbub/tui"
)

// playEvery is how often a player is looked at; the screen looks as often.
const playEvery = 50 * time.Millisecond

// rate is a flag that takes how many times faster than real time.
type rate struct {
	value float64 // 0 = at once
	set   bool
}

func (r *rate) String() string { return strconv.FormatFloat(r.value, 'g', -1, 64) }
func (r *rate) Type() string   { return "number" }
func (r *rate) Set(s string) error {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= minSpeed && v <= maxSpeed) {
		return fmt.Errorf("must be a number from %g to %d", minSpeed, maxSpeed)
	}
	r.value, r.set = v, true
	return nil
}

func newReplay(a *App) *cobra.Command {
	f := displayFlags{output: choice{"", []string{"tui", "lines", "json", "events", "rttm"}}}
	speed := rate{value: 1}
	cmd := &cobra.Command{
		Use:   "replay DIR",
		Short: "Play a recording again, in the same display",
		Long: `Play a folder that 'hubbub --record' made, as it was on the screen when it was
recorded: pause, seek and change the speed with keys. Names, merges and
bookmarks are those of the recording; new ones are kept in it.

Without a screen the turns are printed under people's names, all at once unless
--speed says otherwise.`,
		Example: `  hubbub replay monday
  hubbub replay monday --speed 4
  hubbub replay monday --output rttm > monday.rttm`,
		Args: exactArgs("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := settle(cmd); err != nil {
				return err
			}
			if err := f.check(cmd); err != nil {
				return err
			}
			return a.replay(cmd.Context(), args[0], f, speed)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(&speed, "speed", "`N` times as fast as it was recorded, 0.1 to 1000")
	f.add(cmd)
	return cmd
}

// replay is live with another source: the recording's clock in place of the
// audio's, its events in place of the wire's.
func (a *App) replay(ctx context.Context, dir string, f displayFlags, speed rate) error {
	display, err := a.chooseDisplay(f)
	if err != nil {
		return err
	}
	rec, err := readRecording(ctx, dir)
	if err != nil {
		return err
	}
	if _, text := display.(*printed); text && !speed.set {
		speed.value = 0
	}
	p := newPlayer(rec, speed.value, time.Now)
	if speed.value == 0 {
		p.speed, p.from = 1, rec.length
	}
	keeper := keepNotes(dir, p.notes)
	err = p.play(ctx, display)
	return firstOf(err, keeper.close())
}

// play shows the recording until its user leaves, ctx ends, or, on a display
// that nobody leaves, until its end.
func (p *player) play(ctx context.Context, d display) error {
	if err := d.open(p); err != nil {
		return err
	}
	screen, closeScreen := context.WithCancel(ctx)
	levels := make(chan struct{})
	go func() {
		defer close(levels)
		p.loadLevels(screen)
	}()
	left := make(chan error, 1)
	go func() { left <- guarded(func() error { return d.run(screen) }) }()
	failed := guarded(func() error { return p.drive(screen, d, left) })
	closeScreen()
	<-levels
	return firstOf(failed, d.finish())
}

// drive tells the display what the player passes, and returns when the display
// has ended, whoever ended it.
func (p *player) drive(ctx context.Context, d display, left <-chan error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	tick := time.NewTicker(playEvery)
	defer tick.Stop()
	for {
		all, over := p.take()
		for _, e := range all {
			if err := p.tell(d, e); err != nil {
				return err
			}
		}
		if over && !d.stays() {
			return nil
		}
		select {
		case err := <-left:
			return err
		case <-ctx.Done():
			return <-left
		case <-tick.C:
		}
	}
}

func (p *player) tell(d display, e passed) error {
	if e.event.Raw != nil {
		if err := d.event(e.event); err != nil {
			return err
		}
	}
	notes, _ := p.notes.Load()
	for _, t := range e.turns {
		t.Speaker = notes.Name(t.Speaker)
		if err := d.turn(t); err != nil {
			return err
		}
	}
	return nil
}

var _ tui.Player = (*player)(nil)
