package session

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/capture"
	"hubbub/protocol"
	"hubbub/protocol/client"
	"hubbub/protocol/export"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
	"hubbub/tui"
	"hubbub/tui/display"
	"hubbub/tui/plain"
)

// TestExport exports a session of each kind: beside its recording, or into a new
// folder. A turn that is open is exported as far as it was decided.
func TestExport(t *testing.T) {
	t.Chdir(t.TempDir())
	annotations := testkit.Must(protocol.Annotations{}.Rename("SPEAKER_00", "Anna"))(t)
	open := func(conn *websocket.Conn) {
		protocoltest.Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.05, "SPEAKER_00"))
		protocoltest.Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.1, "SPEAKER_01"))
		protocoltest.Drain(conn)
	}
	dir := filepath.Join(t.TempDir(), "rec")
	recorded, writer := live(t, protocoltest.Service{}, dir)
	unrecorded, _ := live(t, protocoltest.Service{}, "")
	for _, c := range []struct {
		name   string
		source Session
		folder string // "" = hubbub-DATE in the current one
		ended  bool   // before the export
	}{
		{"recorded", recorded, filepath.Join(dir, "export"), true},
		{"not recorded", unrecorded, "", true},
		{"watched, running", watched(t, open), "", false},
	} {
		d := newStub(true)
		ended := make(chan error, 1)
		go func() { ended <- Run(t.Context(), c.source, d) }()
		testkit.Eventually(t, "the turns", func() bool { st := c.source.state(); return st.Finished() || !c.ended && st.Timeline.Decided > 0.05 })
		line, err := c.source.controls().Export(annotations)
		close(d.quit)
		testkit.NoError(t, errors.Join(err, <-ended))
		_, folder, _ := strings.Cut(line, " into ")
		if c.folder != "" && folder != c.folder || c.folder == "" && !strings.HasPrefix(folder, "hubbub-2") {
			t.Errorf("%s: %q", c.name, line)
		}
		rttm := testkit.Must(os.ReadFile(filepath.Join(folder, export.RTTM.File())))(t)
		testkit.Contains(t, string(rttm), "1 0.050 0.050 <NA> <NA> Anna ", c.name)
		page := testkit.Must(os.ReadFile(filepath.Join(folder, export.HTML.File())))(t)
		testkit.Equal(t, strings.Contains(string(page), "<audio"), c.name == "recorded", c.name, "has audio")
		_ = os.RemoveAll(folder)
	}
	testkit.NoError(t, writer.Close())
}

// An open turn counts as far as the screen shows it, also when no event has come since
// it began.
func TestOpenTurnCounts(t *testing.T) {
	timeline := protocol.NewTimeline()
	timeline.Apply(protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 2, "SPEAKER_00"))
	st := display.State{Timeline: timeline.Snapshot(), Conn: display.Open, Position: 30, Sent: 30, Latency: time.Second}
	testkit.EqualSlices(t, turnsSoFar(st), []protocol.Turn{{Speaker: "SPEAKER_00", Start: 2, End: 29}})
}

// TestReconnection displays a lost and resumed connection: the state, the
// messages, and the notices at the end.
func TestReconnection(t *testing.T) {
	var streams atomic.Int32 // the end of one handler does not precede the start of the next
	service := protocoltest.Service{Stream: func(conn *websocket.Conn) {
		if streams.Add(1) == 1 {
			_, _, _ = conn.ReadMessage()
			return // without a close frame
		}
		protocoltest.OneTurn(conn)
	}}
	d, _, errs := printed(t, DisplayOptions{Output: "lines"})
	s, _ := liveWith(t, service, "", client.ResilientOptions{Unpaced: true, Limit: time.Minute})
	testkit.NoError(t, Run(t.Context(), s, d))
	for _, want := range []string{"hubbub: stream lost, resuming: ", "hubbub: the stream continues; the service does not know its speakers and gives them new labels\n", "hubbub: the stream was lost once\n"} {
		testkit.Contains(t, errs.String(), want)
	}
}

