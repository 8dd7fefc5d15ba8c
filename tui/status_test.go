package tui

import (
	"io"
	"math"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

func TestStateLine(t *testing.T) {
	s := tuitest.State(tuitest.FourSpeakers, 60, 1)
	for _, c := range []struct {
		name   string
		change func(*display.State)
		want   string
	}{
		{"connected", func(s *display.State) {}, "● connected"},
		{"on time", func(s *display.State) { s.Ahead = -100 * time.Millisecond }, "real time"},
		{"behind", func(s *display.State) { s.Ahead = -1200 * time.Millisecond }, "1.2 s behind"},
		{"ahead", func(s *display.State) { s.Ahead = 75 * time.Second }, "1:15 ahead"},
		{"dropped", func(s *display.State) { s.Dropped = 7 }, " 7 dropped "},
		{"lost audio", func(s *display.State) { s.Overflows = 1 }, "device lost audio once"},
		{"connecting", func(s *display.State) { s.Conn = display.Connecting }, "○ connecting"},
		{"failed", func(s *display.State) { s.Conn, s.ConnReason = display.Failed, "connection refused" }, "× failed  "},
		{"finishing", func(s *display.State) { s.Conn = display.Draining }, "○ finishing"},
		{"finished", func(s *display.State) { s.Conn = display.Closed }, "■ finished  "},
		{"service of a source with a long name", func(s *display.State) { s.Source = strings.Repeat("microphone ", 10) }, "built-in server"},
		{"elapsed", func(s *display.State) { s.Started = time.Unix(1_000_000-61, 0) }, "1:01 elapsed"},
	} {
		x := s
		c.change(&x)
		m := testModel(x, 120, 24)
		if line := screenRows(m)[22]; !strings.Contains(line, c.want) {
			t.Errorf("%s: the state line is %q, want %q in it", c.name, line, c.want)
		}
	}
}

// The main screen shows how late the service is, in figures and in words, and
// hatches as much as is undecided.
func TestLateService(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name           string
		lag, pong, ago time.Duration
		line, problem  string
		undecided      float64 // seconds
	}{
		{"well", time.Second, 20 * ms, 500 * ms, "lag 1.0 s   last reply 0 s ago", "", 1},
		{"jitter", 1400 * ms, 200 * ms, 1500 * ms, "lag 1.4 s   last reply 1 s ago", "", 1},
		{"late", 14 * time.Second, 20 * ms, time.Second, "lag 14.0 s   last reply 1 s ago",
			"events arrive 14 s late: the service is overloaded or something buffers them", 14},
		{"slow", 7 * time.Second, 6 * time.Second, time.Second, "lag 7.0 s   last reply 1 s ago",
			"audio arrives 6 s late: the service or the connection is too slow", 7},
		{"silent", time.Second, time.Millisecond, 5 * time.Second, "lag 1.0 s   last reply 5 s ago",
			"nothing received for 5 s: the service or the network hangs", 6},
	} {
		late := func(s display.State, w, h int) *model {
			m := testModel(s, w, h)
			m.o.Wire = tuitest.LateLog(c.lag, c.pong, c.ago).Snapshot
			m.countersAt = 0 // they are taken once a second
			m.later(s)
			return m
		}
		s := tuitest.State(tuitest.FourSpeakers, 60, 1)
		for _, w := range []int{80, 120} {
			few := s
			few.Timeline.Lanes = []protocol.Lane{{Speaker: "A", Turns: []protocol.Turn{{Speaker: "A", Start: 1, End: 2}}}}
			few.Timeline.Decided = 2
			m := late(few, w, 24)
			rows := screenRows(m)
			testkit.Contains(t, rows[22], c.line, c.name, w, "columns: the state line")
			testkit.Equal(t, strings.TrimSpace(rows[1]), c.problem, c.name, w, "columns: the problem")
			if got, want := strings.Count(rows[2], m.glyphs.Pending), int(math.Round(c.undecided/m.window().cellDur)); got != want {
				t.Errorf("%s, %d columns: %d cells are hatched, %d are undecided: %q", c.name, w, got, want, rows[2])
			}
		}
		screenHas(t, late(s, 100, 9), c.problem) // no row for the problem
		screenHas(t, late(s, 120, 24), c.problem, "f")
		s.SourceNotice = "playing the demo"
		if rows := screenRows(late(s, 100, 24)); strings.Contains(rows[0], s.SourceNotice) != (c.problem != "") || !strings.Contains(rows[0]+rows[1], s.SourceNotice) {
			t.Errorf("%s: the notice about the source is in neither line, or in both: %q", c.name, rows[:2])
		}
	}
}

