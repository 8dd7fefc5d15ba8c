package session

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/capture"
	"hubbub/capture/audiofile"
	"hubbub/cmd/hubbub/internal/crash"
	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/protocol"
	"hubbub/protocol/client"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/recovered"
	"hubbub/protocol/testkit"
	"hubbub/tui/display"
)

// stub is a display that keeps what it is given.
type stub struct {
	Display // of the methods below

	stays  bool          // like a screen
	onRun  func()        // called by run, unless nil
	quit   chan struct{} // closed by its user
	events int
	turns  []protocol.Turn
	failed error // returned by turn

	notices  []string
	finished bool
}

func newStub(stays bool) *stub { return &stub{stays: stays, quit: make(chan struct{})} }

func (d *stub) open(view) error { return nil }
func (d *stub) run(source, screen context.Context) error {
	if d.onRun != nil {
		d.onRun()
	}
	until := source
	if d.stays {
		until = screen
	}
	select {
	case <-until.Done():
	case <-d.quit:
	}
	return nil
}
func (d *stub) Properties() Properties     { return Properties{StaysOpen: d.stays} }
func (d *stub) event(protocol.Event) error { d.events++; return nil }
func (d *stub) finish() error              { d.finished = true; return nil }
func (d *stub) notice(text string, _ bool) error {
	d.notices = append(d.notices, text)
	return nil
}
func (d *stub) turn(t protocol.Turn) error {
	d.turns = append(d.turns, t)
	return d.failed
}

// printed is a display without a screen, and its standard output and standard error.
func printed(t *testing.T, o DisplayOptions) (d Display, out, errs *testkit.Buffer) {
	t.Helper()
	out, errs = new(testkit.Buffer), new(testkit.Buffer)
	return testkit.Must(NewDisplay(Streams{Stdout: out, Stderr: errs}, o))(t), out, errs
}

// newClient is a client of a fake service.
func newClient(t *testing.T, s protocoltest.Service) *client.Client {
	t.Helper()
	c := testkit.Must(client.New(client.Options{BaseURL: protocoltest.Serve(t, s.Handler()), APIKey: "key"}))(t)
	t.Cleanup(c.Close)
	return c
}

// live is a session that sends half a second of silence; dir is its recording.
func live(t *testing.T, s protocoltest.Service, dir string) (*Live, *recording.Recorder) {
	t.Helper()
	return liveWith(t, s, dir, client.ResilientOptions{Unpaced: true})
}

func liveWith(t *testing.T, s protocoltest.Service, dir string, o client.ResilientOptions) (*Live, *recording.Recorder) {
	t.Helper()
	wav := filepath.Join(t.TempDir(), "talk.wav")
	w := testkit.Must(audiofile.CreateWAV(wav))(t)
	testkit.NoError(t, w.Write(make([]float32, capture.SampleRate/2)))
	testkit.NoError(t, w.Close())
	source := testkit.Must(capture.Open(t.Context(), capture.Spec{Input: wav}))(t)
	stream := testkit.Must(newClient(t, s).OpenResilient(t.Context(), o))(t)
	t.Cleanup(stream.Close)
	annotations := protocol.NewAnnotationsStore(protocol.Annotations{})
	recorder := recording.NewRecorder(recording.NewInfo("test", source.Info(), "server", time.Second, capture.Fast), annotations)
	testkit.NoError(t, recorder.Start(dir))
	input, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	chunks := capture.NewChunkReader(input, source, capture.Fast)
	return NewLive(LiveParts{Source: source.Info(), Chunks: chunks, EndInput: end, Stream: stream, Recorder: recorder, Annotations: annotations}), recorder
}

// oneTurnWatched is the stream of protocoltest.OneTurn as a watcher receives it.
func oneTurnWatched(conn *websocket.Conn) {
	protocoltest.Send(conn, protocol.NewStreamStateEvent(protocol.StreamState{Status: protocol.StatusRunning, Timestamp: 0.3}))
	protocoltest.Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.05, "SPEAKER_00"))
	protocoltest.Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 0.1, "SPEAKER_00"))
	protocoltest.CloseWith(conn, 1000, protocol.StatusDone)
}

// watched is a session that watches a stream, of which send sends what happens.
func watched(t *testing.T, send func(*websocket.Conn)) *Watched {
	t.Helper()
	service := protocoltest.Service{Watch: func(w http.ResponseWriter, r *http.Request) {
		if conn := protocoltest.Upgrade(w, r); conn != nil {
			defer conn.Close()
			send(conn)
		}
	}}
	stream := testkit.Must(newClient(t, service).Watch(t.Context(), protocoltest.ID, time.Minute, false))(t)
	t.Cleanup(stream.Close)
	return NewWatched(protocoltest.ID, stream, protocol.NewAnnotationsStore(protocol.Annotations{}), "")
}

