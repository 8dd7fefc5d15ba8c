package tui

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"hubbub/protocol"
)

var someTurns = []protocol.Turn{
	{Speaker: "SPEAKER_00", Start: 1.24, End: 3.863},
	{Speaker: "SPEAKER_01", Start: 3.5, End: 4},
	{Speaker: "SPEAKER_00", Start: 3599.9996, End: 3725.0494},
}

func TestPrinterFormats(t *testing.T) {
	events := []protocol.Event{
		{Raw: json.RawMessage(`{"type":"diarization_speaker_start","data":{"timestamp":1.24,"speaker":"SPEAKER_00"}}`)},
		{Raw: json.RawMessage("{\n  \"type\": \"new one\",\r\n  \"x\": [1, 2]\n}")},
		{Raw: json.RawMessage("no\njson \x00\xff")},
	}
	for format, want := range map[Format]string{
		FormatLines: "00:00:01.240 00:00:03.863 SPEAKER_00\n" +
			"00:00:03.500 00:00:04.000 SPEAKER_01\n" +
			"01:00:00.000 01:02:05.049 SPEAKER_00\n",
		FormatJSON: `{"speaker":"SPEAKER_00","start":1.24,"end":3.863}` + "\n" +
			`{"speaker":"SPEAKER_01","start":3.5,"end":4}` + "\n" +
			`{"speaker":"SPEAKER_00","start":3600,"end":3725.049}` + "\n",
		FormatRTTM: "SPEAKER meeting 1 1.240 2.623 <NA> <NA> SPEAKER_00 <NA> <NA>\n" +
			"SPEAKER meeting 1 3.500 0.500 <NA> <NA> SPEAKER_01 <NA> <NA>\n" +
			"SPEAKER meeting 1 3600.000 125.049 <NA> <NA> SPEAKER_00 <NA> <NA>\n",
		FormatEvents: `{"type":"diarization_speaker_start","data":{"timestamp":1.24,"speaker":"SPEAKER_00"}}` + "\n" +
			`{"type":"new one","x":[1,2]}` + "\n" +
			"no json \x00\xff\n",
	} {
		var b bytes.Buffer
		p, err := NewPrinter(&b, format, "meeting")
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			if err := p.Event(events[i]); err != nil {
				t.Fatal(err)
			}
			before := b.Len()
			if err := p.Turn(someTurns[i]); err != nil {
				t.Fatal(err)
			}
			if format != FormatEvents && b.Len() == before {
				t.Errorf("%s: a finished turn is kept back", format)
			}
		}
		if err := p.Flush(); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("%s:\n%s\nwant:\n%s", format, b.String(), want)
		}
	}
}

func TestPrinterKeepsControlCharactersOutOfLines(t *testing.T) {
	for _, format := range []Format{FormatLines, FormatJSON, FormatRTTM} {
		var b bytes.Buffer
		p, _ := NewPrinter(&b, format, "live")
		if err := p.Turn(protocol.Turn{Speaker: "a\x1b[2J\nb<&>", Start: 1, End: 2}); err != nil {
			t.Fatal(err)
		}
		if out := b.String(); strings.Count(out, "\n") != 1 || strings.ContainsRune(out, '\x1b') {
			t.Errorf("%s: %q", format, out)
		}
	}
}

func TestPrinterRefusesUnknownFormats(t *testing.T) {
	if _, err := NewPrinter(&bytes.Buffer{}, "xml", "live"); err == nil {
		t.Error("xml is taken")
	}
	for _, f := range Formats() {
		if _, err := NewPrinter(&bytes.Buffer{}, f, "live"); err != nil {
			t.Error(err)
		}
	}
}

func TestPrinterTellsAClosedPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	p, _ := NewPrinter(w, FormatLines, "live")
	if err := p.Turn(someTurns[0]); !errors.Is(err, ErrOutputClosed) {
		t.Errorf("a pipe without a reader gives %v", err)
	}
	if err := p.Flush(); !errors.Is(err, ErrOutputClosed) {
		t.Errorf("the second call gives %v", err)
	}
	if err := NewAccessible(w).Error("x"); !errors.Is(err, ErrOutputClosed) {
		t.Errorf("the accessible display gives %v", err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestPrinterKeepsItsFirstError(t *testing.T) {
	p, _ := NewPrinter(full{}, FormatLines, "live")
	for range 2 {
		if err := p.Turn(someTurns[0]); err == nil || errors.Is(err, ErrOutputClosed) || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("a full disk gives %v", err)
		}
	}
}

func TestAccessible(t *testing.T) {
	var b bytes.Buffer
	a := NewAccessible(&b)
	s := State{Source: "meeting.wav", Server: "built-in server"}
	say := func(f func()) {
		if err := a.State(s); err != nil {
			t.Fatal(err)
		}
		if f != nil {
			f()
		}
	}
	say(nil)
	say(nil) // nothing new, nothing said
	s.Link = Open
	say(func() { a.Turn(someTurns[0]) })
	s.Heard, s.Sent, s.ChunksSent, s.Level.Peak = 20, 20, 200, 0.4
	say(func() { a.Turn(someTurns[2]) })
	s.Dropped = 1
	say(func() { a.Error("Invalid chunk size\x1b[2J") })
	s.Dropped, s.Overflows = 4, 2
	say(nil)
	s.Link = Draining
	say(func() { a.Notice("recording kept in talk/") })
	s.Link, s.Finished = Closed, true
	say(nil)
	s.Link, s.LinkReason = Failed, "connection lost"
	say(nil)
	s.Timeline.Lanes = []protocol.Lane{
		{Speaker: "SPEAKER_00", Turns: someTurns[:1], Talk: 61},
		{Speaker: "SPEAKER_01", Turns: someTurns[1:], Talk: 20.4},
	}
	a.Summary(s)
	want := `Listening to meeting.wav.
Connecting to built-in server.
Connected to built-in server.
SPEAKER_00, 0:01 to 0:03
SPEAKER_00, 59:59 to 1:02:05
Warning: 1 chunk dropped, 1 in all.
Error: Invalid chunk size
Warning: 3 chunks dropped, 4 in all.
Warning: the device lost audio 2 times.
Input ended, waiting for the last turns.
recording kept in talk/
Connection closed.
Finished after 0:20.
Connection failed: connection lost.
0:20 heard, 2 speakers.
SPEAKER_00: 1:01, 75 percent, 1 turn.
SPEAKER_01: 0:20, 25 percent, 2 turns.
Warning: 4 chunks dropped, 0.4 seconds of audio never reached the server.
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}
