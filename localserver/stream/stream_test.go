package stream

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/engine"
	"hubbub/localserver/store"
	"hubbub/localserver/stream/streamtest"
	"hubbub/protocol"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// bubble runs a test with a server on a fake clock. Every goroutine has to end
// with it.
func bubble(t *testing.T, test func(t *testing.T, s *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		defer s.close()
		test(t, s)
	})
}

func expectRecord(t *testing.T, s *server, status store.Status, cause string) {
	t.Helper()
	if rec := s.record(testID); rec.Status != status || rec.Cause != cause {
		t.Errorf("the record reads %s, %q; want %s, %q", rec.Status, rec.Cause, status, cause)
	}
}

func TestStreamFromStartToEnd(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.open(streamtest.OneTurn())
		c.chunks(3)
		synctest.Wait()
		testkit.Equal(t, protocoltest.Brief(c.received()), "+00@20ms", "live")
		c.endOfStream()
		code, _ := c.end()
		if got := protocoltest.Brief(c.received()); code != websocket.CloseNormalClosure || got != "+00@20ms -00@300ms" {
			t.Errorf("code %d, %s", code, got)
		}
		expectRecord(t, s, store.Done, "end of stream") // before the close frame is sent
		if stored := s.stored(testID); fmt.Sprint(stored) != fmt.Sprint(c.own()) {
			t.Errorf("stored %q", stored)
		}
		s.running.Wait()
		n := &s.counters
		if n.Opened.Load() != 1 || n.Done.Load() != 1 || n.Failed.Load() != 0 || n.Chunks.Load() != 3 || n.Events.Load() != 2 || n.Lost.Load() != 0 {
			t.Errorf("counters: %+v", n)
		}
		last := s.progress[len(s.progress)-1]
		if !reflect.DeepEqual(last, store.Progress{Stored: 2, Received: 300 * time.Millisecond, Over: true}) {
			t.Errorf("last progress %+v", last)
		}
	})
}

func TestInvalidFramesAreRejected(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		d, gate := streamtest.OneTurn(), make(chan struct{})
		d.OnFlush = func(int) []engine.Event { <-gate; return nil }
		finish := sync.OnceFunc(func() { close(gate) })
		defer finish()
		c := s.open(d)
		nan := make([]byte, protocol.ChunkBytes)
		binary.LittleEndian.PutUint32(nan, math.Float32bits(float32(math.NaN())))
		for _, body := range [][]byte{nil, {1}, quiet[1:], append(quiet, 0), append(quiet, quiet...), make([]byte, 20<<20), nan} {
			testkit.NoError(t, c.WriteMessage(websocket.BinaryMessage, body))
		}
		synctest.Wait()
		const size = "Invalid chunk size "
		if got := protocoltest.Brief(c.received()); got != strings.Repeat(size, 6)+protocol.ErrSampleValue.Error()+" +00@20ms" { // the last one counts as silence
			t.Fatal(got)
		}
		for text, message := range map[string]string{
			"": "type", "hello": "type", "[]": "type", "null": "type", `{}`: "type", `{"type":1}`: "type",
			`{"type":"END_OF_STREAM"}`: "type", `{"TYPE":"end_of_stream"}`: "type", "\xff\xfe": "type",
			protocol.EndOfStreamMessage + strings.Repeat(" ", maxText): "too long", strings.Repeat("x", 1<<20): "too long",
		} {
			c.text(text)
			synctest.Wait()
			if events := c.received(); !strings.Contains(events[len(events)-1].Message, message) {
				t.Errorf("%.30q: %s", text, protocoltest.Brief(events[len(events)-1:]))
			}
		}
		before := len(c.received())
		c.chunks(1)
		c.endOfStream()
		c.text("late") // rejected once
		c.chunks(100)  // neither an error of pace nor audio
		synctest.Wait()
		finish()
		code, _ := c.end()
		if got := protocoltest.Brief(c.received()[before:]); code != 1000 || got != errAfterEnd+" -00@200ms" {
			t.Errorf("code %d, %s", code, got)
		}
		if n := &s.counters; n.FrameErrors.Load() != 19 || n.Chunks.Load() != 2 {
			t.Errorf("%d frame errors, %d chunks", n.FrameErrors.Load(), n.Chunks.Load())
		}
	})
}

