package tui

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"
	"pgregory.net/rapid"

	"hubbub/protocol"
	"hubbub/protocol/trace"
	"hubbub/tui/canvas"
)

func noWire() trace.Snapshot { return trace.Snapshot{} }

// wireBegin is when the made-up streams begin.
var wireBegin = time.Unix(1_000_000-42, 0)

// sampleLog is 42 s of a stream that stutters once: its service has something
// to say that no terminal should see.
func sampleLog(end bool) *trace.Log {
	l := trace.NewLog()
	waiting := 0
	l.SetWaiting(func() int { return waiting })
	at := wireBegin
	put := func(after time.Duration, r trace.Record) {
		at = at.Add(after)
		r.At = at
		l.Record(r)
	}
	ms := time.Millisecond
	put(0, trace.Record{Dir: trace.Outgoing, Kind: trace.KindRequest, Size: 2, Text: "POST https://diarization.example/v1/live", Raw: json.RawMessage(`{}`)})
	put(12*ms, trace.Record{Kind: trace.KindLookup, Took: 11 * ms, Text: "192.0.2.7"})
	put(21*ms, trace.Record{Kind: trace.KindConnect, Took: 20 * ms, Text: "192.0.2.7:443"})
	put(25*ms, trace.Record{Kind: trace.KindTLS, Took: 24 * ms, Text: "TLS 1.3, h2, certificate for diarization.example by Some Authority"})
	put(30*ms, trace.Record{Dir: trace.Incoming, Kind: trace.KindResponse, Size: 120, Code: 200, Took: 88 * ms, Text: "HTTP/2.0, X-Request-Id 7c1d"})
	put(50*ms, trace.Record{Stream: 1, Dir: trace.Incoming, Kind: trace.KindHandshake, Code: 101, Took: 49 * ms, Text: "HTTP/1.1"})
	put(0, trace.Record{Stream: 1, Dir: trace.Outgoing, Kind: trace.KindPing, Size: 8})
	put(23*ms, trace.Record{Stream: 1, Dir: trace.Incoming, Kind: trace.KindPong, Size: 8, Took: 23 * ms})
	for i := range int64(400) {
		gap, unacked := 100*ms, 0
		if i == 300 {
			gap, unacked, waiting = 1800*ms, 19_200, 17
		}
		took := 300 * time.Microsecond
		r := trace.Record{Stream: 1, Dir: trace.Outgoing, Kind: trace.KindChunk, Size: 6400, Chunk: i, Took: took, Gap: gap,
			Socket: &trace.SocketState{RTT: 21 * ms, RTTVar: 2 * ms, Window: 10, Unacked: unacked}}
		if i >= 300 {
			r.Ahead = -1700 * ms
			r.Socket.Retransmits = 3
		}
		if i == 0 {
			r.Gap = 0
		}
		put(gap, r)
		if i > 0 && i%60 == 0 {
			e := protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, float64(i-10)/10, "SPEAKER_00")
			put(5*ms, trace.Record{Stream: 1, Dir: trace.Incoming, Kind: trace.KindEvent, Type: e.Type, Size: len(e.Raw), Raw: e.Raw,
				Lag: 1005 * ms, Text: fmt.Sprintf("SPEAKER_00 at %.3f s", e.Timestamp)})
		}
		if i == 310 {
			raw := json.RawMessage(`{"type":"error","message":"Invalid chunk size"}`)
			put(2*ms, trace.Record{Stream: 1, Dir: trace.Incoming, Kind: trace.KindError, Type: "error", Fault: true, Text: "Invalid chunk size", Size: len(raw), Raw: raw})
		}
		waiting = max(waiting-1, 0)
	}
	if end {
		put(10*ms, trace.Record{Stream: 1, Dir: trace.Incoming, Kind: trace.KindClose, Code: 1008, Text: "audio more than 5 s ahead", Size: 25})
		put(0, trace.Record{Stream: 1, Kind: trace.KindEnd, Code: 1008, Type: "refused", Fault: true, Text: "the service closed the stream: against the service's rules"})
	}
	return l
}

// wireModel has the wire view open over such a stream.
func wireModel(l *trace.Log, w, h int) *model {
	m := testModel(sampleState(fourSpeakers, 42, 1), w, h)
	m.o.Wire = l.Snapshot
	o := m.o
	o.SaveWire = func([]byte) (string, error) { return "./wire.ndjson", nil }
	full := newModel(context.Background(), o, m.theme, m.glyphs)
	full.now = m.now
	full.refresh()
	full.Update(tea.WindowSizeMsg{Width: w, Height: h})
	press(full, "w")
	return full
}

// tick makes the model look again, a second later.
func (m *model) tickLater() {
	at := m.now().Add(time.Second)
	m.now = func() time.Time { return at }
	m.Update(tickMsg{})
}

