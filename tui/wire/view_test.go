package wire

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"

	"hubbub/protocol/testkit"
	"hubbub/protocol/trace"
	"hubbub/tui/canvas"
	"hubbub/tui/tuitest"
)

// now is the end of the made-up connection.
var now = time.Unix(1_000_000, 0)

func sampleView(t *testing.T, w, h int) (v *View, s Screen, shows func(want string)) {
	v = &View{}
	v.Refresh(tuitest.Log(false).Snapshot, now)
	s = Screen{W: w, H: h, Glyphs: canvas.NewGlyphs(false), Position: 42, Server: "built-in server", Key: func(command string) string { return command }}
	return v, s, func(want string) {
		t.Helper()
		c := canvas.New(w, h, s.Glyphs)
		v.Draw(c, s)
		c.Text(0, h-1, w, v.FilterText(), canvas.Plain)
		if text := ansi.Strip(c.Render(canvas.NewTheme(termenv.Ascii, true, true))); !strings.Contains(text, want) {
			t.Errorf("the view does not say %q:\n%s", want, text)
		}
	}
}

func TestFoldsAndFilters(t *testing.T) {
	v, _, shows := sampleView(t, 120, 34)
	folded := len(v.visibleRows())
	if folded > 30 {
		t.Errorf("400 chunks and their events are %d rows", folded)
	}
	shows("gap of 1.8 s, then number 300, 1.7 s behind, queue 17")
	shows("3 retransmitted")
	v.ToggleFold()
	if n := len(v.visibleRows()); n < 400 {
		t.Errorf("unfolded there are %d rows", n)
	}
	v.ToggleFold()
	v.NextKind() // messages
	for _, r := range v.visibleRows() {
		if r.record.Kind == trace.KindChunk {
			t.Fatal("a chunk among the messages")
		}
	}
	v.NextKind() // connection
	shows("TLS 1.3, h2")
	v.NextKind() // faults
	if rows := v.visibleRows(); len(rows) < 2 || len(rows) > 4 {
		t.Errorf("%d faults", len(rows))
	}
	shows("Invalid chunk size")
	v.NextKind()
	v.SetFilter("received")
	for _, r := range v.visibleRows() {
		if r.record.Dir != trace.Incoming {
			t.Fatalf("%s among what was received", r.record.Kind)
		}
	}
}

// TestFoldKeepsTheSelection: a chunk that is folded leaves its run selected.
func TestFoldKeepsTheSelection(t *testing.T) {
	v, _, _ := sampleView(t, 120, 34)
	v.ToggleFold()
	v.Move(-40, 34)
	chunk := v.visibleRows()[v.Index(v.visibleRows())].record
	v.ToggleFold()
	r := v.visibleRows()[v.Index(v.visibleRows())]
	if chunk.Kind != trace.KindChunk || r.run.Chunks < 2 || r.run.First > chunk.Number || r.record.Number < chunk.Number {
		t.Errorf("chunk %+v, folded %+v", chunk, r)
	}
}

// TestRawMovesTheMark: after a record was shown in full, the mark moves before the rows do.
func TestRawMovesTheMark(t *testing.T) {
	v, _, _ := sampleView(t, 120, 34)
	v.ToggleRaw()
	height := newLayout(34, true).listH
	top := v.Top(v.visibleRows(), height)
	v.Move(-1, 34)
	if got := v.Top(v.visibleRows(), height); got != top {
		t.Errorf("the first row was %d and is %d", top, got)
	}
}

// No figure is without an explanation.
func TestFiguresAreExplained(t *testing.T) {
	v, s, _ := sampleView(t, 200, 50)
	p := painter{v, s}
	explained := ""
	for _, f := range Figures {
		explained += f.Name + " " + f.Text + " "
	}
	for _, segment := range append(append(p.verdict(), p.figures()...), p.socket()...) {
		text := strings.TrimLeft(segment.Text, s.Glyphs.Live+" 0123456789.")
		if word := strings.Fields(text)[0]; text != "service on time" && !strings.Contains(explained, word) && word != "real" && word != "B" {
			t.Errorf("%q is not explained", segment.Text)
		}
	}
}