func TestTooFast(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.open(streamtest.OneTurn())
		c.chunks(50)
		time.Sleep(time.Second)
		c.chunks(10) // 6 s of audio after 1 s
		synctest.Wait()
		if s.counters.Failed.Load() != 0 {
			t.Fatal("closed too early")
		}
		for range 3 {
			_ = c.WriteMessage(websocket.BinaryMessage, quiet)
		}
		code, text := c.end()
		if code != websocket.ClosePolicyViolation || text != tooFast.text ||
			protocoltest.Brief(c.received()) != "+00@20ms -00@6s Audio is more than 5 s ahead of real time" {
			t.Errorf("code %d %q, %s", code, text, protocoltest.Brief(c.received()))
		}
		expectRecord(t, s, store.Failed, tooFast.cause)
	})
}

func TestNoAudio(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.open(streamtest.OneTurn())
		time.Sleep(59 * time.Second)
		c.chunks(1)
		began := time.Now()
		time.Sleep(30 * time.Second)
		c.text("{}") // is not audio
		code, _ := c.end()
		if d := time.Since(began); code != websocket.ClosePolicyViolation || d < maxSilence || d > maxSilence+checkInterval {
			t.Errorf("code %d after %v", code, d)
		}
		if got := protocoltest.Brief(c.received()); !strings.HasSuffix(got, "-00@100ms No audio for 60 s") {
			t.Errorf("%s", got)
		}
		expectRecord(t, s, store.Failed, noAudio.cause)
	})
}

// The sender of a file may pause, as another program that writes it does.
func TestNoAudioUnpaced(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.open(streamtest.OneTurn(), func(c *Config) { c.Unpaced = true })
		c.chunks(1)
		time.Sleep(2 * maxSilence)
		c.text(protocol.EndOfStreamMessage)
		if code, text := c.end(); code != websocket.CloseNormalClosure {
			t.Errorf("code %d %q", code, text)
		}
	})
}

// A client whose audio waits for the diarizer is not silent.
func TestBusyDiarizerIsNoSilence(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.open(&streamtest.Diarizer{OnPush: func(int, []float32) []engine.Event { time.Sleep(maxSilence); return nil }})
		c.chunks(2)
		time.Sleep(3*maxSilence - time.Second)
		if rec := s.record(testID); rec.Status != store.Running {
			t.Errorf("the stream reads %s: %s", rec.Status, rec.Cause)
		}
		c.end()
		expectRecord(t, s, store.Failed, noAudio.cause)
	})
}

// A connection stays open on pings alone as long as there is audio.
func TestPings(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		var pings atomic.Int64
		conn := s.dial(func(conn *websocket.Conn) { s.begin(testID); s.run(s.config(), conn, streamtest.OneTurn()) })
		pong := conn.PingHandler()
		conn.SetPingHandler(func(data string) error { pings.Add(1); return pong(data) })
		c := newClient(t, conn)
		c.chunks(1)
		time.Sleep(59 * time.Second)
		if n := pings.Load(); n != int64(59*time.Second/pingInterval) || s.record(testID).Status != store.Running {
			t.Errorf("%d pings, the stream reads %s", n, s.record(testID).Status)
		}
		c.endOfStream()
		c.end()
	})
}

// A connection whose other end does not even respond to pings is given up, and what
// is stored of the stream is complete.
func TestDeadConnection(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.dial(func(conn *websocket.Conn) { s.begin(testID); s.run(s.config(), conn, streamtest.OneTurn()) })
		conn.SetPingHandler(func(string) error { return nil })
		c := newClient(t, conn)
		c.chunks(2)
		began := time.Now()
		if code, _ := c.end(); code != websocket.CloseAbnormalClosure {
			t.Errorf("code %d", code)
		}
		if d := time.Since(began); d < readTimeout || d > readTimeout+time.Second {
			t.Errorf("given up after %v", d)
		}
		s.running.Wait()
		expectRecord(t, s, store.Failed, "the client fell silent")
		if stored := s.stored(testID); len(stored) != 2 || !strings.Contains(stored[1], "speaker_end") {
			t.Errorf("stored %q", stored)
		}
	})
}