func TestGoldenWire(t *testing.T) {
	for _, size := range [][2]int{{40, 8}, {80, 24}, {120, 34}} {
		for _, c := range []struct {
			name  string
			ascii bool
			end   bool
			keys  []string
		}{
			{"wire", false, false, nil},
			{"wire-ascii", true, false, nil},
			{"wire-end", false, true, []string{"up", "up", "up"}},
			{"wire-raw", false, false, []string{"t", "up", "up", "enter"}},
			{"wire-unfold", false, false, []string{"u", "space"}},
			{"wire-filter", false, false, []string{"/", "chunk", "enter", "t", "t", "t"}},
			{"wire-help", false, false, []string{"?"}},
		} {
			name := fmt.Sprintf("%s-%dx%d", c.name, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				m := wireModel(sampleLog(c.end), size[0], size[1])
				m.glyphs, m.dirty = canvas.NewGlyphs(c.ascii, false), true
				press(m, c.keys...)
				got := plainScreen(m)
				if c.ascii {
					for _, r := range string(got) {
						if r > 0x7e && r != '«' && r != '»' {
							t.Fatalf("%q on an ASCII screen", r)
						}
					}
				}
				golden(t, name, got)
			})
		}
	}
}

// The second line has a verdict in words, whether or not something is wrong.
func TestWireVerdict(t *testing.T) {
	m := wireModel(sampleLog(false), 120, 34)
	if line := screenRows(m)[1]; !strings.Contains(line, "● open 0:") || !strings.Contains(line, "service on time   lag 1.0 s, most 1.0 s   last reply ") {
		t.Errorf("the verdict is %q", line)
	}
	for _, size := range [][2]int{{80, 24}, {120, 34}, {80, 9}} {
		m = wireModel(lateLog(14*time.Second, 20*time.Millisecond, time.Second), size[0], size[1])
		if line := screenRows(m)[1]; !strings.Contains(line, "events arrive 14 s late: the service is overloaded or something buffers them") {
			t.Errorf("%v: the verdict is %q", size, line)
		}
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
}

// The help explains every figure of the view, at every size.
func TestWireHelpExplainsTheFigures(t *testing.T) {
	for _, size := range [][2]int{{40, 8}, {80, 24}, {120, 34}} {
		m := wireModel(sampleLog(false), size[0], size[1])
		text, pages := "", 0
		for press(m, "?"); m.help > 0; press(m, "?") {
			text += strings.Join(strings.Fields(ansi.Strip(m.View())), " ")
			pages++
		}
		for _, f := range wireFiguresHelp {
			if !strings.Contains(text, f.figure) || pages < 10 && !strings.Contains(text, strings.Fields(f.text)[0]) {
				t.Errorf("%v: the help does not explain %q", size, f.figure)
			}
		}
		if size[0] >= 80 && pages != 2 {
			t.Errorf("%v: %d pages", size, pages)
		}
	}
	// No figure is without an explanation.
	m := wireModel(sampleLog(false), 200, 50)
	explained := ""
	for _, f := range wireFiguresHelp {
		explained += f.figure + " " + f.text + " "
	}
	for _, s := range append(append(m.wireVerdict(), m.wireFigures()...), m.wireSocket()...) {
		text := strings.TrimLeft(s.Text, m.glyphs.Live+" 0123456789.")
		if word := strings.Fields(text)[0]; text != "service on time" && !strings.Contains(explained, word) && word != "real" && word != "B" {
			t.Errorf("%q is not explained", s.Text)
		}
	}
}

func TestWireFoldsAndFilters(t *testing.T) {
	l := sampleLog(false)
	m := wireModel(l, 120, 34)
	folded := len(m.wire.visibleRows())
	if folded > 30 {
		t.Errorf("400 chunks and their events are %d rows", folded)
	}
	screenHas(t, m, "gap of 1.8 s, then number 300, 1.7 s behind, queue 17")
	screenHas(t, m, "3 retransmitted")
	screenHas(t, m, "1.7 s behind")
	press(m, "u")
	if n := len(m.wire.visibleRows()); n < 400 {
		t.Errorf("unfolded there are %d rows", n)
	}
	press(m, "u", "t") // messages
	for _, r := range m.wire.visibleRows() {
		if r.record.Kind == trace.KindChunk {
			t.Fatal("a chunk among the messages")
		}
	}
	press(m, "t") // connection
	screenHas(t, m, "TLS 1.3, h2")
	press(m, "t") // faults
	if rows := m.wire.visibleRows(); len(rows) < 2 || len(rows) > 4 {
		t.Errorf("%d faults", len(rows))
	}
	screenHas(t, m, "Invalid chunk size")
	press(m, "t", "d", "d")
	for _, r := range m.wire.visibleRows() {
		if r.record.Dir != trace.Incoming {
			t.Fatalf("%s among what was received", r.record.Kind)
		}
	}
	press(m, "/", "INVALID size", "enter")
	if n := len(m.wire.visibleRows()); n != 1 {
		t.Errorf("%d rows match", n)
	}
	screenHas(t, m, `everything, received, "INVALID size"`)
	press(m, "/", " nothing", "enter")
	screenHas(t, m, "nothing matches")
	press(m, "esc")
	if n := len(m.wire.visibleRows()); n != folded {
		t.Errorf("after esc there are %d rows, want %d", n, folded)
	}
	press(m, "esc")
	if m.wire != nil {
		t.Error("esc does not leave the view")
	}
}

func TestWireSelectionStandsStill(t *testing.T) {
	l := sampleLog(false)
	m := wireModel(l, 100, 24)
	press(m, "up", "up", "up")
	rows := m.wire.visibleRows()
	want := *rows[m.wire.index(rows)].record
	find := func() int {
		for y, line := range screenRows(m) {
			if strings.HasPrefix(line, m.glyphs.Selected) {
				return y
			}
		}
		return -1
	}
	y := find()
	for i := range 50 {
		l.Record(trace.Record{Stream: 1, Dir: trace.Incoming, Kind: trace.KindEvent, Text: fmt.Sprintf("more %d", i)})
		m.tickLater()
	}
	rows = m.wire.visibleRows()
	if got := rows[m.wire.index(rows)].record; got.Number != want.Number {
		t.Errorf("number %d is selected now, not %d", got.Number, want.Number)
	}
	if got := find(); got != y || y < 0 {
		t.Errorf("the selected row went from line %d to %d", y, got)
	}
	screenHasNot(t, m, "more 49")
	press(m, "end")
	screenHas(t, m, "more 49")
	press(m, "home")
	screenHas(t, m, "POST https://diarization.example")
	press(m, "pgdown", "down", "pgup")
	for range 100 {
		press(m, "down")
	}
	l.Record(trace.Record{Kind: trace.KindEvent, Text: "the newest"})
	m.tickLater()
	screenHas(t, m, "the newest") // at the end the list follows again
}

func TestWirePause(t *testing.T) {
	l := sampleLog(false)
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
	press(m, "space")
	screenHas(t, m, "not seen")
	screenHasNot(t, m, "PAUSED")
}

func TestWireMouse(t *testing.T) {
	m := wireModel(sampleLog(false), 100, 24)
	mouse := func(y int, button tea.MouseButton) {
		m.Update(tea.MouseMsg{X: 20, Y: y, Button: button, Action: tea.MouseActionPress})
	}
	selected := func() int {
		rows := m.wire.visibleRows()
		return m.wire.index(rows) - len(rows) // -1 = the newest
	}
	mouse(0, tea.MouseButtonWheelUp)
	if selected() != -4 {
		t.Errorf("the wheel selects row %d", selected())
	}
	mouse(0, tea.MouseButtonWheelDown)
	if selected() != -1 || m.wire.Selected != 0 {
		t.Errorf("the wheel selects row %d, and does not follow", selected())
	}
	l := newWireLayout(m.w, m.h, false)
	mouse(l.listY+2, tea.MouseButtonLeft)
	if !strings.HasPrefix(screenRows(m)[l.listY+2], m.glyphs.Selected) {
		t.Errorf("a click selects row %d", selected())
	}
	before := m.wire.Selected
	mouse(l.listY-1, tea.MouseButtonLeft)
	if m.wire.Selected != before {
		t.Error("a click beside the list selects a row")
	}
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
				Code: rapid.SampledFrom([]int{0, 200, 1006, 4999, -1}).Draw(rt, "code"), Size: rapid.IntRange(0, 1<<40).Draw(rt, "size"),
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
	m := wireModel(sampleLog(false), 100, 40)
	press(m, "t", "/", "SPEAKER_00 at 35", "enter", "enter")
	screenHas(t, m, `{"type":"diarization_speaker_start","data":{"timestamp":35,"speaker":"SPEAKER_00"}}`)
	screenHas(t, m, `"lag_ms": 1005`)
	press(m, "esc")
	screenHasNot(t, m, "lag_ms")
	if m.wire == nil {
		t.Error("esc closed more than the raw message")
	}
}

func TestWireCopy(t *testing.T) {
	t.Setenv("TMUX", "")
	t.Setenv("STY", "")
	var out strings.Builder
	m := wireModel(sampleLog(false), 120, 34)
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
	line := decode64(t, text)
	var r map[string]any
	if err := json.Unmarshal([]byte(line), &r); err != nil || !strings.HasSuffix(line, "}\n") || r["kind"] != "event" {
		t.Errorf("%v: %q", err, line)
	}

	press(m, "t", "t", "t", "d") // everything that was sent
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
				m.wire.readAt = time.Time{}
				m.Update(tickMsg{})
				m.View()
			}
		})
	}
}

func decode64(t *testing.T, text string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
