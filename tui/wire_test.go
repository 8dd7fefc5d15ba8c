package tui

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"
	"pgregory.net/rapid"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
	"hubbub/protocol/trace"
	"hubbub/tui/canvas"
	"hubbub/tui/tuitest"
	"hubbub/tui/wire"
)

func noWire() trace.Snapshot { return trace.Snapshot{} }

// wireModel has the wire view open over such a stream.
func wireModel(l *trace.Log, w, h int) *model {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 42, 1), w, h)
	m.o.Wire = l.Snapshot
	m.o.SaveWire = func([]byte) (string, error) { return "./wire.ndjson", nil }
	m.bindKeys()
	press(m, "w")
	return m
}

// tickLater makes the model look again, a second later.
func (m *model) tickLater() {
	at := m.now().Add(time.Second)
	m.now = func() time.Time { return at }
	m.Update(tickMsg{})
}

// The second line says what is wrong in words.
func TestWireVerdict(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 34}, {80, 9}} {
		m := wireModel(tuitest.LateLog(14*time.Second, 20*time.Millisecond, time.Second), size[0], size[1])
		testkit.Contains(t, screenRows(m)[1], "events arrive 14 s late: the service is overloaded or something buffers them", size, "the verdict")
	}
}

// After a resume the clock of the stream begins again; the session's is beside
// it. The lost stream and dropped chunks are marked among the gaps.
func TestWireAfterAResume(t *testing.T) {
	l, begin := trace.NewLog(), time.Unix(1_000_000-40, 0)
	put := func(after time.Duration, stream int, r trace.Record) {
		r.At, r.Stream = begin.Add(after), stream
		l.Record(r)
	}
	put(0, 1, trace.Record{Dir: trace.Incoming, Kind: trace.KindHandshake, Code: 101})
	put(10*time.Second, 1, trace.Record{Kind: trace.KindEnd, Type: "lost", Fault: true, Text: "the connection broke"})
	m := wireModel(l, 120, 34)
	if n := strings.Count(screenRows(m)[4], m.glyphs.Gap); n != 1 {
		t.Errorf("a lost stream has %d marks", n)
	}
	put(12*time.Second, 2, trace.Record{Dir: trace.Incoming, Kind: trace.KindHandshake, Code: 101})
	put(13*time.Second, 2, trace.Record{Dir: trace.Outgoing, Kind: trace.KindChunk, Chunk: 80, Gap: 100 * time.Millisecond})
	put(20*time.Second, 2, trace.Record{Dir: trace.Outgoing, Kind: trace.KindChunk, Chunk: 90, Gap: 100 * time.Millisecond, Dropped: 9})
	m = wireModel(l, 120, 34)
	screenHas(t, m, "● stream 2 open 0:28, session 0:42")
	if line := screenRows(m)[4]; !strings.Contains(line, "gaps, last 60 s") || strings.Count(line, m.glyphs.Gap) != 2 {
		t.Errorf("the gaps are %q", line)
	}
	put(21*time.Second, 2, trace.Record{Dir: trace.Incoming, Kind: trace.KindEvent, Type: protocol.TypeSpeakerStart, Lag: time.Second, Text: "SPEAKER_00 at 12.345 s (session 92.345 s)"})
	screenHas(t, wireModel(l, 80, 24), "start SPEAKER_00 at 12.345 s … s), lag 1.0 s") // with the lag
}

// The help explains every figure of the view, at every size.
func TestWireHelpExplainsTheFigures(t *testing.T) {
	for _, size := range [][2]int{{40, 8}, {80, 24}, {120, 34}} {
		text, pages := helpText(t, wireModel(tuitest.Log(false), size[0], size[1]))
		text = strings.Join(strings.Fields(text), " ")
		for _, f := range wire.Figures {
			if !strings.Contains(text, f.Name) {
				t.Errorf("%v: the help does not explain %q", size, f.Name)
			}
			for word := range strings.FieldsSeq(f.Text) {
				if !strings.Contains(text, word) {
					t.Errorf("%v: the help does not contain %q of %q", size, word, f.Text)
				}
			}
		}
		if size[0] >= 80 && pages != 2 {
			t.Errorf("%v: %d pages", size, pages)
		}
	}
}