// A replay has no connection, and sends nothing.
func TestStateLineOfAReplay(t *testing.T) {
	s := tuitest.State(tuitest.FourSpeakers, 60, 1)
	s.Playback, s.Length, s.Server, s.SourceNotice = &display.Playback{Speed: 1}, 75, "", "recorded 28 September 2026, 09:30"
	screenHas(t, testModel(s, 59, 24), "● playing   recording of 1:15")
	m := testModel(s, 60, 24)
	if line := screenRows(m)[22]; !strings.Contains(line, "● playing   recorded 28 September 2026, 09:30") || strings.Contains(line, "connected") || strings.Contains(line, "sent") || strings.Contains(line, "dropped") {
		t.Errorf("the state line is %q", line)
	}
	s.Playback = &display.Playback{Speed: 1, Paused: true}
	m = testModel(s, 120, 24)
	testkit.Contains(t, screenRows(m)[22], "○ paused", "the state line")
}

// A narrow header keeps the end of a path.
func TestHeaderKeepsTheEndOfAPath(t *testing.T) {
	s := tuitest.State(tuitest.FourSpeakers, 60, 1)
	s.Source = "/home/somebody/recordings/2026/november/weekly meeting of the board.flac"
	for _, w := range []int{60, 80} {
		if line := screenRows(testModel(s, w, 24))[0]; !strings.Contains(line, "…") || !strings.Contains(line, "board.flac") {
			t.Errorf("%d columns: %q", w, line)
		}
	}
}

// The locale C has no characters beyond ASCII.
func TestLocaleC(t *testing.T) {
	for _, c := range []struct {
		all, ctype, lang string
		ascii            bool
	}{
		{"C", "", "en_GB.UTF-8", true}, {"POSIX", "", "", true}, {"", "C", "en_GB.UTF-8", true}, {"", "", "C", true},
		{"C.UTF-8", "", "C", false}, {"", "", "", false}, {"", "", "en_GB.UTF-8", false},
	} {
		t.Setenv("LC_ALL", c.all)
		t.Setenv("LC_CTYPE", c.ctype)
		t.Setenv("LANG", c.lang)
		m, _ := newProgram(Options{Output: io.Discard})
		if m.glyphs.ASCII != c.ascii && !m.theme.Plain() {
			t.Errorf("%+v: ASCII is %v", c, m.glyphs.ASCII)
		}
		testkit.Equal(t, asciiLocale(), c.ascii, c)
	}
}

func TestElapsedStandsStillWhenFinished(t *testing.T) {
	s := tuitest.State(tuitest.FourSpeakers, 60, 1)
	s.Started = time.Unix(1_000_000-60, 0)
	m := testModel(s, 120, 24)
	s.Conn = display.Closed
	m.now = func() time.Time { return time.Unix(1_000_600, 0) }
	m.later(s)
	screenHas(t, m, "1:00 elapsed")
}

