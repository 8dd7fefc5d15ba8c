package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
	"hubbub/protocol/trace"
)

func TestStreamCompletes(t *testing.T) {
	var chunks atomic.Int64
	pinged, ended := make(chan struct{}), make(chan struct{})
	s := openStream(t, func(t *testing.T, conn *websocket.Conn) {
		ping := conn.PingHandler()
		var once sync.Once
		conn.SetPingHandler(func(p string) error { defer once.Do(func() { close(pinged) }); return ping(p) })
		say(t, conn, string(protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.1, "SPEAKER_00").Raw))
		chunks.Store(int64(untilEnd(t, conn)))
		<-ended
		say(t, conn, string(protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 0.9, "SPEAKER_00").Raw)) // still arrives
		protocoltest.CloseWith(conn, websocket.CloseNormalClosure, "bye")
	}, nil)
	before := time.Now()
	for seq := range int64(10) {
		mustSend(t, s, seq)
	}
	<-pinged // so that there is a round trip
	for range 2 {
		if err := s.EndOfStream(); err != nil {
			t.Error(err)
		}
	}
	close(ended)
	events, info := collect(t, s)
	if info.Reason != Completed || info.Code != 1000 || info.Text != "bye" || info.Err != nil {
		t.Errorf("%+v", info)
	}
	if len(events) != 2 || events[0].Type != protocol.TypeSpeakerStart || events[1].Timestamp != 0.9 || events[1].Received.Before(before) {
		t.Errorf("%+v", events)
	}
	st := s.Stats()
	if n := chunks.Load(); n != 10 || st.ChunksSent != n {
		t.Errorf("server got %d chunks, client says %+v", n, st)
	}
	if st.RTT <= 0 {
		t.Errorf("%+v", st)
	}
	err := s.Send(10, make([]float32, protocol.ChunkSamples))
	if !errors.Is(err, ErrStreamOver) {
		t.Errorf("Send after the end: %v", err)
	}
	s.Close()
	testkit.Equal(t, s.Wait().Reason, Completed, "Close after the end", s.Wait())
}

func TestCloseCodes(t *testing.T) {
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
		{1011, "\x1b[2Jpanic", true, ServerError, `internal error (1011 "[2Jpanic")`},
	} {
		info := closedBy(c.code, c.text, c.ended)
		if info.Reason != c.reason || info.Code != c.code || info.Text != protocol.Clean(c.text, 200) {
			t.Errorf("%+v", info)
		}
		checkEnd(t, info, c.says)
		if fix := hint.Of(info.Err); c.code == websocket.ClosePolicyViolation && !strings.Contains(fix, "revoked") {
			t.Error(fix)
		}
	}
	// The library refuses the code of a gateway, which is registered, and those that no frame may have.
	for _, code := range []int{1014, 1006, 2000} {
		frame := append([]byte{0x88, 2}, byte(code>>8), byte(code))
		s := openStream(t, func(t *testing.T, conn *websocket.Conn) {
			testkit.Must(conn.NetConn().Write(frame))(t)
			_, _, _ = conn.ReadMessage()
		}, nil)
		_, info := collect(t, s)
		if info.Reason != ServerError || info.Code != code {
			t.Errorf("%d: %+v", code, info)
		}
		checkEnd(t, info, fmt.Sprintf("(%d)", code))
	}
	early := openStream(t, func(_ *testing.T, conn *websocket.Conn) { protocoltest.CloseWith(conn, 1000, "done") }, nil)
	if _, info := collect(t, early); info.Reason != EndedEarly || info.Code != 1000 || info.Text != "done" {
		t.Errorf("without end_of_stream: %+v", info)
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
	explained(t, info.Err, says, "")
}

// A service that is gone is noticed within 10 s, after several pings, whenever
// the last of its responses came.
func TestADeadServiceIsNoticedWithin10s(t *testing.T) {
	pingEvery := defaultConfig().pingEvery
	if readTimeout+500*time.Millisecond > 10*time.Second || readTimeout < 4*pingEvery {
		t.Errorf("silence counts as a loss after %v, pings are sent every %v", readTimeout, pingEvery)
	}
}

