package plain

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"

	"hubbub/protocol"
	"hubbub/protocol/errno"
	"hubbub/protocol/testkit"
	"hubbub/tui/display"
)

// threeTurns are the turns of two people, with times that need rounding.
var threeTurns = []protocol.Turn{
	{Speaker: "SPEAKER_00", Start: 1.24, End: 3.863},
	{Speaker: "SPEAKER_01", Start: 3.5, End: 4},
	{Speaker: "SPEAKER_00", Start: 3599.9996, End: 3725.0494},
}

func TestPrinterFormats(t *testing.T) {
	var events []protocol.Event
	for _, raw := range []string{
		`{"type":"diarization_speaker_start","data":{"timestamp":1.24,"speaker":"SPEAKER_00"}}`,
		"{\n  \"type\": \"new one\",\r\n  \"x\": [1, 2]\n}",
		"no\njson",
	} {
		e, _ := protocol.ParseEvent([]byte(raw))
		events = append(events, e)
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
			`{   "type": "new one",    "x": [1, 2] }` + "\n" +
			`"no\njson"` + "\n",
	} {
		var b bytes.Buffer
		p := NewPrinter(&b, format, "meeting")
		for i := range events {
			testkit.NoError(t, p.Event(events[i]))
			before := b.Len()
			testkit.NoError(t, p.Turn(threeTurns[i]))
			if format != FormatEvents && b.Len() == before {
				t.Errorf("%s: a finished turn is kept back", format)
			}
		}
		if b.String() != want {
			t.Errorf("%s:\n%s\nwant:\n%s", format, b.String(), want)
		}
	}
}

func TestPrinterKeepsControlCharactersOutOfLines(t *testing.T) {
	for _, format := range []Format{FormatLines, FormatJSON, FormatRTTM} {
		var b bytes.Buffer
		p := NewPrinter(&b, format, "live")
		testkit.NoError(t, p.Turn(protocol.Turn{Speaker: "a\x1b[2J\nb<&>", Start: 1, End: 2}))
		if out := b.String(); strings.Count(out, "\n") != 1 || strings.ContainsRune(out, '\x1b') {
			t.Errorf("%s: %q", format, out)
		}
	}
}

func TestPrinterTellsAClosedPipe(t *testing.T) {
	r, w, err := os.Pipe()
	testkit.NoError(t, err)
	defer w.Close()
	r.Close()
	p := NewPrinter(w, FormatLines, "live")
	if err := p.Turn(threeTurns[0]); !errno.Is(err, syscall.EPIPE) {
		t.Errorf("a pipe without a reader gives %v", err)
	}
	if err := p.Turn(threeTurns[1]); !errno.Is(err, syscall.EPIPE) {
		t.Errorf("the second call gives %v", err)
	}
	if err := NewAccessible(w, display.Controls{}).Error("x"); !errno.Is(err, syscall.EPIPE) {
		t.Errorf("the accessible display gives %v", err)
	}
}
