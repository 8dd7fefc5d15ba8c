package session

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/protocol"
	"hubbub/protocol/client"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// TestUnknownMessagesAreReported: a service of another version is not taken for silence.
func TestUnknownMessagesAreReported(t *testing.T) {
	service := protocoltest.Service{Stream: func(conn *websocket.Conn) {
		_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"speaker_start"}`))
		protocoltest.UntilEnd(conn)
		protocoltest.CloseWith(conn, websocket.CloseNormalClosure, "")
	}}
	d, _, errs := printed(t, DisplayOptions{Output: "lines"})
	s, _ := liveWith(t, service, "", client.ResilientOptions{Unpaced: true})
	testkit.NoError(t, Run(t.Context(), s, d))
	if text := errs.String(); !strings.Contains(text, "no turns, but messages of unknown types: 1; `hubbub conform`") || strings.Contains(text, "no speech") {
		t.Error(text)
	}
}

// TestFaultyMessagesAreReported: what cannot be read is not passed over in silence, what is
// repeated is reported once, and the end counts all.
func TestFaultyMessagesAreReported(t *testing.T) {
	service := protocoltest.Service{Stream: func(conn *websocket.Conn) {
		for range 3 {
			_ = conn.WriteMessage(websocket.BinaryMessage, []byte{1, 2, 3})
		}
		for range 4 {
			protocoltest.Send(conn, protocol.NewErrorEvent("Invalid chunk size"))
		}
		protocoltest.Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 0.1, "SPEAKER_00"))
		protocoltest.Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.1, "SPEAKER_01"))
		protocoltest.OneTurn(conn)
	}}
	reports := []string{"a message of the service cannot be read: binary message of 3 bytes, which services do not send\n", "the service reports: Invalid chunk size\n",
		"wrong event: end of SPEAKER_00 at 0.100 s: no open turn\n"}
	counts := []string{"errors that the service reported: 4\n", "messages of the service that could not be read: 3\n", "events that contradict others or have an impossible time: 1\n", "turns whose end did not arrive: 1\n"}
	for output, want := range map[string][]string{"lines": slices.Concat(reports, counts), "events": counts, "": slices.Concat(reports, counts)} {
		d, out, errs := printed(t, DisplayOptions{Output: output, Accessible: output == ""})
		s, _ := liveWith(t, service, "", client.ResilientOptions{Unpaced: true})
		testkit.NoError(t, Run(t.Context(), s, d))
		text := errs.String()
		if output == "" {
			text = out.String()
		}
		for _, line := range want {
			if output == "" && slices.Contains(counts, line) { // a sentence
				line = strings.ToUpper(line[:1]) + line[1:]
			}
			testkit.Equal(t, strings.Count(text, line), 1, output, line, "in", text)
		}
		if output == "events" && strings.Contains(text, reports[0]) {
			t.Errorf("the messages are in the output already:\n%s", text)
		}
	}
}

// TestWaitForTheService: a service that answers no pings is not said to be behind.
func TestWaitForTheService(t *testing.T) {
	stats := client.StreamStats{Behind: 8 * time.Second}
	testkit.Equal(t, describeWait(stats), "the input has ended; waiting for the service")
	stats.RTT = time.Second
	if text := describeWait(stats); !strings.HasSuffix(text, "service, which is 8 s behind") {
		t.Error(text)
	}
}

// TestWaitNotices: how long the service is waited for counts from the end of the input.
func TestWaitNotices(t *testing.T) {
	for _, length := range []time.Duration{15 * time.Second, 2 * waitNotice} {
		synctest.Test(t, func(t *testing.T) {
			updates := make(chan client.Update)
			l := NewLive(LiveParts{Chunks: new(capture.ChunkReader), EndInput: func() {}, Stream: waitedStream{updates: updates},
				Recorder: recording.NewRecorder(recording.Info{}, nil)})
			go func() {
				time.Sleep(length)
				l.drain(t.Context())
				time.Sleep(25 * time.Second)
				close(updates)
			}()
			d := &noticeTimes{stub: newStub(false), began: time.Now()}
			testkit.NoError(t, l.receive(d))
			testkit.EqualSlices(t, d.at, []time.Duration{length + waitNotice, length + 2*waitNotice}, "notices after")
		})
	}
}

// waitedStream delivers updates.
type waitedStream struct {
	Stream
	updates chan client.Update
}

func (s waitedStream) Updates() <-chan client.Update { return s.updates }
func (waitedStream) State() (s client.State)         { return s }
func (waitedStream) Words() bool                     { return false }
func (waitedStream) Close()                          {}

// noticeTimes is a display that keeps when it was given notices.
type noticeTimes struct {
	*stub
	began time.Time
	at    []time.Duration
}

func (d *noticeTimes) notice(string, bool) error {
	d.at = append(d.at, time.Since(d.began))
	return nil
}
