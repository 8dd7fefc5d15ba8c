package protocol

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hubbub/protocol/testkit"
)

func TestFormatRTTM(t *testing.T) {
	got := FormatRTTM("meeting", Turn{Speaker: "SPEAKER_00", Start: 1.24, End: 3.863})
	if want := "SPEAKER meeting 1 1.240 2.623 <NA> <NA> SPEAKER_00 <NA> <NA>"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got = FormatRTTM("my\tmeeting \x1b[0m", Turn{Speaker: "", Start: 0, End: 1})
	if want := "SPEAKER my_meeting_[0m 1 0.000 1.000 <NA> <NA> UNKNOWN <NA> <NA>"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWriteRTTMSortsAndKeepsItsInput(t *testing.T) {
	turns := []Turn{{Speaker: "B", Start: 2, End: 3}, {Speaker: "A", Start: 1, End: 4}}
	var b bytes.Buffer
	testkit.NoError(t, WriteRTTM(&b, "x", turns))
	if want := "SPEAKER x 1 1.000 3.000 <NA> <NA> A <NA> <NA>\nSPEAKER x 1 2.000 1.000 <NA> <NA> B <NA> <NA>\n"; b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
	testkit.Equal(t, turns[0].Speaker, "B", "the caller's turns were sorted")
}

func TestRTTMRoundTrip(t *testing.T) {
	word := rapid.StringMatching(`[A-Za-z0-9_.\-é]{1,12}`)
	rapid.Check(t, func(t *rapid.T) {
		turns := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Turn {
			start := rapid.IntRange(0, 1e8).Draw(t, "start")
			end := start + rapid.IntRange(1, 1e7).Draw(t, "length")
			return Turn{Speaker: word.Draw(t, "speaker"), Start: float64(start) / 1000, End: float64(end) / 1000}
		})).Draw(t, "turns")
		name := word.Draw(t, "name")
		var b bytes.Buffer
		testkit.NoError(t, WriteRTTM(&b, name, turns))
		read := testkit.Must(ReadRTTM(&b))(t)
		var got []Turn
		for _, r := range read {
			if r.File != name {
				t.Fatalf("name %q became %q", name, r.File)
			}
			got = append(got, r.Turn)
		}
		slices.SortStableFunc(turns, byStart)
		if !slices.Equal(got, turns) {
			t.Fatalf("got %v, want %v", got, turns)
		}
	})
}

func TestReadRTTM(t *testing.T) {
	const text = "\ufeff;; a comment\r\n" +
		"\n" +
		"SPKR-INFO a 1 <NA> <NA> <NA> unknown A <NA> <NA>\n" +
		"SPEAKER\ta\t1\t1.5\t2.25\t<NA>\t<NA>\tA\t<NA>\t<NA>\r\n" +
		"  SPEAKER b 1 .5 1e1 <NA> <NA> B\n" +
		"NON-SPEECH a 1 bad numbers <NA> other <NA> <NA>\n" +
		"SPEAKER a 1 3 0 <NA> <NA> empty <NA> <NA>\n" +
		"SPEAKER a 1 1.240 2.623 <NA> <NA> A <NA> <NA>" // no line break at the end
	got, err := ReadRTTM(strings.NewReader(text))
	want := []FileTurn{{"a", Turn{Speaker: "A", Start: 1.5, End: 3.75}}, {"b", Turn{Speaker: "B", Start: 0.5, End: 10.5}}, {"a", Turn{Speaker: "A", Start: 1.24, End: 3.863}}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestReadRTTMNamesTheLine(t *testing.T) {
	const good = "SPEAKER a 1 0 1 <NA> <NA> A <NA> <NA>\n\n"
	for line, want := range map[string]string{
		"SPEAKER a 1 x 1 <NA> <NA> A <NA> <NA>":    `RTTM line 3: start "x" is not a number`,
		"SPEAKER a 1 0 <NA> <NA> <NA> A <NA> <NA>": `RTTM line 3: duration "<NA>" is not a number`,
		"SPEAKER a 1 NaN 1 <NA> <NA> A <NA> <NA>":  `RTTM line 3: start "NaN"`,
		"SPEAKER a 1 0 inf <NA> <NA> A <NA> <NA>":  `RTTM line 3: duration "inf"`,
		"SPEAKER a 1 0 -1 <NA> <NA> A <NA> <NA>":   `RTTM line 3: duration -1 is negative`,
		"SPEAKER a 1 1e12 1 <NA> <NA> A <NA> <NA>": `RTTM line 3: start 1e12 is too large`,
		"Dear all,":       `RTTM line 3: "Dear" is not a type of RTTM`,
		"SPEAKER a 1 0 1": `RTTM line 3: SPEAKER needs at least 8 fields, found 5`,
		"SPEAKER a 1 0 1 " + strings.Repeat("x", 1e5): `RTTM line 3: `,
	} {
		turns, err := ReadRTTM(strings.NewReader(good + line))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60s: %v, want %q", line, err, want)
		}
		if len(turns) != 1 {
			t.Errorf("%.60s: %d turns before the error", line, len(turns))
		}
	}
}

func TestReadUEM(t *testing.T) {
	got, err := ReadUEM(strings.NewReader(";; x\n a 1 0 90.5\nb\tNA\t10 20 more\n"))
	if err != nil || !slices.Equal(got, []UEMRegion{{"a", 0, 90.5}, {"b", 10, 20}}) {
		t.Errorf("got %v, %v", got, err)
	}
	for line, want := range map[string]string{
		"a 1 0":    "UEM line 1: a region needs 4 fields",
		"a 1 x 1":  `UEM line 1: start "x"`,
		"a 1 0 y":  `UEM line 1: end "y"`,
		"a 1 5 5":  "UEM line 1: end 5 is not after start 5",
		"a 1 -1 5": "UEM line 1: start -1 is negative",
	} {
		if _, err := ReadUEM(strings.NewReader(line)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}
