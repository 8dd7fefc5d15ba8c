package client

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// bufferedConn is a connection whose peer is never blocked by its reader, as with
// the buffers of sockets.
type bufferedConn struct {
	net.Conn
	mu      sync.Mutex
	arrived *sync.Cond
	unread  []byte
	err     error
}

func newBufferedConn(conn net.Conn) *bufferedConn {
	b := &bufferedConn{Conn: conn}
	b.arrived = sync.NewCond(&b.mu)
	go func() {
		part := make([]byte, 64<<10)
		for {
			n, err := conn.Read(part)
			b.mu.Lock()
			b.unread, b.err = append(b.unread, part[:n]...), err
			b.mu.Unlock()
			b.arrived.Broadcast()
			if err != nil {
				return
			}
		}
	}()
	return b
}

func (b *bufferedConn) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.unread) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.arrived.Wait()
	}
	n := copy(p, b.unread)
	b.unread = b.unread[n:]
	return n, nil
}

// processSlowly reads a stream to its end_of_stream, at a share of real time, and
// stops reading after some chunks.
func processSlowly(conn *websocket.Conn, share float64, stopAfter int) (ended bool) {
	for n := 0; n != stopAfter; {
		kind, _, err := conn.ReadMessage()
		switch {
		case err != nil:
			return false
		case kind == websocket.TextMessage:
			return true
		}
		n++
		time.Sleep(time.Duration(float64(protocol.ChunkDuration) / share))
	}
	return false
}

// A service that processes audio slower than real time is waited for, though it
// sends nothing but answers to pings, and those late. Of what it has read, it has not
// processed 0.8 s.
func TestSlowServiceIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, share := range []float64{0.8, 0.5, 0.2, 0.1, 0.05} {
		inBubble(t, fmt.Sprint(share), func(t *testing.T) {
			s := bufferedStream(t, func(t *testing.T, conn *websocket.Conn) {
				if processSlowly(conn, share, -1) {
					say(t, conn, event("start", 59, "A"))
					closeAfter(conn, time.Duration(0.8/share*float64(time.Second)))
				}
			})
			const chunks = 600
			behind := sendRealTime(t, s, chunks)
			begun := time.Now()
			info := ended(s)
			audio := float64(chunks) * protocol.ChunkDuration.Seconds()
			if want := audio/share - audio; info.Reason != Completed || time.Since(begun).Seconds() < want-1 {
				t.Errorf("%.1f s after end_of_stream, %.1f s of audio behind: %+v", time.Since(begun).Seconds(), behind.Seconds(), info)
			}
			// Pings are in steps of 2 s.
			if want := audio * (1 - share); behind.Seconds() < want-0.2 || behind.Seconds() > want+2.2 {
				t.Errorf("%.1f s behind, want %.1f", behind.Seconds(), want)
			}
		})
	}
}

// Little audio is on its way to a service that is slower than its client, which does not make it slower. One that answers no
// ping is sent everything; one that stops to is given up.
func TestUnacknowledgedAudioIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		answers   bool
		stopAfter int // chunks
		took      time.Duration
		reason    Reason
	}{
		{"slow", true, -1, 6 * time.Second, Completed},
		{"answers nothing", false, -1, 6 * time.Second, Completed},
		{"stops", true, 300, 3*time.Second + time.Minute, TimedOut},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := bufferedStream(t, func(_ *testing.T, conn *websocket.Conn) {
				if !c.answers {
					conn.SetPingHandler(func(string) error { return nil })
				}
				if processSlowly(conn, 10, c.stopAfter) {
					protocoltest.CloseWith(conn, 1000, "")
				}
				for conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second)) == nil {
					time.Sleep(5 * time.Second)
				}
			})
			begun := time.Now()
			r := &ResilientStream{o: ResilientOptions{Unpaced: true}, buffer: newSendBuffer(false, nil), endSent: make(chan struct{})}
			go r.sendBuffered(s)
			for n := range int64(600) {
				_ = r.buffer.put(bufferedChunk{n, make([]float32, protocol.ChunkSamples)}, s.ctx.Done()) // the end says why it failed
				if behind := s.Stats().Behind; c.answers && behind > 5*time.Second {
					t.Fatalf("%s are unacknowledged", behind)
				}
			}
			r.buffer.end()
			info := ended(s)
			if took := time.Since(begun); info.Reason != c.reason || took < c.took || took > c.took+4*time.Second {
				t.Errorf("after %s: %+v", took, info)
			}
		})
	}
}