// TestScreenThatWasClosed: while the service finishes, the normal screen says what is waited
// for and what happens.
func TestScreenThatWasClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs testkit.Buffer
		d := &fullScreen{streams: Streams{Stderr: &errs}, mailbox: make(chan tui.Msg, 1)}
		for _, text := range []string{"on the screen", "below it"} {
			testkit.NoError(t, d.notice(text, true))
			d.quit()
		}
		testkit.Equal(t, errs.String(), "hubbub: below it\n", "at once")
		time.Sleep(waitShown)
		synctest.Wait()
		testkit.Contains(t, errs.String(), "waiting for the last turns; ctrl+c")
	})
}

func TestDescribeChange(t *testing.T) {
	d := &fullScreen{}
	for want, c := range map[string]client.ConnectionChange{
		"stream lost, resuming: broken": {Lost: errors.New("broken")},
		"the stream continues":          {Resumed: true, Gap: protocol.Span{Start: 1, End: 1.01}},
		"the stream continues; the service refuses the voiceprints and recognises nobody":                                                                       {Resumed: true, Unrecognised: true},
		"the stream continues; 2.5 s of audio from 1:01 on were not decided":                                                                                    {Resumed: true, Gap: protocol.Span{Start: 61, End: 63.5}},
		"the stream continues; 1.0 s of audio from 1:00:00 on were not decided; the service does not know its speakers and gives them new labels: J joins them": {Gap: protocol.Span{Start: 3600, End: 3601}},
	} {
		testkit.Equal(t, describeChange(&c, d), want)
	}
}

// TestGapsAreReportedOnce: the display for screen readers reports gaps from the state,
// so that notices leave them out.
func TestGapsAreReportedOnce(t *testing.T) {
	var out bytes.Buffer
	d := &accessible{out: plain.NewAccessible(&out, display.Controls{})}
	changed := client.ConnectionChange{Gap: protocol.Span{Start: 61, End: 63.5}}
	testkit.NoError(t, d.notice(describeChange(&changed, d), false))
	testkit.NoError(t, reportInput(capture.Stats{Device: "desk"}, capture.Stats{Device: "headset", Gaps: []capture.Gap{{Start: 70, End: 72}}}, d))
	testkit.NoError(t, d.out.State(display.State{Gaps: []protocol.Span{changed.Gap, {Start: 70, End: 72}}}))
	want := `The stream continues; the service does not know its speakers and gives them new labels: merge joins them
"headset" is used instead of "desk"
Connecting to the server.
Warning: for 2.5 seconds from 1:01 on the speakers are unknown.
Warning: for 2.0 seconds from 1:10 on the speakers are unknown.
`
	testkit.Equal(t, out.String(), want)
}

// fixedView is a session in one state.
type fixedView struct {
	view
	st display.State
}

func (v fixedView) state() display.State { return v.st }

// TestProgress shows the position, the part of the input, and the speed, and
// nothing at the end.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown []string
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		v := fixedView{st: display.State{Sent: 30, Length: 120, Started: time.Now().Add(-10 * time.Second)}}
		showProgress(ctx, func(text string) { shown = append(shown, text) }, v)
		const line = "0:30 of 2:00, 25 %, 3 times real time"
		testkit.EqualSlices(t, shown, []string{line, line, ""})
	})
}

// TestSaveTrace writes records into files that do not exist yet.
func TestSaveTrace(t *testing.T) {
	t.Chdir(t.TempDir())
	names := map[string]bool{}
	for range 3 {
		name, err := saveTrace([]byte("{}\n"))
		if err != nil || names[name] {
			t.Fatalf("%q, %v", name, err)
		}
		names[name] = true
		testkit.Equal(t, string(testkit.Must(os.ReadFile(name))(t)), "{}\n")
	}
}