// The keys of the view filter, and esc shows all rows again before it closes the view.
func TestWireFilterKeys(t *testing.T) {
	m := wireModel(tuitest.Log(false), 120, 34)
	rows := func() int {
		_, n := m.wire.NDJSON()
		return n
	}
	all := rows()
	screenHas(t, m, "number 399", "u")
	screenHas(t, m, `messages, "received INVALID size"`, "u", "t", "/", "received INVALID size", "enter")
	testkit.Equal(t, rows(), 1, "rows match")
	screenHas(t, m, "nothing matches", "/", " nothing", "enter")
	press(m, "esc")
	if rows() != all {
		t.Errorf("after esc there are %d rows, want %d", rows(), all)
	}
	for _, key := range []string{"esc", "w"} {
		if press(m, key); m.wire != nil {
			t.Errorf("%s does not close the view", key)
		}
		press(m, "w")
	}
}

func TestWireSelectionStandsStill(t *testing.T) {
	l := tuitest.Log(false)
	m := wireModel(l, 100, 24)
	press(m, "up", "up", "up")
	want, _ := m.wire.SelectedNDJSON()
	find := func() int { return selectedLine(m) }
	y := find()
	for i := range 50 {
		l.Record(trace.Record{Stream: 1, Dir: trace.Incoming, Kind: trace.KindEvent, Text: fmt.Sprintf("more %d", i)})
		m.tickLater()
	}
	if got, _ := m.wire.SelectedNDJSON(); string(got) != string(want) {
		t.Errorf("selected is now %s, not %s", got, want)
	}
	if got := find(); got != y || y < 0 {
		t.Errorf("the selected row went from line %d to %d", y, got)
	}
	screenHasNot(t, m, "more 49")
	screenHas(t, m, "more 49", "end")
	screenHas(t, m, "POST https://diarization.example", "home")
	press(m, "pgdown", "down", "pgup")
	for range 100 {
		press(m, "down")
	}
	l.Record(trace.Record{Kind: trace.KindEvent, Text: "the newest"})
	m.tickLater()
	screenHas(t, m, "the newest") // at the end the list follows again
}

func TestWirePause(t *testing.T) {
	l := tuitest.Log(false)
	m := wireModel(l, 100, 24)
	press(m, "space")
	before := screenRows(m)
	l.Record(trace.Record{Stream: 1, Kind: trace.KindEvent, Text: "not seen"})
	m.tickLater()
	after := screenRows(m)
	for y := 1; y < 23; y++ {
		if before[y] != after[y] {
			t.Errorf("line %d moved while paused:\n%s\n%s", y, before[y], after[y])
		}
	}
	screenHas(t, m, "PAUSED +1")
	screenHas(t, m, "not seen", "space")
	screenHasNot(t, m, "PAUSED")
}

// selectedLine is the line of the selected row; -1 = none is shown.
func selectedLine(m *model) int {
	return slices.IndexFunc(screenRows(m), func(line string) bool { return strings.HasPrefix(line, m.glyphs.Selected) })
}

func TestWireMouse(t *testing.T) {
	m := wireModel(tuitest.Log(false), 100, 24)
	mouse := func(y int, button tea.MouseButton) {
		m.Update(tea.MouseMsg{X: 20, Y: y, Button: button, Action: tea.MouseActionPress})
	}
	mouse(0, tea.MouseButtonWheelUp)
	mouse(0, tea.MouseButtonWheelLeft) // does nothing
	if bottom := m.h - 2; selectedLine(m) != bottom-3 {
		t.Errorf("the wheel selects line %d, the last is %d", selectedLine(m), bottom)
	}
	mouse(0, tea.MouseButtonWheelDown)
	testkit.Equal(t, m.wire.Selected, 0, "the wheel selects line", selectedLine(m), "and does not follow")
	listY := 1 + slices.IndexFunc(screenRows(m), func(line string) bool { return strings.HasPrefix(line, m.glyphs.Rule) })
	mouse(listY+2, tea.MouseButtonLeft)
	testkit.Equal(t, selectedLine(m), listY+2, "a click selects line")
	before := m.wire.Selected
	mouse(listY-1, tea.MouseButtonLeft)
	testkit.Equal(t, m.wire.Selected, before, "a click beside the list selects a row")
}

