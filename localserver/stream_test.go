package localserver

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/engine"
	"hubbub/localserver/stream"
	"hubbub/localserver/stream/streamtest"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

const (
	startAt20 = `{"type":"diarization_speaker_start","data":{"timestamp":0.02,"speaker":"SPEAKER_00"}}`
	// afterEnd is the response to frames after the end of a stream.
	afterEnd = "Frames after end_of_stream are ignored"
	endOf    = `{"type":"diarization_speaker_end","data":{"timestamp":%s,"speaker":"SPEAKER_00"}}`
)

func TestStreamFromStartToEnd(t *testing.T) {
	h := serve(t)
	s := h.open()
	s.chunks(3)
	if e := s.next(); string(e.Raw) != startAt20 {
		t.Errorf("live: %s", e.Raw)
	}
	s.end()
	asked := time.Now()
	events, code, _ := s.rest()
	if code != websocket.CloseNormalClosure || len(events) != 1 || string(events[0].Raw) != fmt.Sprintf(endOf, "0.3") {
		t.Errorf("code %d, %q", code, raws(events))
	}
	if d := time.Since(asked); d > 10*time.Second { // 2 s on a machine that is not busy
		t.Errorf("closed after %v", d)
	}
	// The record is written before the close frame is sent.
	st := h.status(s.id)
	if st.Status != "done" || st.StartedAt == nil || st.CompletedAt == nil {
		t.Errorf("%+v", st)
	}
	if got := h.stored(s.id); len(got) != 2 || got[0] != startAt20 || got[1] != string(events[0].Raw) {
		t.Errorf("stored %q", got)
	}
}

// The real engine, to test that it fits.
func TestStreamWithTheRealEngine(t *testing.T) {
	t.Parallel()
	var log logBuffer
	h := serve(t, log.use, func(o *setup) { o.NewDiarizer, o.Unpaced = nil, true })
	s := h.open()
	s.chunks(50)
	s.end()
	events := s.closes(1000)
	same(t, events, h.stored(s.id))
	testkit.Eventually(t, "the end", func() bool { return log.count("stream closed") == 1 })
	if log.count("moved=0 dropped=0 ended=0") != 1 {
		t.Errorf("the engine needed corrections: %s", log.String())
	}
}

func TestFragmentedFrame(t *testing.T) {
	t.Parallel()
	h := serve(t)
	s := h.open()
	w, err := s.NextWriter(websocket.BinaryMessage)
	testkit.NoError(t, err)
	for range 4 {
		if _, err := w.Write(quiet[:1600]); err != nil {
			t.Fatal(err)
		}
		_ = s.WriteControl(websocket.PingMessage, []byte("x"), time.Now().Add(testkit.Timeout))
	}
	testkit.NoError(t, w.Close())
	s.end()
	if events, code, _ := s.rest(); code != 1000 || len(events) != 2 || events[1].Timestamp != 0.1 {
		t.Errorf("code %d %q", code, raws(events))
	}
}

// The length of a frame may have its top bit set, which is not allowed.
func TestLengthsBeyondTheLimit(t *testing.T) {
	t.Parallel()
	h := serve(t)
	for _, length := range []uint64{1<<30 + 1, 1<<63 - 1, 1 << 63, math.MaxUint64} {
		s := h.open()
		frame := append(binary.BigEndian.AppendUint64([]byte{0x82, 0xff}, length), 0, 0, 0, 0)
		if _, err := s.NetConn().Write(frame); err != nil {
			t.Fatal(err)
		}
		if _, code, _ := s.rest(); code != websocket.CloseMessageTooBig {
			t.Errorf("%d bytes: code %d", length, code)
		}
	}
}

