package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/capture"
	"hubbub/capture/audiofile"
	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/protocol"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
	"hubbub/protocol/words"
	"hubbub/tui/display"
	"hubbub/tui/plain"
)

// slowRecogniser takes a time for each turn.
type slowRecogniser struct{ takes time.Duration }

func (r slowRecogniser) Recognise(ctx context.Context, _ []byte, _ bool) (string, []words.Word, error) {
	select {
	case <-time.After(r.takes):
		return "words", nil, nil
	case <-ctx.Done():
		return "", nil, ctx.Err()
	}
}

// silentOrNot is a recogniser that says whether it hears something.
type silentOrNot struct{}

func (silentOrNot) Recognise(_ context.Context, wav []byte, _ bool) (string, []words.Word, error) {
	return fmt.Sprint("silent: ", len(bytes.Trim(wav[audiofile.WAVHeaderBytes:], "\x00")) == 0), nil, nil
}

// TestWordsOfTracks: of several tracks the recogniser hears that of the turn.
func TestWordsOfTracks(t *testing.T) {
	w := newTranscriber(silentOrNot{}, func(label string) int { return map[string]int{"SPEAKER_00": 1}[label] })
	defer w.close()
	silent := make([]float32, capture.ChunkSamples)
	loud := slices.Repeat([]float32{0.5}, capture.ChunkSamples)
	for seq := range int64(50) {
		w.audio(capture.Chunk{Seq: seq, Samples: loud, Tracks: slices.Concat(silent, loud)})
	}
	for label, want := range map[string]string{"SPEAKER_00": "silent: false", "SPEAKER_01": "silent: true"} {
		w.turn(protocol.Turn{Speaker: label, Start: 1, End: 3})
		testkit.Equal(t, (<-w.transcripts).Text, want, label)
	}
}

// TestWordsAreWaitedFor: a turn is displayed with its words, after 10 s without them,
// and always in order.
func TestWordsAreWaitedFor(t *testing.T) {
	turns := []protocol.Turn{{Speaker: "SPEAKER_00", Start: 1, End: 2}, {Speaker: "SPEAKER_01", Start: 2, End: 2.1}, {Speaker: "SPEAKER_00", Start: 3, End: 4}}
	for _, c := range []struct {
		takes, after time.Duration
		text         string
		late         int64
	}{
		{3 * time.Second, 3 * time.Second, "words", 0},
		{time.Minute, wordsWait, "", 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newTranscriber(slowRecogniser{c.takes}, func(string) int { return 0 })
			defer w.close()
			for seq := range int64(50) {
				w.audio(capture.Chunk{Seq: seq, Tracks: make([]float32, capture.ChunkSamples)})
			}
			d := newStub(false)
			timeline := protocol.NewTimeline()
			out := output{timeline: timeline, rec: recording.NewRecorder(recording.Info{}, nil), display: d, transcriber: w, end: func() {}}
			began := time.Now()
			out.turns(slices.Clone(turns))
			for out.waiting() {
				select {
				case text := <-w.transcripts:
					out.transcript(text)
				case <-out.due():
					out.release()
				}
			}
			want := slices.Clone(turns)
			want[0].Text, want[2].Text = c.text, c.text // the other is too short
			if got := d.turns; !slices.Equal(got, want) || time.Since(began) != c.after || w.late.Load() != c.late {
				t.Errorf("%v after %v, %d late; want %v after %v", got, time.Since(began), w.late.Load(), want, c.after)
			}
		})
	}
}

// TestSkippedWords: an interrupt displays the turns that wait for their words: the second one, or the first one after the
// end of the input.
func TestSkippedWords(t *testing.T) {
	for _, ended := range []bool{false, true} {
		testSkippedWords(t, ended)
	}
}

func testSkippedWords(t *testing.T, ended bool) {
	s, _ := live(t, protocoltest.Service{Stream: func(conn *websocket.Conn) {
		protocoltest.UntilEnd(conn)
		protocoltest.Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0, "SPEAKER_00"))
		protocoltest.Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 0.5, "SPEAKER_00"))
		protocoltest.CloseWith(conn, 1000, "")
	}}, "")
	s.transcriber = newTranscriber(slowRecogniser{time.Hour}, func(string) int { return 0 })
	d := newStub(false)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first, second := ended, false
	var begun time.Time
	d.onRun = func() {
		defer func() { begun = time.Now() }()
		testkit.Eventually(t, "a turn", func() bool { return len(s.state().Timeline.Turns()) > 0 })
		if ended {
			<-s.inputEnded
			cancel()
		} else {
			first, second = s.SkipWords(), s.SkipWords()
		}
	}
	testkit.NoError(t, Run(ctx, s, d))
	if !first || second || len(d.turns) != 1 || d.turns[0].Text != "" || time.Since(begun) > wordsWait/2 {
		t.Errorf("skipped %v, again %v, turns %v after %v", first, second, d.turns, time.Since(begun))
	}
}

// TestFailureOfTheWords: every display reports that the recogniser fails.
func TestFailureOfTheWords(t *testing.T) {
	var out testkit.Buffer
	d := &accessible{out: plain.NewAccessible(&out, display.Controls{})}
	w := &transcriber{failures: make(chan error, 1)}
	w.failures <- errors.New("it does not respond")
	o := output{display: d, transcriber: w}
	o.wordsFailed()
	testkit.Contains(t, out.String(), "It does not respond. Check --words.")
}