// TestSentencesHaveOneFullStop: what to do after a failure is a sentence of its own.
func TestSentencesHaveOneFullStop(t *testing.T) {
	l := trace.NewLog()
	l.Record(trace.Record{Kind: trace.KindFailure, Fault: true, Text: "127.0.0.1:8580 refuses connections: Nothing listens there."})
	l.Record(trace.Record{Stream: 1, Kind: trace.KindEnd, Type: "connection lost", Fault: true, Text: "reset: Turns up to here are kept."})
	s := l.Snapshot()
	latest := Latest(s, 5)
	if len(latest) != 2 || !strings.Contains(latest[1], "connection lost") {
		t.Errorf("the latest are %q", latest)
	}
	for _, text := range slices.Concat(Sentences(s.Status, now, 0, 0), latest) {
		if !strings.HasSuffix(text, ".") || strings.HasSuffix(text, "..") {
			t.Errorf("%q", text)
		}
	}
}

// TestSentences: what is known of a stream, and what is wrong with it.
func TestSentences(t *testing.T) {
	s := trace.Status{Opened: now.Add(-time.Minute), Messages: [2]int64{600, 1}, Chunks: 590, Pace: 1, Ahead: -1200 * time.Millisecond, Waiting: 1, MaxGap: 2 * time.Second, Lag: -1,
		Ping: 20 * time.Millisecond, Unanswered: now.Add(-3 * time.Second), Faults: 2}
	want := []string{"sent 600, 0 B, received 1, 0 B.", "open 1:00, warning: nothing received for 60 s: the service or the network hangs, no reply yet.", "pace 1.00, warning: 1.2 s behind, queue 1, warning: no pong for 3.0 s, 2 faults.",
		"warning: largest gap 2.0 s, longest write 0.0 ms."}
	testkit.EqualSlices(t, Sentences(s, now, 0, 60), want)
	s = trace.Status{Opened: now, Waiting: -1, Ping: 20 * time.Millisecond, Lag: time.Second, MaxLag: 2 * time.Second, Streams: 2}
	want = []string{"sent 0, 0 B, received 0, 0 B.", "stream 2 open 0:00, session 1:00, service on time, lag 1.0 s, max 2.0 s, no reply yet.", "ping 20 ms.", "nothing was sent yet."}
	testkit.EqualSlices(t, Sentences(s, now, 0, 60), want)
}

// TestWarnings are among the faults.
func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		r    trace.Record
		want bool
	}{
		{trace.Record{Kind: trace.KindChunk}, false},
		{trace.Record{Kind: trace.KindChunk, Gap: trace.StallGap + 1}, true},
		{trace.Record{Kind: trace.KindChunk, Took: trace.StallGap + 1}, true},
		{trace.Record{Kind: trace.KindChunk, Dropped: 1}, true},
		{trace.Record{Kind: trace.KindChunk, Socket: &trace.SocketState{Unacked: maxUnacked}}, false},
		{trace.Record{Kind: trace.KindChunk, Socket: &trace.SocketState{Unacked: maxUnacked + 1}}, true},
		{trace.Record{Kind: trace.KindPong, Took: trace.MaxPong + 1}, true},
		{trace.Record{Kind: trace.KindEvent, Lag: trace.MaxLag + 1}, true},
		{trace.Record{Kind: trace.KindResponse, Took: time.Hour}, false},
	} {
		l := trace.NewLog()
		l.Record(c.r)
		e := l.Snapshot().Entries.At(0)
		if r := (row{&e.Record, &e.Run}); r.warning() != c.want {
			t.Errorf("%+v: a warning %v", c.r, r.warning())
		}
	}
}