// The library sends a close frame when the service violates the protocol. A chunk that follows it cannot
// be sent, which is not why the stream ends.
func TestChunkAfterAViolation(t *testing.T) {
	t.Parallel()
	s := openStream(t, func(_ *testing.T, conn *websocket.Conn) { protocoltest.Drain(conn) }, nil)
	defer s.Close()
	s.writeFailed(websocket.ErrCloseSent)
	if info := s.ending(websocket.ErrReadLimit); !strings.Contains(info.Err.Error(), "more than 1048576 bytes") {
		t.Errorf("the stream ended with %v", info.Err)
	}
}

func TestStreamWithoutAClose(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		script script
		change func(*config)
		ended  bool
		reason Reason
		says   string
	}{
		{name: "reset", reason: Lost, says: "without a close", script: func(t *testing.T, conn *websocket.Conn) {
			_, _, _ = conn.ReadMessage()
			breakOff(t, conn)
		}},
		{name: "reset after end_of_stream", ended: true, reason: Lost, says: "without a close", script: func(t *testing.T, conn *websocket.Conn) {
			untilEnd(t, conn)
			breakOff(t, conn)
		}},
		{name: "dropped", reason: Lost, says: "without a close", script: func(t *testing.T, conn *websocket.Conn) {
			_, _, _ = conn.ReadMessage()
			_ = conn.Close()
		}},
		{name: "garbage frame", reason: ProtocolError, says: "not WebSocket", script: func(t *testing.T, conn *websocket.Conn) {
			_, _ = conn.NetConn().Write([]byte("\xf7\x7fthis is no frame"))
			protocoltest.Drain(conn)
		}},
		{name: "close frame with a bad code", reason: ProtocolError, says: "not WebSocket", script: func(t *testing.T, conn *websocket.Conn) {
			_, _ = conn.NetConn().Write([]byte{0x88, 2, 0, 7})
			protocoltest.Drain(conn)
		}},
		{name: "2 MB message", reason: ProtocolError, says: "more than 1048576 bytes", script: func(t *testing.T, conn *websocket.Conn) {
			_ = conn.WriteMessage(websocket.TextMessage, make([]byte, 2<<20))
			protocoltest.Drain(conn)
		}},
		{name: "cut in the middle of a message", reason: Lost, says: "without a close", script: func(t *testing.T, conn *websocket.Conn) {
			_, _ = conn.NetConn().Write([]byte("\x81\x7e\x10\x00{\"type\":"))
			_ = conn.Close()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openStream(t, c.script, c.change)
			_ = s.Send(0, make([]float32, protocol.ChunkSamples)) // for scripts that wait for it
			if c.ended {
				testkit.NoError(t, s.EndOfStream())
			}
			_, info := collect(t, s)
			if info.Reason != c.reason || info.Code != 0 {
				t.Errorf("%+v", info)
			}
			checkEnd(t, info, c.says)
			if err := s.Send(1, make([]float32, protocol.ChunkSamples)); !errors.Is(err, ErrStreamOver) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Send after the end: %v", err)
			}
		})
	}
}