// TestWireOfAHostileService draws what would harm a terminal.
func TestWireOfAHostileService(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := trace.NewLog()
		text := rapid.SampledFrom([]string{"\x1b]0;x\a", "\x1b[2J", "\u202eabc", "\u009b31m", "a\nb\tc", "雷\u200d👩", "e\u0301", "\xff\xfe", strings.Repeat("long ", 80)})
		kinds := []trace.Kind{trace.KindEvent, trace.KindError, trace.KindClose, trace.KindEnd, trace.KindResponse, trace.KindChunk, "new\x1b[1m"}
		for range rapid.IntRange(1, 40).Draw(rt, "n") {
			raw, _ := json.Marshal(text.Draw(rt, "raw"))
			if rapid.Bool().Draw(rt, "bare") { // C1 and bidi characters may stand in JSON as they are
				raw = []byte(`"` + "\u009b31m\u202e" + `"`)
			}
			l.Record(trace.Record{Stream: 1, Dir: rapid.SampledFrom([]trace.Direction{"", "in", "out", "\x1b"}).Draw(rt, "dir"),
				Kind: rapid.SampledFrom(kinds).Draw(rt, "kind"), Type: text.Draw(rt, "type"), Text: text.Draw(rt, "text"), Raw: raw,
				Code: rapid.SampledFrom([]int{0, 200, 1006, 4999, -1}).Draw(rt, "code"), Size: rapid.IntRange(0, math.MaxInt).Draw(rt, "size"),
				Took: time.Duration(rapid.Int64().Draw(rt, "took")), Gap: time.Duration(rapid.Int64().Draw(rt, "gap")), Lag: time.Duration(rapid.Int64().Draw(rt, "lag"))})
		}
		m := wireModel(l, rapid.IntRange(40, 130).Draw(rt, "w"), rapid.IntRange(8, 40).Draw(rt, "h"))
		m.theme = canvas.NewTheme(termenv.Ascii, true, true)
		for range rapid.IntRange(1, 12).Draw(rt, "keys") {
			press(m, rapid.SampledFrom([]string{"up", "down", "home", "end", "enter", "u", "t", "d", "space", "pgup", "pgdown", "?", "w", "/", "x", "esc"}).Draw(rt, "key"))
			lines := strings.Split(m.View(), "\n")
			if len(lines) != m.h {
				rt.Fatalf("%d lines on %d rows", len(lines), m.h)
			}
			for _, line := range lines {
				if w := ansi.StringWidth(line); w > m.w {
					rt.Fatalf("%d cells on %d columns: %q", w, m.w, line)
				}
				for _, r := range line {
					if r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x202e {
						rt.Fatalf("%q on the screen: %q", r, line)
					}
				}
			}
		}
	})
}

func TestWireRawSaysEverything(t *testing.T) {
	m := wireModel(tuitest.Log(false), 100, 40)
	press(m, "t", "/", "SPEAKER_00 at 35", "enter", "enter")
	screenHas(t, m, `{"type":"diarization_speaker_start","data":{"timestamp":35,"speaker":"SPEAKER_00"}}`)
	screenHas(t, m, `"lag_ms": 1005`)
	screenHasNot(t, m, "lag_ms", "esc")
	if m.wire == nil {
		t.Fatal("esc closed more than the raw message")
	}
	m.notify("wrote a file", canvas.Good)
	press(m, "esc") // the filter stays
	screenHasNot(t, m, "wrote a file")
	screenHas(t, m, `messages, "SPEAKER_00 at 35"`)
}

