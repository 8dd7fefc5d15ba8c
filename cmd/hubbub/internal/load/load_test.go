package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/client"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// service is a fake service whose streams are served by do.
func service(t *testing.T, do func(conn *websocket.Conn)) *client.Client {
	t.Helper()
	c := testkit.Must(client.New(client.Options{BaseURL: protocoltest.Serve(t, protocoltest.Service{Stream: do}.Handler()), APIKey: "k"}))(t)
	t.Cleanup(c.Close)
	return c
}

func sendLoad(t *testing.T, c *client.Client, seconds float64) (*tally, error) {
	t.Helper()
	tally := &tally{now: Report{Streams: 1}}
	s := &stream{Options{Client: c, Reject: func(string) bool { return false }, Samples: make([]float32, int(seconds*protocol.SampleRate))}, tally}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Timeout)
	defer cancel()
	err := s.run(ctx, time.Now())
	tally.ended(err)
	return tally, err
}

// An event's lag is counted from the chunk that holds the audio just before
// its timestamp.
func TestLag(t *testing.T) {
	const wait = 300 * time.Millisecond
	chunks := 0
	c := service(t, func(conn *websocket.Conn) {
		for {
			kind, raw, err := conn.ReadMessage()
			if err != nil || kind == websocket.TextMessage {
				break
			}
			chunks++
			testkit.Equal(t, len(raw), protocol.ChunkBytes, "bytes of a frame")
			if chunks == 2 { // about the end of the second chunk
				time.Sleep(wait)
				_ = conn.WriteMessage(websocket.TextMessage, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.2, "SPEAKER_00").Raw)
			}
		}
		protocoltest.CloseWith(conn, 1000, "")
	})
	began := time.Now()
	tally := testkit.Must(sendLoad(t, c, 0.75))(t)
	if took := time.Since(began); took < 800*time.Millisecond {
		t.Errorf("8 chunks in %v: not real time", took)
	}
	r := tally.report()
	if chunks != 8 || r.Completed != 1 || r.Events != 1 || r.DroppedChunks != 0 {
		t.Errorf("%d chunks, %+v", chunks, r)
	}
	// A busy machine makes it longer, never shorter.
	if r.Lag.P50 < wait.Seconds()*1000 || r.Lag.P99 != r.Lag.P50 {
		t.Errorf("%+v", r.Lag)
	}
}

func TestFailureIsCounted(t *testing.T) {
	c := service(t, func(conn *websocket.Conn) {
		_, _, _ = conn.ReadMessage()
		protocoltest.CloseWith(conn, 1011, "broken")
	})
	tally, err := sendLoad(t, c, 5)
	if err == nil || tally.report().Failed != 1 || !strings.Contains(tally.report().Cause.Error(), "1011") {
		t.Errorf("%v, %+v", err, tally.report())
	}
}

func TestPercentiles(t *testing.T) {
	var all tally
	for i := range 100 {
		all.event(time.Duration(i+1) * time.Millisecond)
	}
	all.event(time.Hour)
	if r := all.report(); r.Events != 101 || r.Lag.P50 != 51 || r.Lag.P95 != 96 || r.Lag.P99 != 100 {
		t.Errorf("%+v", r)
	}
}

// A server does not redirect the streams to a machine that is rejected.
func TestRejectedAddress(t *testing.T) {
	c := service(t, func(*websocket.Conn) { t.Error("a stream was opened") })
	s := &stream{Options{Client: c, Reject: func(string) bool { return true }}, &tally{now: Report{Streams: 9}}}
	testkit.Contains(t, fmt.Sprint(s.run(context.Background(), time.Now())), "another machine")
}

// What a connection does not take in time is dropped as a microphone's would
// be: the oldest first, and counted.
func TestDrops(t *testing.T) {
	slow := make(chan struct{})
	got := 0
	c := service(t, func(conn *websocket.Conn) {
		<-slow
		got = len(protocoltest.UntilEnd(conn))
		protocoltest.CloseWith(conn, 1000, "")
	})
	tally := &tally{now: Report{Streams: 1}}
	s := &stream{Options{Client: c, Samples: make([]float32, 80*protocol.ChunkSamples)}, tally}
	live := testkit.Must(c.CreateStream(context.Background(), nil))(t)
	wire := testkit.Must(c.OpenStream(context.Background(), live.URL))(t)
	defer wire.Close()
	close(slow)
	// As if the connection had been stuck for seven seconds.
	testkit.NoError(t, s.send(context.Background(), time.Now().Add(-7*time.Second), wire))
	for range wire.Events() {
	}
	sent := wire.Stats().ChunksSent
	if r := tally.report(); r.DroppedChunks < 20 || got+int(r.DroppedChunks) != 80 || sent != int64(got) {
		t.Errorf("%d sent, %d arrived, %d dropped of 80", sent, got, r.DroppedChunks)
	}
	if end := wire.Wait(); end.Err != nil && !errors.Is(end.Err, context.Canceled) {
		t.Errorf("%v", end.Err)
	}
}