// recorded is a recording of one turn and a gap.
func recorded(t *testing.T) *recording.Recording {
	t.Helper()
	dir := t.TempDir()
	testkit.NoError(t, os.WriteFile(filepath.Join(dir, recording.TurnsFile), []byte("SPEAKER talk 1 0.050 0.050 <NA> <NA> SPEAKER_00 <NA> <NA>\n"), 0o600))
	testkit.NoError(t, os.WriteFile(filepath.Join(dir, recording.SessionFile), []byte(`{"version":1,"gaps":[{"start":0.01,"end":0.02}]}`), 0o600))
	return testkit.Must(recording.Read(t.Context(), dir))(t)
}

func replay(t *testing.T) *Replay {
	rec := recorded(t)
	return NewReplay(rec, 0, protocol.NewAnnotationsStore(rec.Annotations))
}

// kinds are the three kinds of session, each with one turn.
var kinds = map[string]func(t *testing.T) Session{
	"live":   func(t *testing.T) Session { s, _ := live(t, protocoltest.Service{}, ""); return s },
	"watch":  func(t *testing.T) Session { return watched(t, oneTurnWatched) },
	"replay": func(t *testing.T) Session { return replay(t) },
}

var oneTurn = []protocol.Turn{{Speaker: "SPEAKER_00", Start: 0.05, End: 0.1}}

// TestLifecycle runs each kind of source on a display that ends with it, and on
// a screen, which stays open until its user quits.
func TestLifecycle(t *testing.T) {
	for kind, source := range kinds {
		for _, stays := range []bool{false, true} {
			s, d := source(t), newStub(stays)
			ended := make(chan error, 1)
			go func() { ended <- Run(t.Context(), s, d) }()
			if stays {
				testkit.Eventually(t, "the end", func() bool { return s.state().Finished() })
				select {
				case <-ended:
					t.Fatalf("%s: the session ended before its user quit", kind)
				case <-time.After(50 * time.Millisecond):
				}
				close(d.quit)
			}
			if err := <-ended; err != nil {
				t.Errorf("%s: %v", kind, err)
			}
			if !slices.Equal(d.turns, oneTurn) || d.events != 2 || !d.finished || !s.state().Finished() {
				t.Errorf("%s: turns %v of %d events, finished %v", kind, d.turns, d.events, d.finished)
			}
		}
	}
}

// waitForEvents waits until the stream has begun.
func waitForEvents(t *testing.T, s Session) {
	t.Helper()
	testkit.Eventually(t, "events", func() bool { return s.state().Timeline.Counts.Events > 0 })
}

// TestPanics lets each part of each kind of session panic: the session ends in
// order, with the panic as its error.
func TestPanics(t *testing.T) {
	defer func() { crash.TestHook = func(string) {} }()
	for kind, source := range kinds {
		for _, place := range []string{"display", "receive", "send"} {
			if place == "send" && kind != "live" {
				continue
			}
			crash.TestHook = func(at string) {
				if at == place {
					panic("made for a test")
				}
			}
			s, d := source(t), newStub(true)
			if place == "display" {
				d.onRun = func() { waitForEvents(t, s); panic("made for a test") }
			}
			err := Run(t.Context(), s, d)
			if !recovered.Caught(err) || !strings.Contains(err.Error(), "made for a test") || !d.finished {
				t.Errorf("%s, %s: error %v, finished %v", kind, place, err, d.finished)
			}
		}
	}
}

// TestInterrupt ends the context: the session ends in order, with its turns.
func TestInterrupt(t *testing.T) {
	for kind, source := range kinds {
		s, d := source(t), newStub(true)
		ctx, cancel := context.WithCancel(t.Context())
		d.onRun = func() { waitForEvents(t, s); cancel() }
		if err := Run(ctx, s, d); err != nil || !d.finished {
			t.Errorf("%s: error %v, finished %v", kind, err, d.finished)
		}
		cancel()
	}
}

// TestInterruptOfTheWait ends the context while the service does not close the stream.
func TestInterruptOfTheWait(t *testing.T) {
	s, _ := live(t, protocoltest.Service{Stream: func(conn *websocket.Conn) {
		protocoltest.UntilEnd(conn)
		protocoltest.Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.05, "SPEAKER_00"))
		protocoltest.Drain(conn)
	}}, "")
	s.Shared = true
	d := newStub(false)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var begun time.Time
	d.onRun = func() { waitForEvents(t, s); begun = time.Now(); cancel() }
	err := Run(ctx, s, d)
	if want := []protocol.Turn{{Speaker: "SPEAKER_00", Start: 0.05, End: 0.5}}; err != nil || !d.finished || !slices.Equal(d.turns, want) || s.state().Conn != display.Closed {
		t.Errorf("error %v, finished %v, turns %v, %s", err, d.finished, d.turns, s.state().Conn)
	}
	if took := time.Since(begun); took > 8*time.Second { // without the interrupt, 10 s
		t.Errorf("took %s", took)
	}
}

