package session

import (
	"cmp"
	"context"
	"sync"
	"time"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/crash"
	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/protocol"
	"hubbub/protocol/recovered"
	"hubbub/tui/display"
)

// playInterval is how often the events that playing has reached are delivered.
const playInterval = 50 * time.Millisecond

// Replay plays a recording.
type Replay struct {
	rec     *recording.Recording
	play    *recording.Player
	store   *protocol.AnnotationsStore
	whole   func() protocol.Snapshot // for searches
	levels  display.History          // filled while it plays
	ended   chan struct{}
	endOnce func()
}

// NewReplay plays rec from its start at a speed: 1 = as it was recorded, 0 = all
// at once. Users change the annotations in the store.
func NewReplay(rec *recording.Recording, speed float64, store *protocol.AnnotationsStore) *Replay {
	r := &Replay{rec: rec, play: recording.NewPlayer(rec, speed, time.Now), whole: sync.OnceValue(rec.Timeline), store: store, ended: make(chan struct{})}
	r.endOnce = sync.OnceFunc(func() { close(r.ended) })
	return r
}

func (r *Replay) end() { r.endOnce() }

// run delivers what playing reaches. On a screen, whose user may seek back, the
// end of the recording is not the end of the session.
func (r *Replay) run(ctx context.Context, d Display) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	measured := make(chan error, 1)
	go func() { measured <- recovered.Guard(func() error { return r.measureLevels(ctx) }) }()
	defer func() {
		cancel()
		err = cmp.Or(err, <-measured)
	}()
	tick := time.NewTicker(playInterval)
	defer tick.Stop()
	for {
		steps, over := r.play.Take()
		if err := r.deliver(d, steps); err != nil {
			return err
		}
		if over && !d.Properties().StaysOpen {
			return nil
		}
		select {
		case <-r.ended:
			return nil
		case <-tick.C:
		}
	}
}

// deliver displays events and the turns they finished, under the names that the
// speakers have now.
func (r *Replay) deliver(d Display, steps []recording.Step) error {
	if len(steps) == 0 {
		return nil
	}
	annotations, _ := r.store.Load()
	names := map[string]string{} // by the label that stands for a speaker
	for _, s := range annotations.Speakers(r.play.Now().Timeline) {
		names[s.Label] = s.Lane.Speaker
	}
	for _, s := range steps {
		crash.TestHook("receive")
		if s.Event.Raw != nil {
			if err := d.event(s.Event); err != nil {
				return err
			}
		}
		for _, t := range s.Turns {
			t.Speaker = cmp.Or(names[annotations.Owner(t)], t.Speaker)
			if t.Speaker != t.Match { // the user named the speaker, or the service withdrew the match
				t.Match = ""
			}
			if err := d.turn(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// measureLevels decodes the audio and collects its levels, which the screen
// shows as far as they are there.
func (r *Replay) measureLevels(ctx context.Context) error {
	if r.rec.Audio == "" {
		return nil
	}
	source, err := capture.Open(ctx, capture.Spec{Input: r.rec.Audio})
	if err != nil {
		return nil // a warning of the recording says so
	}
	for c := range capture.NewChunkReader(ctx, source, capture.Fast).Chunks() {
		r.levels.Add(c.Seq, display.Level(c.Level))
	}
	return nil
}

func (r *Replay) about() capture.Info {
	return capture.Info{Kind: capture.File, Name: r.rec.Title(), Base: r.rec.Info.Name}
}

func (r *Replay) notices() []string { return r.rec.Warnings }

func (r *Replay) controls() display.Controls {
	return display.Controls{Annotations: r.store, Export: r.export, Player: r.play}
}

func (r *Replay) export(annotations protocol.Annotations) (string, error) {
	return r.rec.Content(annotations).Export(r.rec.Dir)
}

// state is the session as it was at the position of the player.
func (r *Replay) state() display.State {
	m := r.play.Now()
	info := r.rec.Info
	st := display.State{
		Timeline:   m.Timeline,
		Position:   m.Position,
		Sent:       m.Position,
		Length:     r.rec.Length,
		Latency:    time.Duration(info.Latency * float64(time.Second)),
		Source:     r.rec.Title(),
		Conn:       display.Open,
		ChunksSent: int64(m.Position*10 + 0.5),
		Playback:   &display.Playback{Paused: !m.Playing, Speed: m.Speed, Whole: r.whole},
		Gaps:       m.Gaps,
	}
	if !info.Started.IsZero() {
		st.SourceNotice = "recorded " + info.Started.Local().Format("2 January 2006, 15:04")
	}
	if m.Over {
		st.Conn = display.Closed
	}
	st.Levels = r.levels.Levels()
	if n := int(m.Position * 10); n < len(st.Levels) {
		st.Levels = st.Levels[:n:n]
	}
	if n := len(st.Levels); n > 0 && m.Playing {
		st.Level = st.Levels[n-1]
	}
	return st
}
