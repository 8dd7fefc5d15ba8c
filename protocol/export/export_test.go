package export

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

var update = flag.Bool("update", false, "write the golden files again")

// hostile is a name that would do harm wherever it is taken for more than text.
const hostile = `<script>alert("x")</script> --> & 'n' {{.}}`

// annotated builds annotations as a person does.
func annotated(t testing.TB, steps ...func(protocol.Annotations) (protocol.Annotations, error)) protocol.Annotations {
	t.Helper()
	var a protocol.Annotations
	for _, step := range steps {
		var err error
		if a, err = step(a); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func rename(label, name string) func(protocol.Annotations) (protocol.Annotations, error) {
	return func(a protocol.Annotations) (protocol.Annotations, error) { return a.Rename(label, name) }
}

func merge(from, into string) func(protocol.Annotations) (protocol.Annotations, error) {
	return func(a protocol.Annotations) (protocol.Annotations, error) { return a.Merge(from, into) }
}

func bookmark(at float64, note string) func(protocol.Annotations) (protocol.Annotations, error) {
	return func(a protocol.Annotations) (protocol.Annotations, error) { return a.Bookmark(at, note) }
}

// meeting is a session with everything in it: names, a merge, overlap,
// bookmarks, and text that is out for harm.
func meeting(t testing.TB) *Document {
	turns := []protocol.Turn{
		{Speaker: "SPEAKER_00", Start: 0.5, End: 3.863}, {Speaker: "SPEAKER_01", Start: 3.2, End: 9.04},
		{Speaker: "SPEAKER_02", Start: 9.5, End: 12}, {Speaker: "SPEAKER_00", Start: 11.25, End: 15.125},
		{Speaker: "SPEAKER_03", Start: 15.2, End: 18}, {Speaker: "SPEAKER_04", Start: 18.5, End: 20},
		{Speaker: "SPEAKER_03", Start: 3661.5, End: 3663.25},
	}
	a := annotated(t,
		rename("SPEAKER_00", "Anna Maria"), rename("SPEAKER_01", hostile), rename("SPEAKER_03", "أمينة"),
		rename("SPEAKER_04", "=1+cmd"), merge("SPEAKER_02", "SPEAKER_01"),
		bookmark(11.5, "=Decision: <b>ship it</b> --> now"), bookmark(0, ""))
	return New(Info{Name: "monday", Title: "Monday & <Tuesday>", Started: time.Date(2031, 3, 4, 9, 30, 0, 0, time.UTC), Length: 3670,
		Gaps: []protocol.Span{{Start: 21, End: 1201}}}, turns, a)
}

func written(t testing.TB, f Format, d *Document) string {
	t.Helper()
	var b bytes.Buffer
	testkit.NoError(t, Write(&b, f, d))
	return b.String()
}

// TestGolden holds every format to the bytes that were looked at once.
func TestGolden(t *testing.T) {
	for _, f := range Formats() {
		t.Run(string(f), func(t *testing.T) {
			got := written(t, f, meeting(t))
			file := filepath.Join("testdata", "golden", f.File())
			if *update {
				testkit.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want := testkit.Must(os.ReadFile(file))(t)
			if got != string(want) {
				t.Errorf("%s has changed; look at it, then go test -update. Now:\n%s", file, got)
			}
		})
	}
}

// A turn that was moved to another speaker is theirs in what is exported; a
// speaker without any other turn is not there.
func TestTurnOfAnotherSpeaker(t *testing.T) {
	a := annotated(t, rename("A", "Anna"), func(a protocol.Annotations) (protocol.Annotations, error) { return a.MoveTurn("B", 3, 4, "A") })
	d := New(Info{}, []protocol.Turn{{Speaker: "A", Start: 1, End: 2}, {Speaker: "B", Start: 3, End: 4}}, a)
	var b bytes.Buffer
	testkit.NoError(t, Write(&b, RTTM, d))
	if got, want := b.String(), "SPEAKER live 1 1.000 1.000 <NA> <NA> Anna <NA> <NA>\nSPEAKER live 1 3.000 1.000 <NA> <NA> Anna <NA> <NA>\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if len(d.Speakers) != 1 || d.Speakers[0].Talk != 2 {
		t.Errorf("speakers %+v", d.Speakers)
	}
}

// TestEmpty writes a session in which nobody spoke.
func TestEmpty(t *testing.T) {
	d := New(Info{}, nil, protocol.Annotations{})
	for f, want := range map[Format]string{
		RTTM: `^$`, CSV: `^start,end,duration,speaker,label,bookmark,text\r\n$`, Audacity: `^$`, WebVTT: `^WEBVTT live\n$`,
		JSON: `"turns": \[\]`, HTML: `Nobody spoke`,
	} {
		if got := written(t, f, d); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: %q does not match %s", f, got, want)
		}
	}
}

// TestRecognised: a recognised speaker has the name of the voiceprint, unless another
// one was typed.
func TestRecognised(t *testing.T) {
	turns := []protocol.Turn{{Speaker: "A", Start: 1, End: 2}, {Speaker: "A", Start: 3, End: 4, Match: "Sam"}, {Speaker: "B", Start: 5, End: 6, Match: "Rick"}}
	d := New(Info{}, turns, annotated(t, rename("B", "Ben")))
	if len(d.Speakers) != 2 || d.Speakers[0].Name != "Sam" || d.Speakers[1].Name != "Ben" {
		t.Errorf("%+v", d.Speakers)
	}
}

// TestHarmless feeds text that is out for harm into every place there is, and
// looks for it where it would do any.
func TestHarmless(t *testing.T) {
	bad := "a\x1b[2J\r\nb\t\u202ec\x00\u2028<img src=x onerror=alert(1)>\"'`"
	d := New(Info{Name: bad, Title: bad}, []protocol.Turn{{Speaker: bad, Start: 1, End: 2}, {Speaker: "B", Start: 2, End: 3}},
		annotated(t, rename("B", bad+"2"), bookmark(1, bad)))
	for _, f := range Formats() {
		got := written(t, f, d)
		for _, c := range []string{"\x1b", "\x00", "\u202e", "\u2028", "b\tc"} {
			if strings.Contains(got, c) {
				t.Errorf("%s holds %q", f, c)
			}
		}
		if n := strings.Count(got, "\r"); n > 0 && f != CSV {
			t.Errorf("%s holds a carriage return", f)
		}
	}
	if strings.Contains(written(t, HTML, d), "<img") {
		t.Error("the page holds an element that came from a name")
	}
}

// TestFormulas: no cell begins as a formula does, whether a comma or a semicolon separates cells.
func TestFormulas(t *testing.T) {
	for text, want := range map[string]string{
		"=1+1": "'=1+1", "＠SUM": "'＠SUM", "yes;=cmd|'/C calc'!A0": "yes;'=cmd|'/C calc'!A0",
		`no; ""+1;-2`: `"no; """"'+1;'-2"`, "a=b; c-d": "a=b; c-d",
	} {
		got := written(t, CSV, New(Info{}, []protocol.Turn{{Speaker: "A", Start: 1, End: 2, Text: text}}, protocol.Annotations{}))
		if row := "1.000,2.000,1.000,A,A,," + want + "\r\n"; !strings.HasSuffix(got, row) {
			t.Errorf("%s is written as\n%swant\n%s", text, got, row)
		}
	}
}

// TestOrder: turns come in any order, and up to three at once.
func TestOrder(t *testing.T) {
	d := New(Info{}, []protocol.Turn{{Speaker: "B", Start: 4, End: 9}, {Speaker: "A\x00", Start: 1.0004, End: 10}, {Speaker: "C", Start: 5, End: 6}, {Speaker: "B", Start: 2, End: 3}}, protocol.Annotations{})
	got := fmt.Sprint(d.Turns, d.Length, overlaps(d.Turns))
	for _, s := range d.Speakers {
		got += fmt.Sprintf(" %s %d %q", s.Name, s.Turns, s.Labels)
	}
	if want := `[{0 1 10 } {1 2 3 } {1 4 9 } {2 5 6 }] 10 [{2 3} {4 9}] A 1 ["A"] B 2 ["B"] C 1 ["C"]`; got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// TestWrongTurns leaves out what no timeline has.
func TestWrongTurns(t *testing.T) {
	nan := 0.0
	nan /= nan
	d := New(Info{}, []protocol.Turn{{Speaker: "A", Start: 2, End: 1}, {Speaker: "A", Start: nan, End: 1}, {Speaker: "A", Start: -1, End: 1}, {Speaker: "B", Start: 1, End: 1e12}}, protocol.Annotations{})
	if len(d.Turns) != 0 || len(d.Speakers) != 0 {
		t.Errorf("%+v", d)
	}
}

func TestParseFormat(t *testing.T) {
	for in, want := range map[string]Format{"rttm": RTTM, " HTML ": HTML, "vtt": WebVTT, "webvtt": WebVTT} {
		if got, err := ParseFormat(in); err != nil || got != want {
			t.Errorf("%q is %q, %v", in, got, err)
		}
	}
	if _, err := ParseFormat("pdf"); err == nil || !strings.Contains(err.Error(), "audacity, vtt, html") {
		t.Errorf("pdf: %v", err)
	}
}

// TestAudio embeds a file, or refers to one by a path of any characters.
func TestAudio(t *testing.T) {
	wav := filepath.Join(t.TempDir(), "a.wav")
	testkit.NoError(t, os.WriteFile(wav, []byte("RIFF of a kind"), 0o600))
	d := meeting(t)
	d.Audio = &Audio{Path: wav}
	page := written(t, HTML, d)
	if !strings.Contains(page, `src="data:audio/wav;base64,UklGRiBvZiBhIGtpbmQ="`) || !strings.Contains(page, "media-src data:;") {
		t.Error("the audio is not in the page")
	}
	if !strings.HasSuffix(strings.TrimSpace(page), "</html>") {
		t.Error("the page ends with its audio")
	}
	d.Audio = &Audio{URL: `a b/c"d#1:2/ü.wav`}
	page = written(t, HTML, d)
	testkit.Contains(t, page, `src="./a%20b/c%22d%231%3A2/%C3%BC.wav"`, "the page refers to", regexp.MustCompile(`<audio.*`).FindString(page))
	d.Audio = &Audio{Path: wav + "-is-gone"}
	if err := Write(&bytes.Buffer{}, HTML, d); err == nil {
		t.Error("a page without its audio is no error")
	}
}
