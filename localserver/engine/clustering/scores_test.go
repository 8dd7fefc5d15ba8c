package clustering

import (
	"math"
	"reflect"
	"testing"

	"hubbub/localserver/engine/decoder"
	"hubbub/protocol/testkit"
)

func onAxis(axis int) (e Embedding) {
	e[axis] = 1
	return e
}

// threeOnAxes is a clusterer with three speakers on three axes, the second of whom was
// merged, and a window of 100 frames from frame 10 in which the third one talks.
func threeOnAxes() *Clusterer {
	c := New(Default(), MaxSpeakers)
	for k := range 3 {
		c.speakers = append(c.speakers, speaker{duration: 1, centroid: plain(onAxis(k))})
	}
	c.speakers[1] = speaker{}
	c.aggregate.first = 10
	c.aggregate.extend(110)
	for i := range c.aggregate.frames {
		c.aggregate.frames[i] = frameScores{weight: 2, speech: 1.8, speakerCount: 1.9, speaker: [MaxSpeakers]float32{0.1, 0, 1.7}}
	}
	return c
}

func embeddings(step, short, long int) MultiscaleEmbedding {
	return MultiscaleEmbedding{step, [decoder.Scales]Embedding{onAxis(short), onAxis(long)}}
}

func TestDecoderInputOfFramesAndSteps(t *testing.T) {
	c := threeOnAxes()
	c.addMultiscale(&Window{Multiscale: []MultiscaleEmbedding{embeddings(8, 0, 0), embeddings(12, 0, 2), embeddings(16, 0, 5)}})
	c.addMultiscale(&Window{Multiscale: []MultiscaleEmbedding{embeddings(12, 2, 2), embeddings(20, 2, 0)}}) // the second again
	var s DecoderInput
	c.DecoderInput(21, &s)
	if s.First != 20 || len(s.Frames) != 90 || s.Speakers != 2 || len(s.Numbers) != 2 || s.Numbers[0] != 0 || s.Numbers[1] != 2 {
		t.Fatalf("%d frames from %d of %d speakers %v", len(s.Frames), s.First, s.Speakers, s.Numbers)
	}
	near := func(got, want float32) bool { return math.Abs(float64(got-want)) < 1e-6 }
	if f := s.Frames[3]; !near(f.Speech, 0.9) || !near(f.SpeakerCount, 0.95) || !near(s.Scores[3*2], 0.05) || !near(s.Scores[3*2+1], 0.85) {
		t.Errorf("frame %+v, scores %v", f, s.Scores[6:8])
	}
	// Of steps 10, 12, 15, 16, 20 and 24: the cosines of speaker 0 and speaker 2, the
	// short span and the long one.
	for step, want := range map[int][4]float32{10: {1, 1, 0, 0}, 12: {0, 0, 1, 1}, 15: {0, 0, 1, 1}, 16: {1, 0, 0, 0}, 20: {0, 1, 1, 0}, 24: {}} {
		testkit.Equal(t, [4]float32(s.Cosines[(step-s.First/2)*4:]), want, "step", step, "cosines")
	}
	if got := s.Active(3); got != 0b100 {
		t.Errorf("speakers %b", got)
	}
}

// The decoder's input begins with a whole step: what comes before it is discarded, and nothing else.
func TestDiscardKeepsWholeSteps(t *testing.T) {
	for _, first := range []int{30, 31} {
		c := threeOnAxes()
		c.addMultiscale(&Window{Multiscale: []MultiscaleEmbedding{embeddings(8, 0, 0), embeddings(12, 0, 2), embeddings(16, 0, 5)}})
		var want, got DecoderInput
		c.DecoderInput(first, &want)
		c.Discard(first)
		c.DecoderInput(first, &got)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("from frame %d: %v, and %v before", first, got.Frames[:2], want.Frames[:2])
		}
		if c.aggregate.first != 30 {
			t.Errorf("from frame %d: the frames from %d on are left", first, c.aggregate.first)
		}
	}
}

// TestScoresOfNobody: before there is a speaker, speech is that of the first one; and
// before there are frames.
func TestScoresOfNobody(t *testing.T) {
	c := threeOnAxes()
	c.speakers = nil
	c.addMultiscale(&Window{Multiscale: []MultiscaleEmbedding{embeddings(8, 0, 0)}})
	for i := range c.aggregate.frames {
		c.aggregate.frames[i].speaker = [MaxSpeakers]float32{1.8}
	}
	var s DecoderInput
	c.DecoderInput(0, &s)
	if s.First != 10 || len(s.Frames) != 100 || s.Active(3) != 0b1 || s.Cosines[6] != 0 {
		t.Errorf("%d frames from %d, speakers %b", len(s.Frames), s.First, s.Active(3))
	}
	New(Default(), MaxSpeakers).DecoderInput(0, &s)
	testkit.Equal(t, len(s.Frames), 0, "frames")
}

func TestDiscardedMultiscale(t *testing.T) {
	c := threeOnAxes()
	c.addMultiscale(&Window{Multiscale: []MultiscaleEmbedding{embeddings(8, 0, 0), embeddings(12, 0, 2), embeddings(16, 0, 5)}})
	c.Discard(31) // frame 31 is of step 15
	if len(c.multiscale) != 2 || c.multiscale[0].Step != 12 {
		t.Errorf("%d multiscale embeddings left", len(c.multiscale))
	}
	c.addMultiscale(&Window{Multiscale: []MultiscaleEmbedding{embeddings(8, 1, 1), embeddings(28, 1, 1)}}) // of a discarded step, and after a gap
	testkit.Equal(t, len(c.multiscale), 2, "multiscale embeddings after others that do not follow")
}
