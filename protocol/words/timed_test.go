package words

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/capture/audiofile"
	"hubbub/protocol"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// TestTimedEndpoint asks endpoints for the times of words: one that has them, those
// that have none, and one that does not know the format.
func TestTimedEndpoint(t *testing.T) {
	for _, c := range []struct {
		name, response string
		refuse         int
		want           string
		calls          string
	}{
		{"words", `{"text":"good morning","words":[{"word":"good","start":0.1,"end":0.4},{"word":"morning","start":0.5,"end":0.9}]}`, 0,
			"good morning [{good 0.1 0.4} {morning 0.5 0.9}]", "verbose_json/word verbose_json/word"},
		{"segments", `{"text":"good morning","segments":[{"words":[{"word":" good","start":0.1,"end":0.4}]},{"words":[{"word":" mor","start":0.5,"end":0.7},{"word":"ning","start":0.7,"end":0.9},{"word":"."}]}]}`, 0,
			"good morning []", "verbose_json/word verbose_json/word"},
		{"pieces", `{"text":"good morning.","segments":[{"words":[{"word":" good","start":0.1,"end":0.4}]},{"words":[{"word":" mor","start":0.5,"end":0.7},{"word":"ning","start":0.7,"end":0.8},{"word":".","start":0.8,"end":0.9}]}]}`, 0,
			"good morning. [{good 0.1 0.4} {morning. 0.5 0.9}]", "verbose_json/word verbose_json/word"},
		{"text alone", `{"text":"good morning","words":null,"segments":"none"}`, 0, "good morning []", "verbose_json/word verbose_json/word"},
		{"unknown format", `{"text":"good morning"}`, 400, "good morning []", "verbose_json/word json/ json/"},
	} {
		var calls []string
		limited := Limit(endpointAt(t, func(w http.ResponseWriter, r *http.Request) {
			format := r.FormValue("response_format")
			calls = append(calls, format+"/"+r.FormValue("timestamp_granularities[]"))
			if format != "json" && c.refuse != 0 {
				w.WriteHeader(c.refuse)
				return
			}
			_, _ = w.Write([]byte(c.response))
		}), 1)
		for range 2 {
			text, words, err := limited.Recognise(t.Context(), audiofile.WAV(make([]float32, sampleRate)), true)
			if got := fmt.Sprint(text, " ", words); err != nil || got != c.want {
				t.Errorf("%s: %s, %v, want %s", c.name, got, err, c.want)
			}
		}
		testkit.Equal(t, strings.Join(calls, " "), c.calls, c.name, "calls")
	}
}

// TestRefusedTwice: an endpoint that refuses everything is asked for times again.
func TestRefusedTwice(t *testing.T) {
	e := endpointAt(t, protocoltest.Respond(422, ""))
	if _, _, err := e.Recognise(t.Context(), audiofile.WAV(nil), true); err == nil || e.untimed.Load() {
		t.Errorf("%v, %v", err, e.untimed.Load())
	}
}

func TestCheckWords(t *testing.T) {
	for body, want := range map[string]string{
		`[{"word":"a","start":0,"end":0},{"word":"b","start":0,"end":2.5}]`:    "[{a 0 0} {b 0 2.5}]",
		`[{"word":"\u001b[31m a  b","start":1,"end":2}]`:                       "[{[31m a b 1 2}]",
		`[{"word":"a","start":0,"end":1},{"word":" b","start":1,"end":2}]`:     "[{a 0 1} {b 1 2}]",
		`[{"word":" ","start":1,"end":2}]`:                                     "[]",
		`[{"word":"a","start":1,"end":0.5}]`:                                   "[]",
		`[{"word":"a","start":-1,"end":0.5}]`:                                  "[]",
		`[{"word":"a","start":1,"end":3.5}]`:                                   "[]",
		`[{"word":"a","start":1}]`:                                             "[]",
		`[{"word":"a","start":1,"end":2},{"word":"b","start":0,"end":1}]`:      "[]",
		`[{"word":"a","start":1,"end":2},{"word":"\ufffd","start":2,"end":2}]`: "[]",
	} {
		var list []wordJSON
		testkit.NoError(t, json.Unmarshal([]byte(body), &list))
		testkit.Equal(t, fmt.Sprint(checkWords(list, 2)), want, body)
	}
}

