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
)

func noWire() protocol.WireSnapshot { return protocol.WireSnapshot{} }

// wireBegin is when the made-up streams begin.
var wireBegin = time.Unix(1_000_000-42, 0)

// someWire is 42 s of a stream that stutters once: its service has something
// to say that no terminal should see.
func someWire(end bool) *protocol.WireLog {
	l := protocol.NewWireLog()
	waiting := 0
	l.SetQueue(func() int { return waiting })
	at := wireBegin
	put := func(after time.Duration, r protocol.WireRecord) {
		at = at.Add(after)
		r.At = at
		l.Record(r)
	}
	ms := time.Millisecond
	put(0, protocol.WireRecord{Dir: protocol.Outgoing, Kind: protocol.WireRequest, Size: 2, Text: "POST https://diarization.example/v1/live", Raw: json.RawMessage(`{}`)})
	put(12*ms, protocol.WireRecord{Kind: protocol.WireLookUp, Took: 11 * ms, Text: "192.0.2.7"})
	put(21*ms, protocol.WireRecord{Kind: protocol.WireConnect, Took: 20 * ms, Text: "192.0.2.7:443"})
	put(25*ms, protocol.WireRecord{Kind: protocol.WireTLS, Took: 24 * ms, Text: "TLS 1.3, h2, certificate for diarization.example by Some Authority"})
	put(30*ms, protocol.WireRecord{Dir: protocol.Incoming, Kind: protocol.WireAnswer, Size: 120, Code: 200, Took: 88 * ms, Text: "HTTP/2.0, X-Request-Id 7c1d"})
	put(50*ms, protocol.WireRecord{Stream: 1, Dir: protocol.Incoming, Kind: protocol.WireHandshake, Code: 101, Took: 49 * ms, Text: "HTTP/1.1"})
	put(0, protocol.WireRecord{Stream: 1, Dir: protocol.Outgoing, Kind: protocol.WirePing, Size: 8})
	put(23*ms, protocol.WireRecord{Stream: 1, Dir: protocol.Incoming, Kind: protocol.WirePong, Size: 8, Took: 23 * ms})
	for i := range int64(400) {
		gap, unacked := 100*ms, 0
		if i == 300 {
			gap, unacked, waiting = 1800*ms, 19_200, 17
		}
		took := 300 * time.Microsecond
		r := protocol.WireRecord{Stream: 1, Dir: protocol.Outgoing, Kind: protocol.WireChunk, Size: 6400, Chunk: i, Took: took, Gap: gap,
			Socket: &protocol.SocketState{RTT: 21 * ms, RTTVar: 2 * ms, Window: 10, Unacked: unacked}}
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
			put(5*ms, protocol.WireRecord{Stream: 1, Dir: protocol.Incoming, Kind: protocol.WireEvent, Type: e.Type, Size: len(e.Raw), Raw: e.Raw,
				Lag: 1005 * ms, Text: fmt.Sprintf("SPEAKER_00 at %.3f s", e.Timestamp)})
		}
		if i == 310 {
			raw := json.RawMessage(`{"type":"error","message":"Invalid chunk size"}`)
			put(2*ms, protocol.WireRecord{Stream: 1, Dir: protocol.Incoming, Kind: protocol.WireError, Type: "error", Fault: true, Text: "Invalid chunk size", Size: len(raw), Raw: raw})
		}
		waiting = max(waiting-1, 0)
	}
	if end {
		put(10*ms, protocol.WireRecord{Stream: 1, Dir: protocol.Incoming, Kind: protocol.WireClose, Code: 1008, Text: "audio more than 5 s ahead", Size: 25})
		put(0, protocol.WireRecord{Stream: 1, Kind: protocol.WireEnd, Code: 1008, Type: "refused", Fault: true, Text: "the service closed the stream: against the service's rules"})
	}
	return l
}