func TestMeter(t *testing.T) {
	for _, c := range []struct {
		level display.Level
		want  string // of 14 cells
	}{
		{display.Level{}, "▕              ▏"},
		{display.Level{RMS: 1, Peak: 1}, "▕██████████████▏"},
		{display.Level{RMS: 0.0316228, Peak: 0.1}, "▕███████  │    ▏"}, // -30 and -20 dB
		{display.Level{RMS: float32(math.NaN()), Peak: float32(math.NaN())}, "▕              ▏"},
	} {
		s := tuitest.State(tuitest.FourSpeakers, 60, 1)
		s.Level = c.level
		m := testModel(s, 100, 24)
		if got := screenRows(m)[0]; !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q in it", c.level, got, c.want)
		}
	}
}

func TestPeakIsHeldForAMoment(t *testing.T) {
	s := tuitest.State(tuitest.FourSpeakers, 60, 1)
	s.Level = display.Level{RMS: 0.01, Peak: 0.5}
	m := testModel(s, 100, 24)
	s.Level, s.Position = display.Level{RMS: 0.01, Peak: 0.02}, 61
	m.later(s)
	testkit.Equal(t, m.peak, 0.5, "after a second the peak")
	s.Position = 62
	m.later(s)
	testkit.Equal(t, m.peak, 0.02, "after two seconds the peak")
}

// TestWatchingOnScreen shows that a stream has not begun.
func TestWatchingOnScreen(t *testing.T) {
	s := display.State{Stream: tuitest.Stream, Watching: true, Source: "stream " + tuitest.Stream, SourceNotice: "not begun", Conn: display.Open}
	v := string(plainScreen(testModel(s, 80, 24)))
	for _, want := range []string{"watching stream " + tuitest.Stream, "not begun", "waiting for its sender to begin", "nothing sent from here"} {
		if !strings.Contains(v, want) {
			t.Errorf("no %q in\n%s", want, v)
		}
	}
}

// A lost connection is shown in the header, and instead of the lanes while
// there are none.
func TestNoConnection(t *testing.T) {
	for _, c := range []struct {
		retry *display.Retry
		want  string
	}{{nil, "no connection"}, {&display.Retry{Try: 2}, "no connection, try 2"}, {&display.Retry{Try: 3, In: 8}, "no connection, try 3 in 8 s"}} {
		s := tuitest.State(tuitest.FourSpeakers, 60, 1)
		s.Conn, s.Retry = display.Reconnecting, c.retry
		if got := screenRows(testModel(s, 80, 24))[0]; !strings.Contains(got, "hubbub  "+c.want+"  ") {
			t.Errorf("%+v: the header is %q, want %q in it", c.retry, got, c.want)
		}
		s.Timeline.Lanes = nil
		testkit.Contains(t, strings.Join(screenRows(testModel(s, 80, 24))[1:], "\n"), "  "+c.want+"\n", c.retry, "without lanes the screen")
	}
	s := display.State{Conn: display.Connecting, Server: "built-in server"}
	screenHas(t, testModel(s, 80, 24), "connecting to built-in server")
	s = display.State{Conn: display.Closed}
	screenHas(t, testModel(s, 80, 24), "nobody spoke")
}

// Why a session failed stays on a screen of 80 columns.
func TestCauseOfAFailure(t *testing.T) {
	const cause = `the service closed the stream: against the service's rules (1008 "own fault")`
	s := tuitest.State(tuitest.FourSpeakers, 60, 1)
	s.Conn, s.ConnReason = display.Failed, cause
	m := testModel(s, 80, 24)
	screenHas(t, m, cause)
	screenHas(t, m, cause[:70], "t")
	press(m, "t")
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 8}) // no line for it
	screenHas(t, m, "× failed   "+cause[:60])
	screenHas(t, m, "× failed   "+cause[:50], "f")
	s.Dropped = 7
	m = testModel(s, 80, 5)
	screenHas(t, m, "× failed  1:00  7 dropped  "+cause[:50])
	m.Update(Msg{Text: "Anna was saved"})
	screenHas(t, m, "7 dropped  Anna was saved  "+cause[:30])
}

