package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
)

// service is a service that answers the handshakes of a load and leaves each
// stream to do.
func service(t *testing.T, do func(conn *websocket.Conn)) *connection {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	mux.HandleFunc("POST /v1/live", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(protocol.LiveStream{ID: "x", URL: "ws" + strings.TrimPrefix(server.URL, "http") + "/stream"})
	})
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		do(conn)
	})
	client, err := protocol.NewClient(protocol.ClientOptions{BaseURL: server.URL, APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return &connection{Client: client}
}

func sendLoad(t *testing.T, c *connection, seconds float64) (*tally, *loadStream, error) {
	t.Helper()
	tally := newTally(1)
	s := &loadStream{server: c, tally: tally, refuse: func(string) bool { return false },
		samples: make([]float32, int(seconds*protocol.SampleRate))}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := s.run(ctx, time.Now())
	tally.ended(err)
	return tally, s, err
}

// An event's lag is counted from the chunk that holds the audio just before
// its timestamp.
func TestLoadLag(t *testing.T) {
	const wait = 300 * time.Millisecond
	chunks := 0
	c := service(t, func(conn *websocket.Conn) {
		for {
			kind, raw, err := conn.ReadMessage()
			if err != nil || kind == websocket.TextMessage {
				break
			}
			chunks++
			if len(raw) != protocol.ChunkBytes {
				t.Errorf("a frame of %d bytes", len(raw))
			}
			if chunks == 2 { // about the end of the second chunk
				time.Sleep(wait)
				_ = conn.WriteMessage(websocket.TextMessage, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.2, "SPEAKER_00").Raw)
			}
		}
		_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(patience))
		_, _, _ = conn.ReadMessage()
	})
	began := time.Now()
	tally, _, err := sendLoad(t, c, 0.75)
	if err != nil {
		t.Fatal(err)
	}
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

func TestLoadCountsAFailure(t *testing.T) {
	c := service(t, func(conn *websocket.Conn) {
		_, _, _ = conn.ReadMessage()
		_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1011, "broken"), time.Now().Add(patience))
		_, _, _ = conn.ReadMessage()
	})
	tally, _, err := sendLoad(t, c, 5)
	if err == nil || tally.report().Failed != 1 || !strings.Contains(tally.cause().Error(), "1011") {
		t.Errorf("%v, %+v", err, tally.report())
	}
}

func TestLoadSentAt(t *testing.T) {
	begin := time.Now()
	var s loadStream
	if _, ok := s.sentAt(1); ok {
		t.Error("nothing was sent")
	}
	for i := range 10 {
		s.sent = append(s.sent, begin.Add(time.Duration(i)*time.Second))
	}
	for timestamp, want := range map[float64]int{0: 0, 0.001: 0, 0.1: 0, 0.101: 1, 0.3: 2, 0.7: 6, 0.95: 9, 1: 9, 7: 9} {
		if got, _ := s.sentAt(timestamp); got.Sub(begin) != time.Duration(want)*time.Second {
			t.Errorf("%v: chunk %v, want %d", timestamp, got.Sub(begin), want)
		}
	}
}

func TestPercentile(t *testing.T) {
	var hundred []float32
	for i := range 100 {
		hundred = append(hundred, float32(i+1))
	}
	for _, c := range []struct {
		of   []float32
		p    int
		want float64
	}{{nil, 99, 0}, {[]float32{7}, 50, 7}, {hundred, 50, 50}, {hundred, 99, 99}, {hundred[:3], 50, 2}, {hundred[:3], 99, 3}} {
		if got := percentile(c.of, c.p); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("p%d of %d: %v, want %v", c.p, len(c.of), got, c.want)
		}
	}
}

// Many streams go to this machine, or to one whose owner was asked.
func TestLoadIsNoAttack(t *testing.T) {
	cases := map[string]bool{
		"https://localhost:8580": false, "http://127.0.0.1": false, "https://[::1]:1": false, "wss://127.9.9.9/x": false,
		"https://diarization.example": true, "https://192.0.2.1": true, "wss://localhost.example/": true, "https://0.0.0.0": true,
	}
	for address, want := range cases {
		for _, n := range []int{1, politeStreams, politeStreams + 1, 1000} {
			f := loadFlags{streams: count{value: n}}
			if got := f.tooMany(address); got != (want && n > politeStreams) {
				t.Errorf("%s, %d streams: %v", address, n, got)
			}
			f.yesRemote = true
			if f.tooMany(address) {
				t.Errorf("%s, %d streams with --yes-remote", address, n)
			}
		}
	}
	// Nor does a server on this machine hand the streams on to another one.
	c := service(t, func(*websocket.Conn) { t.Error("a stream was opened") })
	s := &loadStream{server: c, tally: newTally(9), refuse: func(string) bool { return true }}
	if err := s.run(context.Background(), time.Now()); err == nil || !strings.Contains(err.Error(), "another machine") {
		t.Errorf("%v", err)
	}
}

// What a connection does not take in time is dropped as a microphone's would
// be: the oldest first, and counted.
func TestLoadDrops(t *testing.T) {
	slow := make(chan struct{})
	got := 0
	c := service(t, func(conn *websocket.Conn) {
		<-slow
		for {
			kind, _, err := conn.ReadMessage()
			if err != nil || kind == websocket.TextMessage {
				break
			}
			got++
		}
		_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(patience))
		_, _, _ = conn.ReadMessage()
	})
	tally := newTally(1)
	s := &loadStream{server: c, tally: tally, refuse: func(string) bool { return false },
		samples: make([]float32, 80*protocol.ChunkSamples)}
	live, err := c.CreateStream(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	wire, err := c.OpenStream(context.Background(), live.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer wire.Close()
	close(slow)
	// As if the connection had been stuck for seven seconds.
	if err := s.sendFrom(time.Now().Add(-7*time.Second), context.Background(), context.Background(), wire); err != nil {
		t.Fatal(err)
	}
	for range wire.Events() {
	}
	if r := tally.report(); r.DroppedChunks < 20 || got+int(r.DroppedChunks) != 80 || len(s.sent) != got {
		t.Errorf("%d sent, %d arrived, %d dropped of 80", len(s.sent), got, r.DroppedChunks)
	}
	if !slices.IsSortedFunc(s.sent, time.Time.Compare) {
		t.Error("out of order")
	}
	if end := wire.Wait(); end.Err != nil && !errors.Is(end.Err, context.Canceled) {
		t.Errorf("%v", end.Err)
	}
}
