package protocol

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

func TestStreamCompletes(t *testing.T) {
	var chunks atomic.Int64
	pinged := make(chan struct{})
	s := openStream(t, func(t *testing.T, conn *websocket.Conn) {
		ping := conn.PingHandler()
		var once sync.Once
		conn.SetPingHandler(func(p string) error { defer once.Do(func() { close(pinged) }); return ping(p) })
		say(t, conn, string(NewSpeakerEvent(TypeSpeakerStart, 0.1, "SPEAKER_00").Raw))
		chunks.Store(int64(untilEnd(t, conn)))
		say(t, conn, string(NewSpeakerEvent(TypeSpeakerEnd, 0.9, "SPEAKER_00").Raw)) // still arrives
		closeWith(conn, websocket.CloseNormalClosure, "bye")
	}, nil)
	before := time.Now()
	for seq := range int64(10) {
		mustSend(t, s, seq)
	}
	<-pinged // so that there is a round trip
	for range 2 {
		if err := s.EndOfStream(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	events, info := collect(t, s)
	if info.Reason != Completed || info.Code != 1000 || info.Text != "bye" || info.Err != nil {
		t.Errorf("%+v", info)
	}
	if len(events) != 2 || events[0].Type != TypeSpeakerStart || events[1].Timestamp != 0.9 || events[1].Received.Before(before) {
		t.Errorf("%+v", events)
	}
	st := s.Stats()
	if n := chunks.Load(); n != 10 || st.ChunksSent != n || st.BytesSent != n*ChunkBytes || st.EventsReceived != 2 || st.Undelivered != 0 {
		t.Errorf("server got %d chunks, client says %+v", n, st)
	}
	if st.RTT <= 0 || st.Opened.IsZero() {
		t.Errorf("%+v", st)
	}
	err := s.Send(context.Background(), 10, make([]float32, ChunkSamples))
	if !errors.Is(err, ErrStreamOver) {
		t.Errorf("Send after the end: %v", err)
	}
	if err := s.Close(); err != nil || s.Wait().Reason != Completed {
		t.Errorf("Close after the end: %v, %+v", err, s.Wait())
	}
}

func TestStreamTellsCloseCodesApart(t *testing.T) {
	for _, c := range []struct {
		code   int
		text   string
		ended  bool // after end_of_stream
		reason Reason
		says   string
	}{
		{1000, "", true, Completed, ""},
		{1005, "", true, Completed, ""},
		{1000, "done", false, EndedEarly, "before the audio did"},
		{1005, "", false, EndedEarly, "before the audio did"},
		{1001, "maintenance", false, GoingAway, "shutting down"},
		{1001, "", true, GoingAway, "shutting down"},
		{1012, "", false, GoingAway, "restarts"},
		{1013, "", false, GoingAway, "overloaded"},
		{1008, "audio more than 5 s ahead", false, Policy, `against the service's rules (1008 "audio more than 5 s ahead")`},
		{1003, "", false, Policy, "kind of message"},
		{1009, "", true, Policy, "too large"},
		{4001, "", false, Policy, "service's own (4001)"},
		{1011, "\x1b[2Jpanic", true, ServerError, `internal error of the service (1011 "[2Jpanic")`},
	} {
		t.Run(fmt.Sprintf("%d ended=%v", c.code, c.ended), func(t *testing.T) {
			s := openStream(t, func(t *testing.T, conn *websocket.Conn) {
				if c.ended {
					untilEnd(t, conn)
				}
				closeWith(conn, c.code, c.text)
			}, nil)
			if c.ended {
				if err := s.EndOfStream(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			_, info := collect(t, s)
			if info.Reason != c.reason || info.Code != c.code || info.Text != Clean(c.text, 200) {
				t.Errorf("%+v", info)
			}
			checkEnd(t, info, c.says)
		})
	}
}

// checkEnd checks that the end is told in one line with a hint, unless it is
// the good one.
func checkEnd(t *testing.T, info CloseInfo, says string) {
	t.Helper()
	if info.Reason == Completed {
		if info.Err != nil {
			t.Errorf("completed with %v", info.Err)
		}
		return
	}
	if info.Err == nil || !strings.Contains(info.Err.Error(), says) || strings.ContainsAny(info.Err.Error(), "\n\x1b") {
		t.Fatalf("%s: %v, want %q", info.Reason, info.Err, says)
	}
	if strings.Contains(info.Err.Error(), "tok-123") || strings.Contains(info.Err.Error(), testKey) {
		t.Errorf("a secret is told: %v", info.Err)
	}
	if hintOf(info.Err) == "" && info.Reason != Cancelled {
		t.Errorf("%v has no hint", info.Err)
	}
}

func TestStreamWithoutAClose(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		script script
		change func(*streamConfig)
		ended  bool
		reason Reason
		says   string
	}{
		{name: "reset", reason: Lost, says: "connection reset", script: func(t *testing.T, conn *websocket.Conn) {
			_, _, _ = conn.ReadMessage()
			breakOff(t, conn)
		}},
		{name: "reset after end_of_stream", ended: true, reason: Lost, says: "connection reset", script: func(t *testing.T, conn *websocket.Conn) {
			untilEnd(t, conn)
			breakOff(t, conn)
		}},
		{name: "dropped", reason: Lost, says: "without a close", script: func(t *testing.T, conn *websocket.Conn) {
			_, _, _ = conn.ReadMessage()
			_ = conn.Close()
		}},
		{name: "silent", reason: TimedOut, says: "nothing was heard from the service for 300ms",
			change: func(c *streamConfig) { c.readTimeout, c.pingEvery = 300*time.Millisecond, 50*time.Millisecond },
			script: func(t *testing.T, conn *websocket.Conn) { hold(conn) }},
		{name: "never closes", ended: true, reason: TimedOut, says: "did not close the stream after end_of_stream",
			change: func(c *streamConfig) { c.drainTimeout, c.pingEvery = 300*time.Millisecond, 20*time.Millisecond },
			script: func(t *testing.T, conn *websocket.Conn) { drain(conn) }}, // and answers pings
		{name: "chatters on", ended: true, reason: TimedOut, says: "did not close the stream after end_of_stream",
			change: func(c *streamConfig) { c.drainLimit = 500 * time.Millisecond },
			script: func(t *testing.T, conn *websocket.Conn) {
				go drain(conn)
				for conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"news"}`)) == nil {
					time.Sleep(5 * time.Millisecond)
				}
			}},
		{name: "garbage frame", reason: ProtocolError, says: "not WebSocket", script: func(t *testing.T, conn *websocket.Conn) {
			_, _ = conn.NetConn().Write([]byte("\xf7\x7fthis is no frame"))
			drain(conn)
		}},
		{name: "close frame with a bad code", reason: ProtocolError, says: "not WebSocket", script: func(t *testing.T, conn *websocket.Conn) {
			_, _ = conn.NetConn().Write([]byte{0x88, 2, 0, 7})
			drain(conn)
		}},
		{name: "2 MB message", reason: ProtocolError, says: "more than 1048576 bytes", script: func(t *testing.T, conn *websocket.Conn) {
			_ = conn.WriteMessage(websocket.TextMessage, make([]byte, 2<<20))
			drain(conn)
		}},
		{name: "cut in the middle of a message", reason: Lost, says: "without a close", script: func(t *testing.T, conn *websocket.Conn) {
			_, _ = conn.NetConn().Write([]byte("\x81\x7e\x10\x00{\"type\":"))
			_ = conn.Close()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openStream(t, c.script, c.change)
			_ = s.Send(context.Background(), 0, make([]float32, ChunkSamples)) // for scripts that wait for it
			if c.ended {
				if err := s.EndOfStream(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			_, info := collect(t, s)
			if info.Reason != c.reason || info.Code != 0 {
				t.Errorf("%+v", info)
			}
			checkEnd(t, info, c.says)
			if err := s.Send(context.Background(), 1, make([]float32, ChunkSamples)); !errors.Is(err, ErrStreamOver) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Send after the end: %v", err)
			}
		})
	}
}

// hold keeps the connection open without reading from it, until the client
// has gone.
func hold(conn *websocket.Conn) {
	one := make([]byte, 1)
	time.Sleep(time.Second)
	for {
		if _, err := tcpOf(conn).Read(one); err != nil {
			return
		}
	}
}

func TestStreamKeepsEveryMessage(t *testing.T) {
	s := openStream(t, func(t *testing.T, conn *websocket.Conn) {
		say(t, conn, `{"type":"transcript","data":"hi"}`)
		say(t, conn, `{"type":"error","message":"Invalid chunk size"}`) // not an end
		say(t, conn, `{"type":"diarization_speaker_end"}`)
		say(t, conn, "no JSON\n")
		say(t, conn, "")
		_ = conn.WriteMessage(websocket.BinaryMessage, make([]byte, 2048))
		say(t, conn, string(NewSpeakerEvent(TypeSpeakerStart, 1, "A").Raw))
		untilEnd(t, conn)
		closeWith(conn, 1000, "")
	}, nil)
	mustSend(t, s, 0)
	if err := s.EndOfStream(context.Background()); err != nil {
		t.Fatal(err)
	}
	events, info := collect(t, s)
	if info.Reason != Completed {
		t.Fatalf("%+v", info)
	}
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprintf("%s|%s|%v", e.Type, e.Raw, e.Err != ""))
	}
	want := []string{
		`transcript|{"type":"transcript","data":"hi"}|false`,
		`error|{"type":"error","message":"Invalid chunk size"}|false`,
		`diarization_speaker_end|{"type":"diarization_speaker_end"}|true`,
		`|"no JSON"|true`,
		`|""|true`,
		`|"binary message of 2048 bytes"|true`,
		`diarization_speaker_start|{"type":"diarization_speaker_start","data":{"timestamp":1,"speaker":"A"}}|false`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A consumer that takes longer than every time-out loses nothing and does not
// make the service look dead.
func TestStreamWaitsForItsConsumer(t *testing.T) {
	t.Parallel()
	const n = 2000
	s := openStream(t, func(t *testing.T, conn *websocket.Conn) {
		untilEnd(t, conn)
		for i := range n {
			say(t, conn, fmt.Sprintf(`{"type":"error","message":"%d"}`, i))
		}
		closeWith(conn, 1000, "")
	}, func(c *streamConfig) {
		c.queue, c.readTimeout, c.drainTimeout, c.drainLimit = 4, 2*time.Second, 2*time.Second, 4*time.Second
	})
	if err := s.EndOfStream(context.Background()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second)
	events, info := collect(t, s)
	if info.Reason != Completed || len(events) != n || s.Stats().EventsReceived != n {
		t.Fatalf("%d of %d events, %+v", len(events), n, info)
	}
	for i, e := range events {
		if e.Message != fmt.Sprint(i) {
			t.Fatalf("event %d is %q", i, e.Message)
		}
	}
}

func TestCloseFreesAReaderThatNobodyServes(t *testing.T) {
	s := openStream(t, func(t *testing.T, conn *websocket.Conn) {
		for range 100 {
			if conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"x"}`)) != nil {
				return
			}
		}
		drain(conn)
	}, func(c *streamConfig) { c.queue = 3 })
	for deadline := time.Now().Add(patience); s.Stats().EventsReceived < 4; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%+v", s.Stats())
		}
	}
	var closers sync.WaitGroup
	for range 3 {
		closers.Go(func() { _ = s.Close() })
	}
	closers.Wait()
	events, info := collect(t, s)
	if info.Reason != Cancelled || !errors.Is(info.Err, context.Canceled) {
		t.Errorf("%+v", info)
	}
	if st := s.Stats(); len(events) != 3 || st.EventsReceived != 4 || st.Undelivered != 1 {
		t.Errorf("%d events taken, %+v", len(events), st)
	}
	if err := s.EndOfStream(context.Background()); !errors.Is(err, ErrStreamOver) {
		t.Errorf("EndOfStream after Close: %v", err)
	}
}