// A service that sends nothing, or does not close, is given up after the time of
// the configuration.
func TestStreamTimesOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		ended  bool // after end_of_stream
		after  time.Duration
		says   string
		script script
	}{
		{"silent", false, readTimeout, fmt.Sprintf("the service sent nothing for %s", readTimeout), func(t *testing.T, conn *websocket.Conn) {
			_, _ = io.Copy(io.Discard, conn.NetConn()) // answers no ping
		}},
		{"never closes", true, drainTimeout, "did not close the stream after end_of_stream", func(t *testing.T, conn *websocket.Conn) {
			protocoltest.Drain(conn) // and answers pings
		}},
		{"chatters on", true, drainLimit, "did not close the stream after end_of_stream", func(t *testing.T, conn *websocket.Conn) {
			go protocoltest.Drain(conn)
			for conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"news"}`)) == nil {
				time.Sleep(time.Second)
			}
		}},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := pipeStream(t, c.script, nil)
			begun := time.Now()
			mustSend(t, s, 0)
			if c.ended {
				testkit.NoError(t, s.EndOfStream())
			}
			info := ended(s)
			if took := time.Since(begun); info.Reason != TimedOut || info.Code != 0 || took != c.after {
				t.Errorf("after %s, not %s: %+v", took, c.after, info)
			}
			checkEnd(t, info, c.says)
		})
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
		say(t, conn, string(protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 1, "A").Raw))
		untilEnd(t, conn)
		protocoltest.CloseWith(conn, 1000, "")
	}, nil)
	mustSend(t, s, 0)
	testkit.NoError(t, s.EndOfStream())
	events, info := collect(t, s)
	if info.Reason != Completed {
		t.Fatalf("%+v", info)
	}
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprintf("%s|%s|%v", e.Type, e.Raw, e.Err != ""))
		if e.Fault != "" && !e.IsTurn() {
			t.Errorf("%s: %s", e.Raw, e.Fault)
		}
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
	synctest.Test(t, func(t *testing.T) {
		const n = 2000
		s := pipeStream(t, func(t *testing.T, conn *websocket.Conn) {
			untilEnd(t, conn)
			// Pings are read and not answered: the pipe has no buffer, so an answer would wait for
			// the client until its deadline, which ends the connection.
			conn.SetPingHandler(func(string) error { return nil })
			var reader sync.WaitGroup
			reader.Go(func() { protocoltest.Drain(conn) })
			for i := range n {
				say(t, conn, fmt.Sprintf(`{"type":"error","message":"%d"}`, i))
			}
			_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Time{})
			reader.Wait()
		}, func(c *config) { c.eventQueue = 4 })
		testkit.NoError(t, s.EndOfStream())
		time.Sleep(2 * max(readTimeout, s.config.writeTimeout, drainTimeout, drainLimit))
		var events []protocol.Event
		for e := range s.Events() {
			events = append(events, e)
		}
		if info := s.Wait(); info.Reason != Completed || len(events) != n {
			t.Fatalf("%d of %d events, %+v", len(events), n, info)
		}
		for i, e := range events {
			if e.Message != fmt.Sprint(i) {
				t.Fatalf("event %d is %q", i, e.Message)
			}
		}
	})
}

// What arrived before a failed write is delivered, whenever its consumer has time.
func TestStreamWaitsForItsConsumerAfterAFailedWrite(t *testing.T) {
	const n = 12
	s := openStream(t, func(t *testing.T, conn *websocket.Conn) {
		for i := range n {
			say(t, conn, fmt.Sprintf(`{"type":"error","message":"%d %s"}`, i, strings.Repeat("x", 1000)))
		}
		_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1008, "against a rule"), time.Time{})
		// The end of the connection discards what has not been sent yet: the client's messages say
		// that time has passed.
		for range 50 {
			if _, _, err := conn.ReadMessage(); err != nil {
				t.Error(err)
				return
			}
		}
	}, func(c *config) { c.eventQueue, c.writeGrace = 2, 500*time.Millisecond }) // in which a busy machine reads what has arrived
	for seq := int64(0); s.Send(seq, make([]float32, protocol.ChunkSamples)) == nil; seq++ {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(2 * s.config.writeGrace)
	events, info := collect(t, s)
	if len(events) != n || info.Code != 1008 {
		t.Errorf("%d of %d events, %+v", len(events), n, info)
	}
}

func TestCloseUnblocksTheReader(t *testing.T) {
	s := openStream(t, func(t *testing.T, conn *websocket.Conn) {
		for i := range 100 {
			if conn.WriteMessage(websocket.TextMessage, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, float64(i+1)/1000, fmt.Sprint("A", i)).Raw) != nil {
				return
			}
		}
		protocoltest.Drain(conn)
	}, func(c *config) { c.eventQueue = 3 })
	received := func() float64 { // messages, by the timestamp of the newest
		s.mu.Lock()
		defer s.mu.Unlock()
		return protocol.Round1ms(s.decided) * 1000
	}
	testkit.Eventually(t, "messages", func() bool { return received() >= 4 })
	var closers sync.WaitGroup
	for range 3 {
		closers.Go(s.Close)
	}
	closers.Wait()
	events, info := collect(t, s)
	if info.Reason != Cancelled || !errors.Is(info.Err, context.Canceled) {
		t.Errorf("%+v", info)
	}
	if len(events) != 3 || received() != 4 {
		t.Errorf("%d events taken, %g received", len(events), received())
	}
	if err := s.EndOfStream(); !errors.Is(err, ErrStreamOver) {
		t.Errorf("EndOfStream after Close: %v", err)
	}
}

func TestStreamIsSafeForManyGoroutines(t *testing.T) {
	s := openStream(t, func(t *testing.T, conn *websocket.Conn) {
		go func() {
			for conn.WriteMessage(websocket.TextMessage, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 1, "A").Raw) == nil {
			}
		}()
		protocoltest.Drain(conn)
	}, func(c *config) { c.pingEvery = time.Millisecond })
	var all sync.WaitGroup
	var events atomic.Int64
	all.Go(func() {
		var err error
		for seq := int64(0); err == nil; seq++ {
			err = s.Send(seq, make([]float32, protocol.ChunkSamples))
		}
		if !errors.Is(err, ErrStreamOver) {
			t.Error(err)
		}
	})
	for range 4 {
		all.Go(func() {
			for range s.Events() {
				events.Add(1)
				s.Stats()
				s.captureTime(1)
			}
		})
	}
	testkit.Eventually(t, "chunks and events", func() bool { return s.Stats().ChunksSent >= 50 && events.Load() >= 50 })
	s.Close()
	all.Wait()
	if info := s.Wait(); info.Reason != Cancelled {
		t.Errorf("%+v", info)
	}
}

func TestPanicEndsOnlyTheStream(t *testing.T) {
	s := openStream(t, func(t *testing.T, conn *websocket.Conn) { protocoltest.Drain(conn) }, nil)
	func() {
		defer s.recovered("testing")
		panic("oh\nno")
	}()
	_, info := collect(t, s)
	testkit.Equal(t, info.Reason, Lost, info)
	checkEnd(t, info, "internal error while testing: oh no")
	var d interface{ Stack() []byte } // for the crash report
	if !errors.As(info.Err, &d) || !strings.Contains(string(d.Stack()), "TestPanicEndsOnlyTheStream") {
		t.Errorf("%v has no stack of the panic", info.Err)
	}
}

// TestWrongEvents: each event that contradicts the stream says so, except where only a part of it is known.
func TestWrongEvents(t *testing.T) {
	for _, receiveOnly := range []bool{false, true} {
		s := &Stream{sent: 50, open: map[string]float64{}, receiveOnly: receiveOnly}
		for _, c := range []struct {
			kind    string
			at      float64
			speaker string
			want    string
		}{
			{protocol.TypeSpeakerEnd, 1, "A", "no open turn"},
			{protocol.TypeSpeakerStart, 1, "A", ""},
			{protocol.TypeSpeakerStart, 1.5, "B", ""},
			{protocol.TypeSpeakerStart, 2, "A", "already open"},
			{protocol.TypeSpeakerEnd, 3, "A", ""},
			{protocol.TypeSpeakerEnd, 1.5, "B", "not after its start"},
			{protocol.TypeSpeakerStart, 5.1, "A", ""},
			{protocol.TypeSpeakerEnd, 5.2, "A", "after all audio"},
		} {
			if receiveOnly {
				c.want = ""
			}
			if got := s.fault(protocol.NewSpeakerEvent(c.kind, c.at, c.speaker)); got != c.want {
				t.Errorf("%s of %s at %g s: %q, want %q", c.kind, c.speaker, c.at, got, c.want)
			}
		}
	}
}

// TestTimesBeyondTheAudio: neither of them tells how much a service has decided.
func TestTimesBeyondTheAudio(t *testing.T) {
	s := &Stream{open: map[string]float64{}, redactor: &trace.Redactor{}}
	for _, sent := range []int64{0, 300} {
		s.sent = sent
		if e := s.event(websocket.TextMessage, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 3600, "A").Raw); e.Fault != "after all audio" {
			t.Errorf("after %d chunks: %q", sent, e.Fault)
		}
	}
	testkit.Equal(t, s.undecided(), 30*time.Second-assumedLatency, "are undecided")
}