// TestInterruptIsPatient ends the context while the built-in server still decides what it has
// received: its turns are displayed.
func TestInterruptIsPatient(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, _ := live(t, protocoltest.Service{Stream: func(conn *websocket.Conn) {
		protocoltest.UntilEnd(conn)
		<-ctx.Done()
		protocoltest.Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.05, "SPEAKER_00"))
		protocoltest.Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 0.25, "SPEAKER_00"))
		protocoltest.CloseWith(conn, 1000, "")
	}}, "")
	d := newStub(false)
	d.onRun = func() { <-s.inputEnded; cancel() }
	err := Run(ctx, s, d)
	if want := []protocol.Turn{{Speaker: "SPEAKER_00", Start: 0.05, End: 0.25}}; err != nil || !slices.Equal(d.turns, want) {
		t.Errorf("error %v, turns %v", err, d.turns)
	}
}

// TestWhatAnInterruptEnds: the input that it ends is still decided; after the end of the input
// it ends the wait for the service.
func TestWhatAnInterruptEnds(t *testing.T) {
	for _, before := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			stream := &closedStream{}
			l := NewLive(LiveParts{Stream: stream, Recorder: &recording.Recorder{}})
			if before {
				cancel()
			}
			l.drain(ctx)
			cancel()
			synctest.Wait()
			if stream.closed == before || (l.words.Err() != nil) == before {
				t.Errorf("before the end of the input %v: the stream was closed %v, words are skipped %v", before, stream.closed, l.words.Err() != nil)
			}
		})
	}
}

// closedStream says whether it was closed.
type closedStream struct {
	Stream
	closed bool
}

func (s *closedStream) Close() { s.closed = true }

// TestFirstFailureEndsTheSession has a display that cannot be written: the
// session ends, and what is under way is still recorded.
func TestFirstFailureEndsTheSession(t *testing.T) {
	for kind, source := range kinds {
		s, d := source(t), newStub(false)
		d.failed = os.ErrClosed
		if err := Run(t.Context(), s, d); err != os.ErrClosed || !d.finished {
			t.Errorf("%s: error %v, finished %v", kind, err, d.finished)
		}
	}
	ended := 0
	o := output{end: func() { ended++ }}
	for _, err := range []error{nil, os.ErrClosed, io.EOF} {
		o.keep(err)
	}
	if ended != 1 || o.failed != os.ErrClosed {
		t.Errorf("the input was ended %d times, %v", ended, o.failed)
	}
	dir := filepath.Join(t.TempDir(), "rec")
	s, writer := live(t, protocoltest.Service{}, dir)
	d := newStub(false)
	d.failed = os.ErrClosed
	testkit.Equal(t, Run(t.Context(), s, d), os.ErrClosed)
	testkit.NoError(t, writer.Close())
	rec, err := recording.Read(t.Context(), dir)
	if err != nil || !slices.Equal(rec.Turns(), oneTurn) || len(rec.Warnings) != 0 || rec.Info.Ended == nil {
		t.Errorf("%v, %+v", err, rec)
	}
}

// TestStreamThatFails tells a stream that ended with an error from one that is
// done; the screen stays open, and leaving a stream is no failure.
func TestStreamThatFails(t *testing.T) {
	fails := func(conn *websocket.Conn) {
		protocoltest.Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.05, "SPEAKER_00"))
		protocoltest.CloseWith(conn, 1000, "error: connection lost")
	}
	testkit.Contains(t, fmt.Sprint(Run(t.Context(), watched(t, fails), newStub(false))), "error: connection lost")
	goesOn := func(conn *websocket.Conn) {
		protocoltest.Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.05, "SPEAKER_00"))
		protocoltest.Drain(conn)
	}
	s, d := watched(t, goesOn), newStub(true)
	time.AfterFunc(20*time.Millisecond, func() { close(d.quit) })
	if err := Run(t.Context(), s, d); err != nil || !s.state().Finished() {
		t.Errorf("error %v", err)
	}
	if n := s.notices(); len(n) != 0 {
		t.Errorf("left while a turn was open: %q", n)
	}
}

// TestSenderThatSendsNothing: a watcher says why the position stands still.
func TestSenderThatSendsNothing(t *testing.T) {
	s := watched(t, protocoltest.Drain)
	now := time.Now()
	s.now = func() time.Time { return now }
	s.setStatus(protocol.StreamState{Status: protocol.StatusRunning, Timestamp: 12})
	now = now.Add(2 * time.Second)
	testkit.Equal(t, s.state().InputProblem, "", "after 2 s")
	now = now.Add(2 * time.Second)
	testkit.Contains(t, s.state().InputProblem, "since 0:12", "after 4 s")
	s.setStatus(protocol.StreamState{Status: protocol.StatusRunning, Timestamp: 13})
	testkit.Equal(t, s.state().InputProblem, "", "after more audio")
}

