package tui

import (
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
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
