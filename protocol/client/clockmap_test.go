package client

import (
	"math"
	"testing"

	"github.com/gorilla/websocket"
	"pgregory.net/rapid"

	"hubbub/protocol"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// Every sample must lie where it was captured, whatever was dropped.
func TestGapsAgreeWithTheChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g clockMap
		var seqs []int64
		next, gaps := rapid.Int64Range(0, 3).Draw(t, "first"), 1 // also before the first chunk
		for range rapid.IntRange(1, 60).Draw(t, "chunks") {
			g.add(int64(len(seqs)), next)
			seqs = append(seqs, next)
			dropped := rapid.SampledFrom([]int64{0, 0, 0, 1, 7}).Draw(t, "dropped")
			if next += 1 + dropped; dropped > 0 {
				gaps++
			}
		}
		if len(g.steps) > gaps {
			t.Fatalf("%d steps for %d gaps", len(g.steps), gaps)
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
	testkit.Equal(t, s.captureTime(0.1), 0.4, "0.1 s of the service lies at")
	start := s.onCaptureClock(protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.1, "A"))
	end := s.onCaptureClock(protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 0.1, "A"))
	if start.Timestamp != 0.4 || end.Timestamp != 0.1 {
		t.Errorf("start at %g, end at %g", start.Timestamp, end.Timestamp)
	}
	text := s.onCaptureClock(protocol.NewTextEvent(protocol.Turn{Start: 0.1, End: 0.1}))
	if text.Transcript.Start != 0.4 || text.Transcript.End != 0.1 {
		t.Errorf("%+v", text)
	}
	if e := s.onCaptureClock(protocol.NewErrorEvent("x")); e.Timestamp != 0 || e.Message != "x" {
		t.Errorf("%+v", e)
	}
}