// A chunk with invalid samples counts as silence, so that the clock stays
// correct.
func TestSamplesThatAreNotNumbers(t *testing.T) {
	t.Parallel()
	var sums []float64
	h := serve(t, withEngine(func() stream.Diarizer {
		return &streamtest.Diarizer{OnPush: func(n int, samples []float32) []engine.Event {
			sum := 0.0
			for _, x := range samples {
				sum += float64(x)
			}
			sums = append(sums, sum)
			if n == 4 {
				return []engine.Event{{Kind: engine.Start, At: 310 * time.Millisecond}}
			}
			return nil
		}}
	}))
	s := h.open()
	ones := bytes.Repeat(binary.LittleEndian.AppendUint32(nil, math.Float32bits(1)), protocol.ChunkSamples)
	for _, bits := range []uint32{math.Float32bits(1), 0x7fc00000, 0x7f800000, 0xff800000} {
		frame := bytes.Clone(ones)
		binary.LittleEndian.PutUint32(frame[4*777:], bits)
		testkit.NoError(t, s.WriteMessage(websocket.BinaryMessage, frame))
	}
	s.end()
	events, code, _ := s.rest()
	errs := 0
	for _, e := range events {
		if e.Type == "error" && e.Message == protocol.ErrSampleValue.Error() {
			errs++
		}
	}
	if code != 1000 || errs != 3 || len(events) != 5 || events[4].Timestamp != 0.4 {
		t.Errorf("code %d %q", code, raws(events))
	}
	if fmt.Sprint(sums) != "[1600 0 0 0]" {
		t.Errorf("the engine got %v", sums)
	}
}

// A client that closes its sending side after the end still gets the events and the close
// frame.
func TestHalfClosedAfterTheEnd(t *testing.T) {
	t.Parallel()
	h := serve(t, withEngine(streamtest.OneTurn))
	s := h.open()
	s.chunks(1)
	s.end()
	testkit.NoError(t, s.NetConn().(*tls.Conn).CloseWrite())
	if events, code, _ := s.rest(); len(events) != 2 || code != websocket.CloseNormalClosure {
		t.Errorf("%d events, code %d", len(events), code)
	}
}

func TestTooFastIsClosed(t *testing.T) {
	t.Parallel()
	c := newClock() // stands still
	h := serve(t, c.use)
	s := h.open()
	s.chunks(50)
	testkit.Eventually(t, "chunks", func() bool { return h.counters.Chunks.Load() == 50 })
	c.move(time.Second)
	s.chunks(10) // 6 s of audio after 1 s
	if e := s.next(); e.Type != protocol.TypeSpeakerStart {
		t.Fatalf("got %s", e.Raw)
	}
	if n := h.counters.Failed.Load(); n != 0 {
		t.Fatal("closed too early")
	}
	_ = s.WriteMessage(websocket.BinaryMessage, quiet)
	for range 500 { // it does not stop, and can still read the reason
		_ = s.WriteMessage(websocket.BinaryMessage, quiet)
	}
	events, code, text := s.rest()
	if code != websocket.ClosePolicyViolation || text == "" || len(events) != 2 ||
		events[0].Timestamp != 6 || events[1].Type != "error" || !strings.Contains(events[1].Message, "real time") {
		t.Errorf("code %d %q %q", code, text, raws(events))
	}
	if st := h.status(s.id); st.Status != "error" {
		t.Errorf("status %s", st.Status)
	}
	if got := h.stored(s.id); len(got) != 2 {
		t.Errorf("stored %q", got)
	}
}

// A slow engine makes the server stop reading; audio does not accumulate.
func TestSlowEnginePushesBack(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	h := serve(t, func(o *setup) { o.Unpaced = true }, withEngine(func() stream.Diarizer {
		return &streamtest.Diarizer{OnPush: func(int, []float32) []engine.Event { <-gate; return nil }}
	}))
	s := h.open()
	var sent atomic.Int64
	stuck := make(chan struct{})
	go func() {
		defer close(stuck)
		for s.WriteMessage(websocket.BinaryMessage, quiet) == nil {
			sent.Add(1)
		}
	}()
	// The sender stops when the buffers of the operating system are full.
	var last int64
	testkit.Eventually(t, "back pressure", func() bool {
		time.Sleep(300 * time.Millisecond)
		now := sent.Load()
		rests := now == last && now > 8
		last = now
		return rests
	})
	if n := h.counters.Chunks.Load(); n != 1 {
		t.Errorf("%d chunks in the engine", n)
	}
	close(gate)
	testkit.Eventually(t, "that it continues", func() bool { return sent.Load() > last+100 })
	_ = s.Close()
	<-stuck
}
