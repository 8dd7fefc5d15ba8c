//go:build unix

package tui

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/muesli/termenv"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

// hourOfTurns is a session of 8 people over an hour: thousands of turns.
var hourOfTurns = tuitest.Turns(8, 3600, 11)

// BenchmarkView draws the largest usual screen.
func BenchmarkView(b *testing.B) {
	for name, zooms := range map[string]int{"60s": 0, "hour": 20} {
		b.Run(name, func(b *testing.B) {
			m := testModel(tuitest.State(hourOfTurns, 3590, 1), 120, 34)
			for range zooms {
				press(m, "-")
			}
			b.ReportMetric(float64(len(hourOfTurns)), "turns")
			b.ReportAllocs()
			for b.Loop() {
				m.View()
			}
		})
	}
}

// liveMinute plays a minute of such a session, ten chunks a second, and counts
// the bytes of the changed lines, which Bubble Tea would send to the terminal.
func liveMinute(m *model, from float64) (bytes int) {
	var before []string
	for i := range 600 {
		m.later(tuitest.State(hourOfTurns, from+float64(i)/10, 1))
		after := strings.Split(m.View(), "\n")
		for y, line := range after {
			if y >= len(before) || line != before[y] {
				bytes += len(line) + 4 // and the cursor movement
			}
		}
		before = after
	}
	return bytes
}

// BenchmarkTerminal runs the real display with its renderer on a session that
// continues, and reports its cost: bytes to the terminal per second, and CPU
// time as a part of a core. It takes 5 s; -benchtime does not matter.
func BenchmarkTerminal(b *testing.B) {
	for b.Loop() {
		const long = 5 * time.Second
		ctx, cancel := context.WithTimeout(context.Background(), long)
		in, keep := io.Pipe()
		out, begin := &testkit.Buffer{}, time.Now()
		o := Options{Input: in, Output: out, Controls: display.Controls{Snapshot: func() display.State {
			// A new chunk every 100 ms, as from a microphone. Building a sample
			// state costs more than showing it: they are built before.
			all := prepared()
			return all[min(int(time.Since(begin)/(100*time.Millisecond)), len(all)-1)]
		}}}
		m, p := newProgram(o)
		m.theme = canvas.NewTheme(termenv.TrueColor, true, false)
		go p.Send(tea.WindowSizeMsg{Width: 120, Height: 34})
		prepared()
		cpu := cpuTime(b)
		testkit.NoError(b, m.run(ctx, p))
		b.ReportMetric(100*(cpuTime(b)-cpu).Seconds()/long.Seconds(), "%core")
		b.ReportMetric(float64(len(out.String()))/long.Seconds(), "B/s")
		keep.Close()
		cancel()
	}
}

// outputWatcher is an output that reports when a text is written.
type outputWatcher struct {
	mu   sync.Mutex
	want string
	seen chan time.Time
}

func (w *outputWatcher) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.want != "" && bytes.Contains(p, []byte(w.want)) {
		w.want = ""
		w.seen <- time.Now()
	}
	return len(p), nil
}

// BenchmarkEventToScreen measures how long an event takes from its arrival to
// the write to the terminal: through the timeline, the mailbox, the model and
// Bubble Tea's renderer, on the largest usual screen with an hour's turns.
// Events arrive at any moment of a tick. p95 is to stay below 50 ms.
func BenchmarkEventToScreen(b *testing.B) {
	timeline := protocol.NewTimeline()
	for _, t := range hourOfTurns {
		timeline.Apply(protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, t.Start, t.Speaker))
		timeline.Apply(protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, t.End, t.Speaker))
	}
	ctx, cancel := context.WithCancel(context.Background())
	in, keep := io.Pipe()
	out := &outputWatcher{seen: make(chan time.Time, 1)}
	box := make(chan Msg, 64)
	base := tuitest.State(nil, 3600, 1)
	m, p := newProgram(Options{Input: in, Output: out, Messages: box, Controls: display.Controls{Snapshot: func() display.State {
		s := base
		s.Timeline = timeline.Snapshot()
		return s
	}}})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = m.run(ctx, p)
	}()
	p.Send(tea.WindowSizeMsg{Width: 120, Height: 34})
	time.Sleep(300 * time.Millisecond)
	var took []time.Duration
	turns := len(timeline.Snapshot().Lanes[0].Turns)
	random := rand.New(rand.NewPCG(1, 2))
	for i := 0; b.Loop(); i++ {
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		// Each start adds one turn, and the screen shows their number.
		typ, want := protocol.TypeSpeakerStart, fmt.Sprintf("%d turns", turns+1)
		if i%2 == 1 {
			typ = protocol.TypeSpeakerEnd
			turns++
		}
		if typ == protocol.TypeSpeakerEnd {
			timeline.Apply(protocol.NewSpeakerEvent(typ, 3600+float64(i), "SPEAKER_00"))
			continue
		}
		out.mu.Lock()
		out.want = want
		out.mu.Unlock()
		begin := time.Now()
		timeline.Apply(protocol.NewSpeakerEvent(typ, 3600+float64(i), "SPEAKER_00"))
		box <- Msg{}
		select {
		case at := <-out.seen:
			took = append(took, at.Sub(begin))
		case <-time.After(10 * time.Second):
			b.Fatalf("%q was not written to the terminal", want)
		}
	}
	if n := len(took); n > 0 {
		slices.Sort(took)
		b.ReportMetric(float64(took[n/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[n*95/100].Microseconds())/1000, "p95-ms")
		b.ReportMetric(float64(took[n-1].Microseconds())/1000, "max-ms")
	}
	cancel()
	keep.Close()
	<-ended
}

var prepared = sync.OnceValue(func() (s []display.State) {
	for i := range 60 {
		s = append(s, tuitest.State(hourOfTurns, 3000+float64(i)/10, 1))
	}
	return s
})

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	testkit.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestBytesToTheTerminal keeps the display usable over SSH: Bubble Tea writes
// whole lines when they change, so few lines may change.
func TestBytesToTheTerminal(t *testing.T) {
	m := testModel(display.State{}, 120, 34)
	start := time.Now()
	perSecond := liveMinute(m, 3000) / 60
	t.Logf("120x34, 8 speakers: %d bytes a second, %v of work for a minute", perSecond, time.Since(start))
	if perSecond > 20_000 {
		t.Errorf("%d bytes a second go to the terminal", perSecond)
	}
}
