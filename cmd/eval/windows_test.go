package main

import (
	"testing"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/enginetest"
	"hubbub/localserver/engine/inference"
	"hubbub/protocol/testkit"
)

// TestEmbeddingsOfPeople: segments of one person in the demo are more similar than
// those of two.
func TestEmbeddingsOfPeople(t *testing.T) {
	turns, err := readFile("../../capture/demo/demo.rttm", readTurns)
	testkit.NoError(t, err)
	const hop = 5 * 16000 // a window has 5 s: none is in two
	stream := inference.New(hop)
	type segment struct {
		speaker   string
		embedding clustering.Embedding
	}
	var segments []segment
	samples := enginetest.Demo(t)
	for at := 0; at < len(samples); at += hop {
		w := stream.Push(samples[at:min(at+hop, len(samples))], at+hop >= len(samples))
		for _, l := range w.Speakers {
			for i := range l.Segments {
				from, to := w.Span(&l.Segments[i])
				start, end := float64(from)*clustering.FrameSeconds, float64(to)*clustering.FrameSeconds
				for _, turn := range turns {
					if turn.Start <= start+0.1 && end <= turn.End+0.1 {
						segments = append(segments, segment{turn.Speaker, l.Segments[i].Embedding})
						break
					}
				}
			}
		}
	}
	var cosines, n [2]float64
	for i := range segments {
		for j := range i {
			same := 0
			if segments[i].speaker == segments[j].speaker {
				same = 1
			}
			cosines[same] += segments[i].embedding.Dot(&segments[j].embedding)
			n[same]++
		}
	}
	other, same := cosines[0]/n[0], cosines[1]/n[1]
	t.Logf("%d segments; mean cosine of one person %.2f, of two people %.2f", len(segments), same, other)
	if len(segments) < 20 || !(same > other+0.15) {
		t.Errorf("%d segments; those of one person have a mean cosine of %.2f, of two %.2f", len(segments), same, other)
	}
}
