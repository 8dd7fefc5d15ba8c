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
	type screen func(w, h int) *model
	live := func(people int, change func(*display.State)) screen {
		return func(w, h int) *model {
			s := tuitest.State(tuitest.Turns(people, 200, 7), 75.2, 1)
			s.Started = time.Unix(1_000_000-75, 0)
			s.SourceNotice = "no capture device on this machine: playing the demo"
			change(&s)
			return testModel(s, w, h)
		}
	}
	asItIs := func(*display.State) {}
	frozen := func(w, h int) *model {
		m := live(4, asItIs)(w, h)
		press(m, "space", "left")
		m.later(tuitest.State(tuitest.Turns(4, 200, 7), 87, 1))
		return m
	}
	annotated := func(w, h int) *model {
		s := tuitest.State(tuitest.Turns(6, 400, 7), 375.2, 1)
		s.Gaps = []protocol.Span{{Start: 100, End: 130}, {Start: 360, End: 362.5}}
		m := testModel(s, w, h)
		m.annotations = protocol.NewAnnotationsStore(sampleAnnotations(375))
		return m
	}
	recognised := func(w, h int) *model { // two speakers, of whom one has a typed name too
		s := tuitest.State(tuitest.Turns(4, 200, 7), 75.2, 1)
		s.Timeline.Lanes[0].Match, s.Timeline.Lanes[1].Match = "Sam", "Rosa"
		m := testModel(s, w, h)
		m.o.Voices = "/home/sam/.local/share/hubbub/voices"
		m.update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Rename("SPEAKER_01", "Anna") })
		return m
	}
	wire := func(w, h int) *model { return wireModel(tuitest.Log(false), w, h) }
	for _, c := range []struct {
		name  string
		sizes string
		model screen
		keys  []string
	}{
		{"live", "40x8 80x24 120x34 80x24-ascii", live(4, asItIs), nil},
		{"eight", "40x8 80x24 120x34 80x24-ascii", live(8, func(s *display.State) { s.Dropped, s.Ahead = 12, -2*time.Second }), nil},
		{"frozen", "40x8 80x24 120x34 80x24-ascii", frozen, nil},
		{"help", "40x8 80x24 120x34 80x24-ascii", live(4, asItIs), []string{"?"}},
		{"finished", "40x8 80x24 120x34 80x24-ascii", live(3, func(s *display.State) { s.Conn, s.Length = display.Closed, 75.2 }), []string{"--------"}},
		{"watching", "40x8 80x24 120x34 80x24-ascii", live(3, func(s *display.State) {
			s.Watching, s.Stream, s.Levels, s.Level, s.ChunksSent = true, tuitest.Stream, nil, display.Level{}, 0
			s.Source, s.SourceNotice = "stream "+s.Stream, ""
		}), nil},
		{"failed", "40x8 80x24 120x34 80x24-ascii", live(4, func(s *display.State) {
			s.Timeline.Lanes, s.Conn, s.ConnReason = nil, display.Failed, "dial tcp 127.0.0.1:8580: connection refused"
		}), nil},
		{"view-annotations", "40x8 80x24 120x34 40x8-ascii 80x24-ascii", annotated, []string{"3"}},
		{"view-muted", "40x8 80x24 120x34", annotated, []string{"s", "1", "x"}},
		{"view-naming", "40x8 80x24", annotated, []string{"2", "r", " ", "雷", "!"}},
		{"view-merging", "40x8 80x24", annotated, []string{"4", "m", "up"}},
		{"view-bookmarks", "40x8 80x24 120x34", annotated, []string{"[", "["}},
		{"view-presenter", "40x8 80x24 120x34 40x8-ascii 80x24-ascii", annotated, []string{"f"}},
		{"view-turns", "40x8 80x24 120x34 40x8-ascii 80x24-ascii", annotated, []string{"t", "up", "up"}},
		{"view-turns-filter", "40x8 80x24 120x34", annotated, []string{"t", "2", "up", ">"}},
		{"view-cursor", "40x8 80x24 120x34", annotated, []string{"space", "left", "left", "left", "left", "left"}},
		{"view-command", "40x8 80x24", annotated, []string{":", "s"}},
		{"view-recognised", "40x8 120x34 80x24-ascii", recognised, nil},
		{"view-recognised-turns", "80x24", recognised, []string{"t"}},
		{"view-recognised-presenter", "80x24", recognised, []string{"f"}},
		{"view-recognised-help", "40x8 80x24 120x34", recognised, []string{"?"}},
		{"wire", "40x8 80x24 120x34 80x24-ascii", wire, nil},
		{"wire-end", "40x8 80x24 120x34", func(w, h int) *model { return wireModel(tuitest.Log(true), w, h) }, []string{"up", "up", "up"}},
		{"wire-raw", "40x8 80x24 120x34", wire, []string{"t", "up", "up", "enter"}},
		{"wire-unfold", "40x8 80x24 120x34", wire, []string{"u", "space"}},
		{"wire-filter", "40x8 80x24 120x34", wire, []string{"/", "chunk", "enter", "t", "t", "t"}},
		{"wire-help", "40x8 80x24 120x34", wire, []string{"?"}},
	} {
		for size := range strings.FieldsSeq(c.sizes) {
			name := c.name + "-" + size
			t.Run(name, func(t *testing.T) {
				var w, h int
				testkit.Must(fmt.Sscanf(size, "%dx%d", &w, &h))(t)
				m := c.model(w, h)
				m.glyphs = canvas.NewGlyphs(strings.HasSuffix(size, "-ascii"))
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
