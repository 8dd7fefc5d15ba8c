package client

import (
	"math"
	"testing"

	"github.com/gorilla/websocket"
	"pgregory.net/rapid"

	"hubbub/protocol"
	"hubbub/protocol/protocoltest"
)

func TestTimesAcrossDroppedChunks(t *testing.T) {
	var g clockMap
	sent := int64(0)
	for _, seq := range []int64{0, 1, 2, 5, 6, 20} { // dropped: 3, 4 and 7 to 19
		g.add(sent, seq)
		sent++
	}
	for _, c := range []struct{ service, start, end float64 }{
		{0, 0, 0}, {0.25, 0.25, 0.25},
		{0.3, 0.5, 0.3}, // exactly at the first gap
		{0.31, 0.51, 0.51}, {0.499, 0.699, 0.699},
		{0.5, 2, 0.7}, // exactly at the second
		{0.56, 2.06, 2.06}, {100, 101.5, 101.5},
	} {
		if got := g.capture(c.service, false); math.Abs(got-c.start) > 1e-9 {
			t.Errorf("start at %g lies at %g, want %g", c.service, got, c.start)
		}
		if got := g.capture(c.service, true); math.Abs(got-c.end) > 1e-9 {
			t.Errorf("end at %g lies at %g, want %g", c.service, got, c.end)
		}
	}
	if len(g.steps) != 2 {
		t.Errorf("%d steps for 2 gaps", len(g.steps))
	}
}

// Every sample must lie where it was captured, whatever was dropped.
func TestGapsAgreeWithTheChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g clockMap
		var seqs []int64
		next := rapid.Int64Range(0, 3).Draw(t, "first")
		for range rapid.IntRange(1, 60).Draw(t, "chunks") {
			g.add(int64(len(seqs)), next)
			seqs = append(seqs, next)
			next += 1 + rapid.SampledFrom([]int64{0, 0, 0, 1, 7}).Draw(t, "dropped")
		}
		i := rapid.IntRange(0, len(seqs)-1).Draw(t, "chunk")
		within := rapid.IntRange(0, 100).Draw(t, "ms")
		service := float64(i*100+within) / 1000
		want := float64(int(seqs[i])*100+within) / 1000
		if got := g.capture(service, within == 100); math.Abs(got-want) > 1e-9 {
			t.Fatalf("chunks %v: %g lies at %g, want %g", seqs, service, got, want)
		}
	})
}

func TestStreamOnTheCapturesClock(t *testing.T) {
	s := openStream(t, func(t *testing.T, conn *websocket.Conn) { protocoltest.Drain(conn) }, nil)
	mustSend(t, s, 0)
	mustSend(t, s, 4)
	if got := s.captureTime(0.1); got != 0.4 {
		t.Errorf("0.1 s of the service lies at %g, want 0.4", got)
	}
	start := s.onCaptureClock(protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.1, "A"))
	end := s.onCaptureClock(protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 0.1, "A"))
	if start.Timestamp != 0.4 || end.Timestamp != 0.1 {
		t.Errorf("start at %g, end at %g", start.Timestamp, end.Timestamp)
	}
	if e := s.onCaptureClock(protocol.NewErrorEvent("x")); e.Timestamp != 0 || e.Message != "x" {
		t.Errorf("%+v", e)
	}
}