// TestWireRawStays: the record that is shown in full stays while others arrive, selected or not.
func TestWireRawStays(t *testing.T) {
	l := tuitest.Log(false)
	m := wireModel(l, 100, 40)
	press(m, "t", "enter")
	for range 2 {
		screenHas(t, m, `"lag_ms": 1005`)
		l.Record(trace.Record{At: m.now(), Stream: 1, Dir: trace.Incoming, Kind: trace.KindMessage, Text: "another one"})
		m.tickLater()
		screenHas(t, m, "another one")
	}
	screenHasNot(t, m, `"lag_ms": 1005`, "end")
	press(m, "enter")
	testkit.Equal(t, m.wire.Selected, 0, "the list does not follow the newest record again")
	for _, key := range []string{"up", "home"} {
		press(m, "enter", key, "enter")
		if m.wire.Selected == 0 {
			t.Errorf("the record that %s has selected is no longer selected", key)
		}
		press(m, "end")
	}
}

func TestWireCopy(t *testing.T) {
	t.Setenv("TMUX", "")
	t.Setenv("STY", "")
	var out strings.Builder
	m := wireModel(tuitest.Log(false), 120, 34)
	m.o.Output = &out
	press(m, "t")
	if cmd := press(m, "c"); cmd == nil {
		t.Fatal("nothing to do")
	} else if msg := runCommand(cmd); msg != nil {
		t.Errorf("%+v", msg)
	}
	screenHas(t, m, "1 record sent to the terminal's clipboard (OSC 52, not every terminal takes it; C writes a file)")
	text := strings.TrimSuffix(strings.TrimPrefix(out.String(), "\x1b]52;c;"), "\a")
	if text == out.String() {
		t.Fatalf("%q is no OSC 52", out.String())
	}
	line := string(testkit.Must(base64.StdEncoding.DecodeString(text))(t))
	var r map[string]any
	if err := json.Unmarshal([]byte(line), &r); err != nil || !strings.HasSuffix(line, "}\n") || r["kind"] != "event" {
		t.Errorf("%v: %q", err, line)
	}

	press(m, "t", "t", "t", "/", "sent", "enter") // everything that was sent
	var saved []byte
	m.o.SaveWire = func(b []byte) (string, error) { saved = b; return "./wire.ndjson", nil }
	m.Update(runCommand(press(m, "C")))
	lines := strings.Split(strings.TrimSpace(string(saved)), "\n")
	screenHas(t, m, fmt.Sprintf("wrote %d records to ./wire.ndjson", len(lines)))
	if len(lines) != 402 { // a request, a ping, each chunk
		t.Errorf("%d lines", len(lines))
	}
	for _, l := range lines {
		if !json.Valid([]byte(l)) {
			t.Errorf("%q", l)
		}
	}
	m.o.SaveWire = func([]byte) (string, error) { return "", errors.New("disk full") }
	m.Update(runCommand(press(m, "C")))
	screenHas(t, m, "disk full")

	m.theme = canvas.NewTheme(termenv.Ascii, true, true)
	if cmd := press(m, "c"); runCommand(cmd) != nil {
		t.Error("a dumb terminal was given something")
	}
	screenHas(t, m, "has no clipboard")
}

// BenchmarkWireView reads a full log once and redraws the view.
func BenchmarkWireView(b *testing.B) {
	l := trace.NewLog()
	for i := range int64(6000) {
		l.Record(trace.Record{Stream: 1, Dir: trace.Outgoing, Kind: trace.KindChunk, Size: 6400, Chunk: i, Gap: 100 * time.Millisecond})
		l.Record(trace.Record{Stream: 1, Dir: trace.Incoming, Kind: trace.KindEvent, Type: protocol.TypeSpeakerStart, Text: "SPEAKER_00 at 1.240 s"})
	}
	for name, keys := range map[string][]string{"folded": nil, "unfolded": {"u"}, "text": {"/", "speaker_00 at", "enter"}} {
		b.Run(name, func(b *testing.B) {
			m := wireModel(l, 120, 34)
			press(m, keys...)
			b.ReportAllocs()
			for b.Loop() {
				l.Record(trace.Record{Stream: 1, Dir: trace.Incoming, Kind: trace.KindPong})
				m.tickLater()
				m.View()
			}
		})
	}
}