func TestSendRefusesWhatIsNoNextChunk(t *testing.T) {
	tried := make(chan struct{})
	s := openStream(t, func(t *testing.T, conn *websocket.Conn) {
		if n := untilEnd(t, conn); n != 2 {
			t.Errorf("server got %d chunks", n)
		}
		<-tried
		closeWith(conn, 1000, "")
	}, nil)
	ctx := context.Background()
	mustSend(t, s, 0)
	mustSend(t, s, 3)
	if err := s.Send(ctx, 3, make([]float32, ChunkSamples)); err == nil {
		t.Error("the same chunk was sent again")
	}
	for _, n := range []int{0, 1, ChunkSamples - 1, ChunkSamples + 1} {
		if err := s.Send(ctx, 4, make([]float32, n)); err == nil {
			t.Errorf("a chunk of %d samples was sent", n)
		}
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Send(over, 4, make([]float32, ChunkSamples)); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v", err)
	}
	if err := s.EndOfStream(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Send(ctx, 4, make([]float32, ChunkSamples)); err == nil || errors.Is(err, ErrStreamOver) {
		t.Errorf("after end_of_stream: %v", err)
	}
	close(tried)
	if _, info := collect(t, s); info.Reason != Completed {
		t.Errorf("%+v", info)
	}
}

func TestSendDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	s := openStream(t, func(t *testing.T, conn *websocket.Conn) { hold(conn) },
		func(c *streamConfig) { c.writeTimeout, c.writeGrace = 200*time.Millisecond, 100*time.Millisecond })
	var err error
	for seq := int64(0); err == nil; seq++ {
		if seq > 20000 {
			t.Fatal("128 MB went nowhere")
		}
		err = s.Send(context.Background(), seq, make([]float32, ChunkSamples))
	}
	if !errors.Is(err, ErrStreamOver) {
		t.Errorf("%v", err)
	}
	_, info := collect(t, s)
	if info.Reason != TimedOut {
		t.Errorf("%+v", info)
	}
	checkEnd(t, info, "took no audio for 200ms")
}

