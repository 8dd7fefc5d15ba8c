package protocol

import (
	"testing"

	"hubbub/protocol/testkit"
)

func BenchmarkAppendChunk(b *testing.B) {
	samples, frame := make([]float32, ChunkSamples), make([]byte, 0, ChunkBytes)
	b.SetBytes(ChunkBytes)
	b.ReportAllocs()
	for b.Loop() {
		frame = AppendChunk(frame[:0], samples)
	}
}

func BenchmarkDecodeChunk(b *testing.B) {
	samples, frame := make([]float32, ChunkSamples), make([]byte, ChunkBytes)
	b.SetBytes(ChunkBytes)
	b.ReportAllocs()
	for b.Loop() {
		testkit.NoError(b, DecodeChunk(samples, frame))
	}
}

func BenchmarkParseEvent(b *testing.B) {
	raw := NewSpeakerEvent(TypeSpeakerStart, 1.24, "SPEAKER_00").Raw
	b.ReportAllocs()
	for b.Loop() {
		testkit.Must(ParseEvent(raw))(b)
	}
}

// longTimeline is a Timeline with n turns of 8 speakers.
func longTimeline(n int) *Timeline {
	timeline := NewTimeline()
	for i := range n {
		label := SpeakerLabel(i % MaxSpeakers)
		timeline.Apply(Event{Type: TypeSpeakerStart, Timestamp: float64(i), Speaker: label})
		timeline.Apply(Event{Type: TypeSpeakerEnd, Timestamp: float64(i) + 0.9, Speaker: label})
	}
	return timeline
}

// BenchmarkTimelineApply is one start and one end at the end of 100,000 turns.
func BenchmarkTimelineApply(b *testing.B) {
	const n = 100_000
	b.ReportAllocs()
	at, timeline := n, longTimeline(n)
	for b.Loop() {
		if at == MaxTurns {
			b.StopTimer()
			at, timeline = n, longTimeline(n)
			b.StartTimer()
		}
		timeline.Apply(Event{Type: TypeSpeakerStart, Timestamp: float64(at), Speaker: "SPEAKER_03"})
		timeline.Apply(Event{Type: TypeSpeakerEnd, Timestamp: float64(at) + 0.9, Speaker: "SPEAKER_03"})
		at++
	}
}

func BenchmarkTimelineSnapshot(b *testing.B) {
	timeline := longTimeline(100_000)
	b.ReportAllocs()
	for b.Loop() {
		if len(timeline.Snapshot().Lanes) != MaxSpeakers {
			b.Fatal("lanes are missing")
		}
	}
}