// What is wrong with the microphone is on every screen.
func TestInputProblem(t *testing.T) {
	const text = `no audio from "desk" since 0:58: reopening it until 2:58`
	s := tuitest.State(tuitest.FourSpeakers, 60, 1)
	s.InputProblem, s.InputLost = text, true
	for _, size := range [][2]int{{120, 34}, {80, 24}, {100, 9}, {58, 9}, {80, 5}} {
		screenHas(t, testModel(s, size[0], size[1]), text)
	}
	m := testModel(s, 120, 34)
	screenHas(t, m, text, "f")

	s.InputProblem = `no audio from "Remapped Monitor of Null Output" since 0:58: reopening it until 2:58`
	m = testModel(s, 80, 24)
	m.o.Microphones = &fakeMicrophones{}
	m.bindKeys()
	screenHas(t, m, "2:58; i chooses another")
	m.Update(tea.WindowSizeMsg{Width: 40, Height: 24})
	screenHas(t, m, "i chooses another")
}

// The header shows a recording; one that has stopped is named until the end.
func TestRecordingState(t *testing.T) {
	s := tuitest.State(tuitest.FourSpeakers, 60, 1)
	s.Recording = &display.Recording{Length: 58, Bytes: 1_856_000, Free: 12_400_000_000}
	screenHas(t, testModel(s, 120, 34), "REC 0:58 1.9 MB, 12 GB free")
	screenHas(t, testModel(s, 80, 24), "REC 0:58 1.9 MB  ")
	s.Conn = display.Closed
	screenHas(t, testModel(s, 120, 34), "recorded 0:58 1.9 MB  ")
	screenHasNot(t, testModel(s, 120, 34), "REC")
	s.Conn = display.Open
	const text = "recording stopped at 14:03:22, after 58s: the disk is full"
	s.Recording.Stopped = text
	for _, size := range [][2]int{{120, 34}, {80, 24}} {
		screenHas(t, testModel(s, size[0], size[1]), " REC stopped at 0:58 ")
		screenHas(t, testModel(s, size[0], size[1]), text)
	}
	screenHas(t, testModel(s, 80, 5), text)
	s.Conn, s.ConnReason = display.Reconnecting, "dial tcp 127.0.0.1:8580: connect: connection refused"
	screenHas(t, testModel(s, 120, 34), text+"; "+s.ConnReason)
	screenHas(t, testModel(s, 58, 20), text[:20]) // there is no REC
	screenHas(t, testModel(s, 80, 24), "connection refused")
	m := testModel(s, 80, 24)
	screenHas(t, m, text[:20], "f")
}

// TestNoAudio: without audio, as in a recording that has none, there is no level.
func TestNoAudio(t *testing.T) {
	s := tuitest.State(tuitest.FourSpeakers, 60, 1)
	s.Playback, s.Levels, s.Level = &display.Playback{Speed: 1}, nil, display.Level{}
	m := testModel(s, 80, 24)
	screenHasNot(t, m, m.glyphs.MeterLeft)
	screenHasNot(t, m, "input level")
}

// TestPresenterOnALowScreen: of more people than rows for names, the others are counted.
func TestPresenterOnALowScreen(t *testing.T) {
	s := tuitest.State(tuitest.FourSpeakers, 60, 1)
	for i := range s.Timeline.Lanes[:3] {
		s.Timeline.Lanes[i].Open, s.Timeline.Lanes[i].OpenSince = true, 58
	}
	s.Timeline.Lanes[3].Open = false
	m := testModel(s, 40, 8)
	for label, name := range map[string]string{"SPEAKER_00": "Anna Karenina Löwe", "SPEAKER_01": "Ben", "SPEAKER_02": "Cleo"} {
		_ = m.annotations.Update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Rename(label, name) })
	}
	press(m, "f")
	if rows := screenRows(m); strings.TrimSpace(rows[1]) != "Anna Karenina Löwe" || !strings.Contains(rows[2], "Ben") {
		t.Errorf("the names are\n%s", strings.Join(rows, "\n"))
	}
	screenHas(t, m, "and 1 more")
}