// The service's reason must be found even when the pipe breaks first.
func TestSendFindsTheServicesReason(t *testing.T) {
	for range 10 {
		s := openStream(t, func(t *testing.T, conn *websocket.Conn) {
			for range 3 {
				_, _, _ = conn.ReadMessage()
			}
			_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1008, "too fast"), time.Now().Add(patience))
			_ = conn.Close() // with chunks unread, so that a reset follows
		}, nil)
		var err error
		for seq := int64(0); err == nil; seq++ {
			err = s.Send(context.Background(), seq, make([]float32, ChunkSamples))
		}
		if !errors.Is(err, ErrStreamOver) || !strings.Contains(err.Error(), "too fast") {
			t.Errorf("%v", err)
		}
		if _, info := collect(t, s); info.Reason != Policy || info.Text != "too fast" {
			t.Errorf("%+v", info)
		}
	}
}

func TestStreamIsSafeForManyGoroutines(t *testing.T) {
	s := openStream(t, func(t *testing.T, conn *websocket.Conn) {
		go func() {
			for conn.WriteMessage(websocket.TextMessage, NewSpeakerEvent(TypeSpeakerStart, 1, "A").Raw) == nil {
			}
		}()
		drain(conn)
	}, func(c *streamConfig) { c.pingEvery = time.Millisecond })
	var all sync.WaitGroup
	var seq atomic.Int64
	for range 4 {
		all.Go(func() {
			for {
				err := s.Send(context.Background(), seq.Add(1), make([]float32, ChunkSamples))
				if errors.Is(err, ErrStreamOver) { // else another was faster with its number
					return
				}
			}
		})
		all.Go(func() {
			for range s.Events() {
				s.Stats()
				s.CaptureTime(1)
			}
		})
	}
	for deadline := time.Now().Add(patience); s.Stats().ChunksSent < 50 || s.Stats().EventsReceived < 50; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%+v", s.Stats())
		}
	}
	_ = s.Close()
	all.Wait()
	if info := s.Wait(); info.Reason != Cancelled {
		t.Errorf("%+v", info)
	}
}