// A service that keeps up is sent a microphone's audio in time, though its answers to pings are late, as with a slow network, or
// end: what it reports shows that it has read more.
func TestServiceWithLatePongsKeepsUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		late    time.Duration
		lasting time.Duration // of the answers
		reports bool
	}{{4 * time.Second, time.Hour, false}, {7 * time.Second, time.Hour, true}, {0, 20 * time.Second, true}} {
		inBubble(t, fmt.Sprintf("%+v", c), func(t *testing.T) {
			s := bufferedStream(t, func(t *testing.T, conn *websocket.Conn) {
				begun := time.Now()
				conn.SetPingHandler(func(payload string) error {
					if time.Since(begun) < c.lasting {
						time.AfterFunc(c.late, func() { _ = conn.WriteControl(websocket.PongMessage, []byte(payload), time.Now().Add(time.Second)) })
					}
					return nil
				})
				for n := 1; ; n++ {
					if kind, _, err := conn.ReadMessage(); err != nil || kind == websocket.TextMessage {
						break
					}
					if c.reports && n%30 == 0 {
						say(t, conn, event(map[bool]string{true: "start", false: "end"}[n%60 != 0], float64(n)/10, "A"))
					}
				}
				protocoltest.CloseWith(conn, 1000, "")
			})
			r := &ResilientStream{buffer: newSendBuffer(true, nil), endSent: make(chan struct{})}
			go r.sendBuffered(s)
			go ended(s)
			for n := range int64(1200) {
				_ = r.buffer.put(bufferedChunk{n, make([]float32, protocol.ChunkSamples)}, s.ctx.Done()) // the end says why it failed
				time.Sleep(protocol.ChunkDuration)
				if waiting, _ := r.buffer.waiting(); waiting > 30 {
					t.Fatalf("after %d chunks %d wait to be sent", n, waiting)
				}
			}
			r.buffer.end()
			testkit.Equal(t, s.Wait().Reason, Completed, s.Wait())
		})
	}
}

// closeAfter closes a stream after a time in which it answers pings.
func closeAfter(conn *websocket.Conn, d time.Duration) {
	var reader sync.WaitGroup
	reader.Go(func() { protocoltest.Drain(conn) })
	time.Sleep(d)
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(time.Second))
	reader.Wait()
}

// A service that accepts no audio for a while is waited for as long as it sends pings, a minute at most. One of this process is
// waited for anyway, also at the end.
func TestServiceThatPausesIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pause    time.Duration
		pings    bool
		patience time.Duration
		reason   Reason
		says     string
	}{
		{50 * time.Second, true, 0, Completed, ""},
		{70 * time.Second, true, 0, TimedOut, "accepted no audio for 1m0s"},
		{50 * time.Second, false, 0, TimedOut, "sent nothing for 9s"},
		{30 * time.Minute, false, time.Hour, Completed, ""},
	} {
		inBubble(t, fmt.Sprintf("%+v", c), func(t *testing.T) {
			s := pipeStream(t, func(_ *testing.T, conn *websocket.Conn) {
				for since := time.Now(); time.Since(since) < c.pause; time.Sleep(5 * time.Second) {
					if c.pings {
						_ = conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
					}
				}
				if processSlowly(conn, 1, -1) {
					closeAfter(conn, c.patience/2)
				}
			}, func(conf *config) { conf.patience = c.patience })
			for n := range int64(10) {
				_ = s.Send(n, make([]float32, protocol.ChunkSamples)) // the end says why it failed
			}
			_ = s.EndOfStream()
			info := ended(s)
			testkit.Equal(t, info.Reason, c.reason, info)
			checkEnd(t, info, c.says)
		})
	}
}

// sendRealTime sends silence at the pace of a microphone and the end of the
// stream, and returns how far behind the service is then.
func sendRealTime(t *testing.T, s *Stream, chunks int64) (behind time.Duration) {
	t.Helper()
	for n := range chunks {
		mustSend(t, s, n)
		time.Sleep(protocol.ChunkDuration)
	}
	behind = s.Stats().Behind
	testkit.NoError(t, s.EndOfStream())
	return behind
}