// wireModel has the wire view open over such a stream.
func wireModel(l *protocol.WireLog, w, h int) *model {
	m := still(sessionAt(talkOf4, 42, 1), w, h)
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
func (m *model) tickOn() {
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
				m := wireModel(someWire(c.end), size[0], size[1])
				m.glyphs, m.dirty = glyphsFor(c.ascii, false), true
				press(m, c.keys...)
				got := picture(m)
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

func TestWireFoldsAndFilters(t *testing.T) {
	l := someWire(false)
	m := wireModel(l, 120, 34)
	folded := len(m.wireRows())
	if folded > 30 {
		t.Errorf("400 chunks and their events are %d rows", folded)
	}
	screenHas(t, m, "1.8 s of none, then number 300, 1.7 s behind, 17 wait")
	screenHas(t, m, "3 sent again")
	screenHas(t, m, "1.7 s behind")
	press(m, "u")
	if n := len(m.wireRows()); n < 400 {
		t.Errorf("unfolded there are %d rows", n)
	}
	press(m, "u", "t") // messages
	for _, r := range m.wireRows() {
		if r.record.Kind == protocol.WireChunk {
			t.Fatal("a chunk among the messages")
		}
	}
	press(m, "t") // connection
	screenHas(t, m, "TLS 1.3, h2")
	press(m, "t") // faults
	if rows := m.wireRows(); len(rows) < 2 || len(rows) > 4 {
		t.Errorf("%d faults", len(rows))
	}
	screenHas(t, m, "Invalid chunk size")
	press(m, "t", "d", "d")
	for _, r := range m.wireRows() {
		if r.record.Dir != protocol.Incoming {
			t.Fatalf("%s among what was received", r.record.Kind)
		}
	}
	press(m, "/", "INVALID size", "enter")
	if n := len(m.wireRows()); n != 1 {
		t.Errorf("%d rows match", n)
	}
	screenHas(t, m, `everything, received, "INVALID size"`)
	press(m, "/", " nothing", "enter")
	screenHas(t, m, "nothing matches")
	press(m, "esc")
	if n := len(m.wireRows()); n != folded {
		t.Errorf("after esc there are %d rows, want %d", n, folded)
	}
	press(m, "esc")
	if m.wire != nil {
		t.Error("esc does not leave the view")
	}
}

func TestWireSelectionStandsStill(t *testing.T) {
	l := someWire(false)
	m := wireModel(l, 100, 24)
	press(m, "up", "up", "up")
	rows := m.wireRows()
	want := *rows[m.wire.index(rows)].record
	find := func() int {
		for y, line := range rowsOf(m) {
			if strings.HasPrefix(line, m.glyphs.selected) {
				return y
			}
		}
		return -1
	}
	y := find()
	for i := range 50 {
		l.Record(protocol.WireRecord{Stream: 1, Dir: protocol.Incoming, Kind: protocol.WireEvent, Text: fmt.Sprintf("more %d", i)})
		m.tickOn()
	}
	rows = m.wireRows()
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
	l.Record(protocol.WireRecord{Kind: protocol.WireEvent, Text: "the newest"})
	m.tickOn()
	screenHas(t, m, "the newest") // at the end the list follows again
}

func rowsOf(m *model) []string { return strings.Split(ansi.Strip(m.View()), "\n") }

func TestWirePause(t *testing.T) {
	l := someWire(false)
	m := wireModel(l, 100, 24)
	press(m, "space")
	before := rowsOf(m)
	l.Record(protocol.WireRecord{Stream: 1, Kind: protocol.WireEvent, Text: "not seen"})
	m.tickOn()
	after := rowsOf(m)
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

// TestWireOfAnEvilService draws what would harm a terminal.
func TestWireOfAnEvilService(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := protocol.NewWireLog()
		text := rapid.SampledFrom([]string{"\x1b]0;x\a", "\x1b[2J", "\u202eabc", "\u009b31m", "a\nb\tc", "雷\u200d👩", "e\u0301", "\xff\xfe", strings.Repeat("long ", 80)})
		kinds := []protocol.WireKind{protocol.WireEvent, protocol.WireError, protocol.WireClose, protocol.WireEnd, protocol.WireAnswer, protocol.WireChunk, "new\x1b[1m"}
		for range rapid.IntRange(1, 40).Draw(rt, "n") {
			raw, _ := json.Marshal(text.Draw(rt, "raw"))
			if rapid.Bool().Draw(rt, "bare") { // C1 and bidi characters may stand in JSON as they are
				raw = []byte(`"` + "\u009b31m\u202e" + `"`)
			}
			l.Record(protocol.WireRecord{Stream: 1, Dir: rapid.SampledFrom([]protocol.Direction{"", "in", "out", "\x1b"}).Draw(rt, "dir"),
				Kind: rapid.SampledFrom(kinds).Draw(rt, "kind"), Type: text.Draw(rt, "type"), Text: text.Draw(rt, "text"), Raw: raw,
				Code: rapid.SampledFrom([]int{0, 200, 1006, 4999, -1}).Draw(rt, "code"), Size: rapid.IntRange(0, 1<<40).Draw(rt, "size"),
				Took: time.Duration(rapid.Int64().Draw(rt, "took")), Gap: time.Duration(rapid.Int64().Draw(rt, "gap")), Lag: time.Duration(rapid.Int64().Draw(rt, "lag"))})
		}
		m := wireModel(l, rapid.IntRange(40, 130).Draw(rt, "w"), rapid.IntRange(8, 40).Draw(rt, "h"))
		m.theme = newTheme(termenv.Ascii, true, true)
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
	m := wireModel(someWire(false), 100, 40)
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
	m := wireModel(someWire(false), 120, 34)
	m.o.Output = &out
	press(m, "t")
	if cmd := press(m, "c"); cmd == nil {
		t.Fatal("nothing to do")
	} else if msg := runCmd(cmd); msg != nil {
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
	m.Update(runCmd(press(m, "C")))
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
	m.Update(runCmd(press(m, "C")))
	screenHas(t, m, "disk full")

	m.theme = newTheme(termenv.Ascii, true, true)
	if cmd := press(m, "c"); runCmd(cmd) != nil {
		t.Error("a dumb terminal was given something")
	}
	screenHas(t, m, "has no clipboard")
}

// runCmd runs a command of one key.
func runCmd(cmd tea.Cmd) tea.Msg {
	if cmd == nil {
		return nil
	}
	msg := cmd()
	if batch, ok := msg.(tea.BatchMsg); ok {
		msg = nil
		for _, c := range batch {
			if m := runCmd(c); m != nil {
				msg = m
			}
		}
	}
	return msg
}

func TestConsoleSaysTheWire(t *testing.T) {
	for _, c := range []struct {
		end  bool
		want []string
	}{
		{false, []string{"402 messages sent", "1.7 s behind", "3 segments sent again", "A ping takes 23 ms.", "received error: Invalid chunk size.", "received event: start SPEAKER_00 at 35.000 s, lag 1.0 s."}},
		{true, []string{"The stream is over: refused, the service closed the stream", "received close: 1008 against the service's rules"}},
	} {
		var b strings.Builder
		k := NewConsole(NewAccessible(&b), ConsoleOptions{Snapshot: func() State { return State{} }, Wire: someWire(c.end).Snapshot})
		for _, line := range []string{"wire", "wire 0", "help"} {
			if err := k.Do(line); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range append(c.want, "0 is not a number", "wire [COUNT]: says how the wire is") {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%q is not said:\n%s", want, b.String())
			}
		}
		if strings.Contains(b.String(), "%!") {
			t.Errorf("%s", b.String())
		}
	}
	var b strings.Builder
	k := NewConsole(NewAccessible(&b), ConsoleOptions{Snapshot: func() State { return State{} }})
	_ = k.Do("wire")
	if !strings.Contains(b.String(), "There is no command wire") {
		t.Errorf("%s", b.String())
	}
}

// BenchmarkWireView is one look at a log that is full, and its view drawn anew.
func BenchmarkWireView(b *testing.B) {
	l := protocol.NewWireLog()
	for i := range int64(6000) {
		l.Record(protocol.WireRecord{Stream: 1, Dir: protocol.Outgoing, Kind: protocol.WireChunk, Size: 6400, Chunk: i, Gap: 100 * time.Millisecond})
		l.Record(protocol.WireRecord{Stream: 1, Dir: protocol.Incoming, Kind: protocol.WireEvent, Type: protocol.TypeSpeakerStart, Text: "SPEAKER_00 at 1.240 s"})
	}
	for name, keys := range map[string][]string{"folded": nil, "unfolded": {"u"}, "text": {"/", "speaker_00 at", "enter"}} {
		b.Run(name, func(b *testing.B) {
			m := wireModel(l, 120, 34)
			press(m, keys...)
			b.ReportAllocs()
			for b.Loop() {
				l.Record(protocol.WireRecord{Stream: 1, Dir: protocol.Incoming, Kind: protocol.WirePong})
				m.wire.asked = time.Time{}
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