// FuzzWords: whatever an endpoint returns, words are in order, within the turn, and
// on one line.
func FuzzWords(f *testing.F) {
	f.Add([]byte(`{"text":"a b","words":[{"word":"a","start":0.1,"end":0.4},{"word":"b","start":0.5,"end":90}]}`))
	f.Add([]byte(`{"segments":[{"words":[{"word":" a","start":1e308,"end":1e308}]},null]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		turn := protocol.Turn{Speaker: "A", Start: 10, End: 12}
		for _, w := range place(checkWords(wordsIn(body), 2.4), 9.8, turn) {
			if !(w.Start >= turn.Start && w.End > w.Start && w.End <= turn.End) || w.Text == "" || strings.ContainsAny(w.Text, "\n\x1b") {
				t.Errorf("%+v", w)
			}
		}
	})
}

// timed is a function as a Recogniser that is asked for times.
type timed func(seconds float64) []Word

func (r timed) Recognise(_ context.Context, wav []byte, timed bool) (string, []Word, error) {
	if !timed {
		return "", nil, errors.New("not asked")
	}
	return "one three", r(float64(len(wav)-audiofile.WAVHeaderBytes) / 2 / sampleRate), nil
}

// recorded gives the turns of a silent recording their words.
func recorded(t *testing.T, r Recogniser, turns []protocol.Turn) *Recording {
	t.Helper()
	rec := NewRecording(r, turns, true, nil)
	for at := int64(0); float64(at) < (turns[len(turns)-1].End+1)*sampleRate; at += 8000 {
		testkit.NoError(t, rec.Audio(t.Context(), at, make([]float32, 8000)))
	}
	if failed, first, err := rec.Finish(t.Context()); failed > 0 || first != nil || err != nil {
		t.Fatalf("%d failed, %v, %v", failed, first, err)
	}
	return rec
}

// TestWordsOfARecording: words have the times of the recogniser, moved to those of
// the recording, or divide the time of their turn.
func TestWordsOfARecording(t *testing.T) {
	turns := func() []protocol.Turn {
		return []protocol.Turn{{Speaker: "A", Start: 10, End: 12}, {Speaker: "B", Start: 10.4, End: 12.8}}
	}
	known := timed(func(seconds float64) []Word { return []Word{{"one", 0.1, 0.5}, {"three", 0.7, seconds}} })
	for _, c := range []struct {
		r    Recogniser
		want string
	}{
		{known, "A 10 10.3 one, B 10.4 10.7 one, A 10.5 12 three, B 10.9 12.8 three, "},
		{timed(func(float64) []Word { return nil }), "A 10 10.75 one, B 10.4 11.3 one, A 10.75 12 three, B 11.3 12.8 three, "},
		{recogniser(func(context.Context, []byte) (string, error) { return "", nil }), ""},
	} {
		list := turns()
		got := ""
		for _, w := range recorded(t, c.r, list).Words() {
			got += fmt.Sprintf("%s %g %g %s, ", w.Speaker, w.Start, w.End, w.Text)
		}
		if got != c.want || (list[0].Text == "one three") != (c.want != "") {
			t.Errorf("got  %s\nwant %s (%v)", got, c.want, list)
		}
	}
}

// TestRecordingsTryAgain: what may succeed later is tried again, with the pause that
// the recogniser asks for; what may not is not.
func TestRecordingsTryAgain(t *testing.T) {
	for _, c := range []struct {
		err    Error
		fails  int
		want   string
		calls  int
		pauses time.Duration
	}{
		{Error{temporary: true}, 2, "w", 3, 5 * time.Second},
		{Error{temporary: true, retryAfter: 20 * time.Second}, 1, "w", 2, 20 * time.Second},
		{Error{temporary: true, retryAfter: time.Hour}, 1, "w", 2, time.Minute},
		{Error{temporary: true}, 99, "", 3, 5 * time.Second},
		{Error{}, 1, "", 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls, began := 0, time.Now()
			turns := []protocol.Turn{turnAt(1)}
			rec := NewRecording(recogniser(func(context.Context, []byte) (string, error) {
				if calls++; calls <= c.fails {
					return "", &c.err
				}
				return "w", nil
			}), turns, false, nil)
			testkit.NoError(t, rec.Audio(t.Context(), 0, make([]float32, 4*sampleRate)))
			if _, _, err := rec.Finish(t.Context()); err != nil {
				t.Fatal(err)
			}
			if turns[0].Text != c.want || calls != c.calls || time.Since(began) != c.pauses {
				t.Errorf("%+v: %q after %d calls and %v", c, turns[0].Text, calls, time.Since(began))
			}
		})
	}
}