// A slow service that makes no progress any more is given up after as long as it
// was behind, a minute at most.
func TestSlowServiceThatStopsIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(*websocket.Conn){
		"silent": func(conn *websocket.Conn) { _, _ = io.Copy(io.Discard, conn.NetConn()) },
		"answers pings and says what it is": func(conn *websocket.Conn) {
			go protocoltest.Drain(conn)
			for conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"news"}`)) == nil {
				time.Sleep(time.Second)
			}
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			var stopped time.Time
			s := bufferedStream(t, func(_ *testing.T, conn *websocket.Conn) {
				processSlowly(conn, 0.5, 150)
				stopped = time.Now()
				then(conn)
			})
			sendRealTime(t, s, 200)
			info := ended(s)
			took := time.Since(stopped)
			if info.Reason != TimedOut || took < drainTimeout-s.config.pingEvery || took > drainLimit {
				t.Errorf("after %s: %+v", took, info)
			}
		})
	}
}

// A service that takes the audio at once and decides at the end is waited for while
// it answers pings: for as long as the audio is, a minute at most.
func TestServiceThatDecidesAtTheEndIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		chunks   int64
		computes time.Duration
		answers  bool // pings
		reason   Reason
		within   time.Duration
	}{
		{300, 25 * time.Second, true, Completed, 25 * time.Second},
		{900, 55 * time.Second, true, Completed, 55 * time.Second},
		{300, 50 * time.Second, true, TimedOut, 40 * time.Second},
		{900, 2 * time.Minute, true, TimedOut, 62 * time.Second},
		{900, 2 * time.Minute, false, TimedOut, 12 * time.Second},
	} {
		inBubble(t, fmt.Sprintf("%d chunks, %v, answers %v", c.chunks, c.computes, c.answers), func(t *testing.T) {
			s := bufferedStream(t, func(t *testing.T, conn *websocket.Conn) {
				untilEnd(t, conn)
				var reader sync.WaitGroup
				if c.answers {
					reader.Go(func() { protocoltest.Drain(conn) })
				}
				time.Sleep(c.computes)
				_ = conn.WriteMessage(websocket.TextMessage, []byte(startA))
				_ = conn.WriteMessage(websocket.TextMessage, []byte(endA))
				_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(time.Second))
				reader.Wait()
			})
			sendRealTime(t, s, c.chunks)
			begun := time.Now()
			events := 0
			for range s.Events() {
				events++
			}
			info := s.Wait()
			if took := time.Since(begun); info.Reason != c.reason || took > c.within || (events == 2) != (c.reason == Completed) {
				t.Errorf("%d events, after %s: %+v", events, took, info)
			}
		})
	}
}

// A service that pings and then reads nothing for a while gets its pong late. Of several
// pings it gets that of the newest.
func TestPongToASlowService(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var pongs []string
		ponged := make(chan struct{})
		s := pipeStream(t, func(t *testing.T, conn *websocket.Conn) {
			conn.SetPongHandler(func(content string) error {
				if pongs = append(pongs, content); len(pongs) == 2 {
					close(ponged)
				}
				return nil
			})
			conn.SetPingHandler(func(string) error {
				if len(pongs) == 0 { // the first one: no other write of the client waits now
					for _, own := range []string{"1", "2", "3"} {
						_ = conn.WriteControl(websocket.PingMessage, []byte(own), time.Now().Add(testkit.Timeout))
						time.Sleep(time.Second)
					}
				}
				return nil
			})
			untilEnd(t, conn)
			protocoltest.CloseWith(conn, 1000, "")
		}, nil)
		select {
		case <-ponged:
		case <-s.ctx.Done():
		}
		_ = s.EndOfStream() // the end says why it failed
		if _, info := collect(t, s); info.Reason != Completed || !slices.Equal(pongs, []string{"1", "3"}) {
			t.Errorf("pongs %q, %+v", pongs, info)
		}
	})
}

// Pings that are never answered use a bounded amount of memory, and a late answer
// still acknowledges audio.
func TestManyUnansweredPings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, manyUnansweredPings)
}

func manyUnansweredPings(t *testing.T) {
	const pingEvery = 2 * time.Second
	s := &Stream{}
	for n := range int64(2 * maxPings) { // numbered from 1
		s.sent = 20 * n
		s.nextPing()
		time.Sleep(pingEvery)
	}
	now := time.Now()
	if len(s.pings) != maxPings {
		t.Fatalf("%d pings are kept", len(s.pings))
	}
	s.acknowledge(1<<40, now) // never sent
	if acked := s.sending().acked; acked != 0 {
		t.Errorf("an answer to no ping acknowledges %d chunks", acked)
	}
	testkit.Equal(t, s.acknowledge(maxPings/2, now), time.Duration(3*maxPings/2+1)*pingEvery, "a round trip of")
	if acked, first := s.acked, s.firstAcked; acked != 20*(maxPings/2-1) || first != now {
		t.Errorf("%d chunks acknowledged, want %d", acked, 20*(maxPings/2-1))
	}
	s.acknowledge(1, now)
	s.acknowledge(2*maxPings, now)
	if acked := s.sending().acked; acked != 20*(maxPings-1) || len(s.pings) != 0 {
		t.Errorf("%d chunks acknowledged, want %d", acked, 20*(maxPings-1))
	}
}