func TestAhead(t *testing.T) {
	var now atomic.Int64
	s := openStream(t, func(t *testing.T, conn *websocket.Conn) { drain(conn) },
		func(c *streamConfig) { c.now = func() time.Time { return time.Unix(1000, now.Load()) } })
	at := func(d time.Duration, want time.Duration) {
		t.Helper()
		now.Store(int64(d))
		if got := s.Stats().Ahead; got != want {
			t.Errorf("after %s: ahead %s, want %s", d, got, want)
		}
	}
	at(time.Second, 0) // nothing sent
	mustSend(t, s, 5)
	at(time.Second, 100*time.Millisecond)
	at(1100*time.Millisecond, 0)
	mustSend(t, s, 6)
	at(1100*time.Millisecond, 100*time.Millisecond)
	at(3*time.Second, -1800*time.Millisecond)
	mustSend(t, s, 24) // what was dropped is not behind
	at(3*time.Second, 0)
	_ = s.Close()
}

func TestPanicEndsOnlyTheStream(t *testing.T) {
	s := openStream(t, func(t *testing.T, conn *websocket.Conn) { drain(conn) }, nil)
	func() {
		defer s.recovered("testing")
		panic("oh\nno")
	}()
	_, info := collect(t, s)
	if info.Reason != Lost {
		t.Errorf("%+v", info)
	}
	checkEnd(t, info, "internal error while testing the stream: oh no")
}