// A client that does not read is disconnected.
func TestClientThatDoesNotRead(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.dial(func(conn *websocket.Conn) { s.begin(testID); s.run(s.config(), conn, streamtest.OneTurn()) })
		defer func() { _ = conn.Close() }()
		began := time.Now()
		for conn.WriteMessage(websocket.BinaryMessage, []byte{1}) == nil {
			time.Sleep(time.Millisecond)
		}
		s.running.Wait()
		if d := time.Since(began); d < writeTimeout || d > writeTimeout+2*lastReadTimeout {
			t.Errorf("disconnected after %v", d)
		}
		expectRecord(t, s, store.Failed, "the client does not read")
	})
}

// A slow diarizer stops the reader; audio does not accumulate, and waiting for
// it is not silence.
func TestSlowDiarizer(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		gate := make(chan struct{})
		c := s.open(&streamtest.Diarizer{OnPush: func(int, []float32) []engine.Event { <-gate; return nil }}, func(c *Config) { c.Unpaced = true })
		var sent atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			for sent.Load() < 100 && c.WriteMessage(websocket.BinaryMessage, quiet) == nil {
				sent.Add(1)
			}
		}()
		time.Sleep(30 * time.Second)
		// One is with the diarizer and one with the reader.
		if n := s.counters.Chunks.Load(); n != 1 || sent.Load() != queuedChunks+2 {
			t.Errorf("%d chunks were given to the diarizer, %d were sent", n, sent.Load())
		}
		close(gate)
		<-done
		testkit.Equal(t, sent.Load(), 100, "chunks were sent")
		c.endOfStream()
		if code, _ := c.end(); code != 1000 || s.counters.Chunks.Load() != 100 {
			t.Errorf("code %d, %d chunks", code, s.counters.Chunks.Load())
		}
	})
}

func TestStatusByHowTheClientEnds(t *testing.T) {
	for name, c := range map[string]struct {
		leave  func(c *client)
		status store.Status
		cause  string
	}{
		"close 1000":    {func(c *client) { c.sendClose(websocket.CloseNormalClosure) }, store.Done, "closed by the client"},
		"close 1001":    {func(c *client) { c.sendClose(websocket.CloseGoingAway) }, store.Failed, "closed by the client with code 1001"},
		"no code":       {func(c *client) { c.sendClose(websocket.CloseNoStatusReceived) }, store.Failed, "closed by the client with code 1005"},
		"cut":           {func(c *client) { _ = c.NetConn().Close() }, store.Failed, "connection lost"},
		"broken frame":  {func(c *client) { _, _ = c.NetConn().Write([]byte{0xff, 0xff, 0xff, 0xff}) }, store.Failed, "connection lost"},
		"end, then cut": {func(c *client) { c.endOfStream(); _ = c.NetConn().Close() }, store.Done, "end of stream"},
		"half a frame": {func(c *client) {
			_, _ = c.NetConn().Write(frame(0x82, quiet)[:5000])
			_ = c.NetConn().Close()
		}, store.Failed, "connection lost"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				cl := s.open(streamtest.OneTurn())
				cl.chunks(2)
				synctest.Wait()
				c.leave(cl)
				s.running.Wait()
				<-cl.done
				expectRecord(t, s, c.status, c.cause)
				if stored := s.stored(testID); len(stored) != 2 || !strings.Contains(stored[1], `"timestamp":0.2,`) {
					t.Errorf("stored %q", stored)
				}
			})
		})
	}
}

func (c *client) sendClose(code int) {
	c.t.Helper()
	testkit.NoError(c.t, c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second)))
}