// TestReplayNames prints turns under the names of the recording: a label that
// is somebody's name, and one merged into it.
func TestReplayNames(t *testing.T) {
	dir := t.TempDir()
	turns := "SPEAKER talk 1 0.0 1.0 <NA> <NA> A <NA> <NA>\nSPEAKER talk 1 1.0 1.0 <NA> <NA> B <NA> <NA>\nSPEAKER talk 1 2.0 1.0 <NA> <NA> Anna <NA> <NA>\n"
	annotations := `{"version":1,"names":{"A":"Anna"},"merges":[{"from":"B","into":"A"}]}`
	for name, text := range map[string]string{recording.TurnsFile: turns, recording.NotesFile: annotations} {
		testkit.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	rec := testkit.Must(recording.Read(t.Context(), dir))(t)
	d := newStub(false)
	testkit.NoError(t, Run(t.Context(), NewReplay(rec, 0, protocol.NewAnnotationsStore(rec.Annotations)), d))
	var names []string
	for _, turn := range d.turns {
		names = append(names, turn.Speaker)
	}
	testkit.EqualSlices(t, names, []string{"Anna", "Anna", "Anna (2)"}, "names")
}

// TestReplayIsSearched: at its start, a replay has the turns of all of the recording for a search.
func TestReplayIsSearched(t *testing.T) {
	rec := recorded(t)
	s := NewReplay(rec, 1e-9, protocol.NewAnnotationsStore(rec.Annotations)).state()
	if turns := s.Searched().Timeline.Turns(); len(s.Timeline.Turns()) != 0 || !slices.Equal(turns, oneTurn) {
		t.Errorf("%+v at its start, of %+v", s.Timeline, turns)
	}
}

// TestReplayNamesOfRecognised: a typed name comes before a recognised one.
func TestReplayNamesOfRecognised(t *testing.T) {
	turns := []protocol.Turn{{Speaker: "SPEAKER_00", Start: 0, End: 1, Match: "Sam"}}
	for name, want := range map[string]string{"Anna": "00:00:00.000 00:00:01.000 Anna\n", "Sam": "00:00:00.000 00:00:01.000 Sam\n"} {
		annotations := testkit.Must(protocol.Annotations{}.Rename("SPEAKER_00", name))(t)
		d, out, _ := printed(t, DisplayOptions{Output: "lines"})
		r := NewReplay(recorded(t), 0, protocol.NewAnnotationsStore(annotations))
		testkit.NoError(t, d.open(r))
		testkit.NoError(t, r.deliver(d, []recording.Step{{Turns: slices.Clone(turns)}}))
		testkit.Equal(t, out.String(), want, name)
	}
}

// TestText writes turns and messages on standard output and everything else on
// standard error.
func TestText(t *testing.T) {
	d, out, errs := printed(t, DisplayOptions{Output: "rttm"})
	if d.Properties().Attended {
		t.Error("nobody looks at text")
	}
	s := watched(t, func(conn *websocket.Conn) {
		protocoltest.Send(conn, protocol.NewErrorEvent("something\x1b[2J happened"))
		protocoltest.Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 1, "A"))
		protocoltest.Send(conn, protocol.NewStreamStateEvent(protocol.StreamState{Status: protocol.StatusRunning, Timestamp: 2}))
		protocoltest.CloseWith(conn, 1000, protocol.StatusDone)
	})
	testkit.NoError(t, Run(t.Context(), s, d))
	// The turn without an end lasts until the newest position.
	testkit.Equal(t, out.String(), "SPEAKER x 1 1.000 1.000 <NA> <NA> A <NA> <NA>\n", "standard output")
	testkit.Equal(t, errs.String(), "hubbub: the service reports: something happened\nhubbub: turns whose end did not arrive: 1\n", "standard error")
	if _, err := NewDisplay(Streams{Stdout: out, Stderr: errs}, DisplayOptions{Output: "tui", Allowed: []string{"tui", "lines", "rttm"}}); err == nil {
		t.Error("a full screen without a terminal")
	}
}

// TestNothingIsRecordedAfterTheEnd: the recording of the session stays as it is, and no empty
// one is made.
func TestNothingIsRecordedAfterTheEnd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recording")
	s, recorder := live(t, protocoltest.Service{Stream: protocoltest.OneTurn}, dir)
	defer func() { _ = recorder.Close() }()
	testkit.NoError(t, Run(t.Context(), s, newStub(false)))
	_, err := s.toggleRecording()
	testkit.Contains(t, fmt.Sprint(err), "the session is over")
	if files, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}
