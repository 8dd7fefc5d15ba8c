package tui

import (
	"context"
	"io"
	"sync"
	"syscall"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/muesli/termenv"
)

// anHour is a session of 8 people over an hour: thousands of turns.
var anHour = conversation(8, 3600, 11)

// BenchmarkView draws the largest usual screen, every time anew.
func BenchmarkView(b *testing.B) {
	for name, zooms := range map[string]int{"60s": 0, "hour": 20} {
		b.Run(name, func(b *testing.B) {
			m := still(sessionAt(anHour, 3590, 1), 120, 34)
			for range zooms {
				press(m, "-")
			}
			b.ReportMetric(float64(len(anHour)), "turns")
			b.ReportAllocs()
			for b.Loop() {
				m.dirty = true
				m.View()
			}
		})
	}
}

// BenchmarkTick is one tick of a session in which nothing has changed.
func BenchmarkTick(b *testing.B) {
	m := still(sessionAt(anHour, 3590, 1), 120, 34)
	b.ReportAllocs()
	for b.Loop() {
		m.Update(tickMsg{})
		m.View()
	}
}

// liveMinute plays a minute of such a session, ten chunks a second, and
// counts what the lines that changed would send to the terminal.
func liveMinute(m *model, from float64) (bytes int) {
	var before []string
	for i := range 600 {
		m.later(sessionAt(anHour, from+float64(i)/10, 1))
		after := splitLines(m.View())
		for y, line := range after {
			if y >= len(before) || line != before[y] {
				bytes += len(line) + 4 // and the way there
			}
		}
		before = after
	}
	return bytes
}

// BenchmarkTerminal runs the real display, renderer and all, on a session that
// goes on, and tells what it costs: bytes to the terminal for each second, and
// the part of a core that it takes. It takes its time: -benchtime does not
// matter.
func BenchmarkTerminal(b *testing.B) {
	for b.Loop() {
		const long = 5 * time.Second
		ctx, cancel := context.WithTimeout(context.Background(), long)
		in, keep := io.Pipe()
		out, begin := &sink{}, time.Now()
		o := Options{Input: in, Snapshot: func() State {
			// A new chunk every 100 ms, as a microphone gives them. Making
			// the State up costs more than to show it, so that is cached.
			all := prepared()
			return all[min(int(time.Since(begin)/(100*time.Millisecond)), len(all)-1)]
		}}
		m, p := newProgram(ctx, o, out)
		m.theme = newTheme(termenv.TrueColor, true, false)
		go p.Send(tea.WindowSizeMsg{Width: 120, Height: 34})
		prepared()
		cpu := cpuTime(b)
		if _, err := p.Run(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(100*(cpuTime(b)-cpu).Seconds()/long.Seconds(), "%core")
		b.ReportMetric(float64(len(out.String()))/long.Seconds(), "B/s")
		keep.Close()
		cancel()
	}
}

var prepared = sync.OnceValue(func() (s []State) {
	for i := range 60 {
		s = append(s, sessionAt(anHour, 3000+float64(i)/10, 1))
	}
	return s
})

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func splitLines(s string) (lines []string) {
	start := 0
	for i := range len(s) {
		if s[i] == '\n' {
			lines = append(lines, s[start:i])
			start = i + 1
		}
	}
	return append(lines, s[start:])
}

// TestBytesToTheTerminal keeps the display pleasant over SSH: Bubble Tea
// writes whole lines when they change, so few lines may change.
func TestBytesToTheTerminal(t *testing.T) {
	m := still(State{}, 120, 34)
	start := time.Now()
	perSecond := liveMinute(m, 3000) / 60
	t.Logf("120x34, 8 speakers: %d bytes a second, %v of work for a minute", perSecond, time.Since(start))
	if perSecond > 20_000 {
		t.Errorf("%d bytes a second go to the terminal", perSecond)
	}
}

var _ tea.Model = (*model)(nil)
