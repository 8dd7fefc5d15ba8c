package tui

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		testkit.NoError(t, os.MkdirAll("testdata", 0o755))
		testkit.NoError(t, os.WriteFile(path, got, 0o644))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; look at it, then go test -update.\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

// plainScreen is a screen without escape sequences, except that «» stand around
// what is drawn in swapped colours: left edges and badges.
func plainScreen(m *model) []byte {
	v := m.View()
	var b strings.Builder
	reversed := false
	for len(v) > 0 {
		if strings.HasPrefix(v, "\x1b[") {
			end := strings.IndexByte(v, 'm')
			params, _, _ := strings.Cut(v[2:end], "38;") // attributes come before the colour
			if now := slices.Contains(strings.Split(params, ";"), "7"); now != reversed {
				b.WriteString(map[bool]string{true: "«", false: "»"}[now])
				reversed = now
			}
			v = v[end+1:]
			continue
		}
		b.WriteByte(v[0])
		v = v[1:]
	}
	return []byte(b.String() + "\n")
}

func TestGoldenScreens(t *testing.T) {
	for _, screen := range []struct {
		w, h  int
		ascii bool
	}{{40, 8, false}, {80, 24, false}, {120, 34, false}, {80, 24, true}} {
		for _, c := range []struct {
			name   string
			people int
			change func(*display.State)
			keys   []string
		}{
			{"live", 4, func(s *display.State) {}, nil},
			{"eight", 8, func(s *display.State) { s.Dropped, s.Ahead = 12, -2*time.Second }, nil},
			{"frozen", 4, func(s *display.State) {}, []string{"space", "left"}},
			{"help", 4, func(s *display.State) {}, []string{"?"}},
			{"finished", 3, func(s *display.State) { s.Conn, s.Length = display.Closed, 75.2 }, []string{"-", "-", "-", "-", "-", "-", "-", "-"}},
			{"watching", 3, func(s *display.State) {
				s.Watching, s.Stream, s.Levels, s.Level, s.ChunksSent = true, "7c0e9a52-8f4b-4f0a-9c64-1f2b7d1f3a10", nil, display.Level{}, 0
				s.Source, s.SourceNotice = "stream "+s.Stream, ""
			}, nil},
			{"failed", 4, func(s *display.State) {
				s.Timeline.Lanes, s.Conn, s.ConnReason = nil, display.Failed, "dial tcp 127.0.0.1:8580: connection refused"
			}, nil},
		} {
			name := fmt.Sprintf("%s-%dx%d", c.name, screen.w, screen.h)
			if screen.ascii {
				name += "-ascii"
			}
			t.Run(name, func(t *testing.T) {
				s := tuitest.State(tuitest.Turns(c.people, 200, 7), 75.2, 1)
				s.Started = time.Unix(1_000_000-75, 0)
				s.SourceNotice = "no capture device on this machine: playing the demo"
				c.change(&s)
				m := testModel(s, screen.w, screen.h)
				m.glyphs = canvas.NewGlyphs(screen.ascii)
				press(m, c.keys...)
				if c.name == "frozen" {
					m.later(tuitest.State(tuitest.Turns(c.people, 200, 7), 87, 1))
				}
				golden(t, name, plainScreen(m))
			})
		}
	}
}

// TestGoldenViews are the screens of names, bookmarks and the presenter view.
func TestGoldenViews(t *testing.T) {
	for _, size := range [][2]int{{40, 8}, {80, 24}, {120, 34}} {
		for _, c := range []struct {
			name  string
			ascii bool
			keys  []string
		}{
			{"annotations", false, []string{"3"}},
			{"annotations-ascii", true, []string{"3"}},
			{"muted", false, []string{"s", "1", "x"}},
			{"naming", false, []string{"2", "r", " ", "雷", "!"}},
			{"merging", false, []string{"4", "m", "up"}},
			{"bookmarks", false, []string{"[", "["}},
			{"presenter", false, []string{"f"}},
			{"turns", false, []string{"t", "up", "up"}},
			{"turns-ascii", true, []string{"t", "up", "up"}},
			{"turns-filter", false, []string{"t", "2", "up", ">"}},
			{"cursor", false, []string{"space", "left", "left", "left", "left", "left"}},
			{"command", false, []string{":", "s"}},
			{"presenter-ascii", true, []string{"f"}},
		} {
			if c.ascii && size[0] > 80 { // no other glyphs
				continue
			}
			name := fmt.Sprintf("view-%s-%dx%d", c.name, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				s := tuitest.State(tuitest.Turns(6, 400, 7), 375.2, 1)
				s.Gaps = []protocol.Span{{Start: 100, End: 130}, {Start: 360, End: 362.5}}
				m := testModel(s, size[0], size[1])
				m.annotations = protocol.NewAnnotationsStore(sampleAnnotations(375))
				m.glyphs = canvas.NewGlyphs(c.ascii)
				press(m, c.keys...)
				golden(t, name, plainScreen(m))
			})
		}
	}
}

// TestGoldenColours pins the bytes of one screen, escape sequences included.
func TestGoldenColours(t *testing.T) {
	for _, dark := range []bool{true, false} {
		m := testModel(tuitest.State(tuitest.Turns(8, 200, 7), 75.2, 1), 80, 24)
		m.theme = canvas.NewTheme(termenv.TrueColor, dark, false)
		name := "colours-light"
		if dark {
			name = "colours-dark"
		}
		golden(t, name, []byte(strings.ReplaceAll(m.View(), "\x1b", "^")+"\n"))
	}
}

func TestGoldenSummary(t *testing.T) {
	s := tuitest.State(tuitest.Turns(8, 200, 7), 175.2, 1)
	s.Timeline.Lanes[1].Speaker = "李雷\x1b"
	for _, c := range []struct {
		name    string
		profile termenv.Profile
		ascii   bool
	}{{"summary", termenv.TrueColor, false}, {"summary-plain", termenv.Ascii, false}, {"summary-ascii", termenv.TrueColor, true}} {
		var b bytes.Buffer
		testkit.NoError(t, writeSummary(&b, 80, display.NewSession(s, nil), canvas.NewTheme(c.profile, true, false), canvas.NewGlyphs(c.ascii)))
		text := ansi.Strip(b.String())
		// The columns stand under each other.
		at := -1
		for _, line := range strings.Split(text, "\n")[1:] {
			i := strings.Index(line, "%")
			if i < 0 {
				continue
			}
			if w := ansi.StringWidth(line[:i]); at >= 0 && w != at {
				t.Errorf("the share of %q ends in column %d, that above in %d", line, w, at)
			} else {
				at = w
			}
		}
		golden(t, c.name, []byte(strings.ReplaceAll(b.String(), "\x1b", "^")))
	}
}

func TestSummaryOfNothing(t *testing.T) {
	var b bytes.Buffer
	testkit.NoError(t, Summary(&b, display.State{}, Options{}))
	testkit.Equal(t, b.String(), "hubbub  0:00  0 speakers  0 turns\n")
}

// sampleAnnotations are names of several scripts, a merge and bookmarks.
func sampleAnnotations(at float64) (a protocol.Annotations) {
	for label, name := range map[string]string{"SPEAKER_00": "Anna Löwe", "SPEAKER_01": "李雷", "SPEAKER_02": "Çağla"} {
		a, _ = a.Rename(label, name)
	}
	a, _ = a.Merge("SPEAKER_05", "SPEAKER_04")
	a, _ = a.Bookmark(at-12.3, "decision: ship it on Friday")
	a, _ = a.Bookmark(at/3, "question about the budget")
	return a
}