// A server that stops finishes its streams. One whose client has ended it is
// done, and the others are not.
func TestDrain(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.open(streamtest.OneTurn())
		c.chunks(3)
		synctest.Wait()
		close(s.drain)
		code, text := c.end()
		if code != websocket.CloseGoingAway || text != shutdown.text || protocoltest.Brief(c.received()) != "+00@20ms -00@300ms" {
			t.Errorf("code %d %q, %s", code, text, protocoltest.Brief(c.received()))
		}
		expectRecord(t, s, store.Failed, shutdown.cause)
	})
	bubble(t, func(t *testing.T, s *server) {
		gate := make(chan struct{})
		c := s.open(&streamtest.Diarizer{OnPush: func(int, []float32) []engine.Event { <-gate; return nil }})
		const sent = 45 // as far ahead as a client may be, and more than the queue holds
		go func() {
			for range sent {
				_ = c.WriteMessage(websocket.BinaryMessage, quiet)
			}
			_ = c.WriteMessage(websocket.TextMessage, []byte(protocol.EndOfStreamMessage))
		}()
		synctest.Wait()
		close(s.drain)
		close(gate)
		if code, _ := c.end(); code != websocket.CloseNormalClosure || s.counters.Chunks.Load() != sent {
			t.Errorf("code %d, %d chunks", code, s.counters.Chunks.Load())
		}
		expectRecord(t, s, store.Done, endOfStream.cause)
	})
}

// A client that sends faster than the diarizer works does not delay the stop of the
// server.
func TestDrainOfAClientThatDoesNotPause(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		const work = 10 * time.Millisecond
		slow := &streamtest.Diarizer{OnPush: func(int, []float32) []engine.Event { time.Sleep(work); return nil }}
		c := s.open(slow, func(c *Config) { c.Unpaced = true })
		go func() {
			for c.WriteMessage(websocket.BinaryMessage, quiet) == nil {
			}
		}()
		time.Sleep(time.Second)
		began := time.Now()
		close(s.drain)
		time.AfterFunc(time.Minute, s.cancel)
		if code, _ := c.end(); code != websocket.CloseGoingAway || time.Since(began) > 2*queuedChunks*work {
			t.Errorf("code %d after %v", code, time.Since(began))
		}
	})
}

// Canceling the context disconnects a stream at once, and its end is recorded.
func TestCancel(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.open(streamtest.OneTurn())
		c.chunks(1)
		synctest.Wait()
		began := time.Now()
		s.close()
		if d := time.Since(began); d > CloseTimeout {
			t.Errorf("it took %v", d)
		}
		if code, _ := c.end(); code != websocket.CloseAbnormalClosure {
			t.Errorf("code %d", code)
		}
		expectRecord(t, s, store.Failed, "connection lost")
	})
}

// A panic of the diarizer ends its stream.
func TestPanicInTheDiarizer(t *testing.T) {
	for _, where := range []string{"push", "flush"} {
		t.Run(where, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				d := streamtest.OneTurn()
				inner := d.OnPush
				d.OnPush = func(n int, samples []float32) []engine.Event {
					if n == 3 && where == "push" {
						panic("index out of range")
					}
					return inner(n, samples)
				}
				d.OnFlush = func(int) []engine.Event { panic("nil map") }
				c := s.open(d)
				c.chunks(3)
				if where == "flush" {
					c.endOfStream()
				}
				code, _ := c.end()
				if got := protocoltest.Brief(c.received()); code != websocket.CloseInternalServerErr || got != "+00@20ms -00@300ms Internal error; the stream is over" {
					t.Errorf("code %d, %s", code, got)
				}
				expectRecord(t, s, store.Failed, internalError.cause)
				testkit.Equal(t, s.counters.EnginePanics.Load(), 1, "panics counted")
			})
		})
	}
}

// What the validator corrects is counted at once, and once.
func TestCorrectionsAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.open(&streamtest.Diarizer{OnPush: func(int, []float32) []engine.Event {
			return []engine.Event{{Kind: engine.End}, {Kind: engine.Start}, {Kind: engine.End, At: time.Hour}}
		}})
		c.chunks(1)
		synctest.Wait()
		testkit.Equal(t, protocoltest.Brief(c.received()), "+00@0s -00@100ms", "events")
		counted := func(when string) {
			if n := &s.counters; n.Moved.Load() != 1 || n.Dropped.Load() != 1 {
				t.Errorf("%s: %d moved, %d dropped", when, n.Moved.Load(), n.Dropped.Load())
			}
		}
		counted("at once")
		c.endOfStream()
		c.end()
		counted("at the end")
	})
}
