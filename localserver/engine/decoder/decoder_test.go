package decoder

import (
	"math"
	"os"
	"slices"
	"testing"

	"hubbub/localserver/engine/weights"
	"hubbub/protocol/testkit"
)

// example is the input of three speakers and what PyTorch makes of it.
func example(t testing.TB) (in Input, want []float32) {
	t.Helper()
	f := weights.MustRead(testkit.Must(os.ReadFile("../testdata/decoder.hubw"))(t))
	const frames = 160
	for v := f.Tensor("frames", frames, 2); len(v) > 0; v = v[2:] {
		in.Frames = append(in.Frames, Frame{v[0], v[1]})
	}
	in.Speakers, in.Scores, in.Cosines = people, f.Tensor("scores", frames, people), f.Tensor("cosines", frames/Split, people, Scales)
	return in, f.Tensor("probabilities", frames, people)
}

const people = 3 // in the example

func TestParity(t *testing.T) {
	in, want := example(t)
	Recording().New().Decode(&in)
	worst := 0.0
	for i := range want {
		worst = max(worst, math.Abs(float64(in.Scores[i])-float64(want[i])))
	}
	t.Logf("probabilities within %.1e", worst)
	if !(worst < 2e-3) { // the weights are stored in half precision
		t.Errorf("probabilities are off by %v", worst)
	}
}

// TestParts: a part of a recording gives what the whole one does, but for the steps
// whose context is missing.
func TestParts(t *testing.T) {
	in, _ := example(t)
	d := Recording().New()
	const skip = 4 // steps
	part := Input{people, slices.Clone(in.Frames[skip*Split:]), slices.Clone(in.Scores[skip*Split*people:]), in.Cosines[skip*people*Scales:]}
	d.Decode(&in)
	d.Decode(&part)
	whole := in.Scores[skip*Split*people:]
	for i, p := range part.Scores {
		if i >= Context*people && math.Abs(float64(p-whole[i])) > 1e-5 {
			t.Fatalf("value %d is %v, of the whole recording %v", i, p, whole[i])
		}
	}
}

// TestOrder: the order of the speakers does not matter.
func TestOrder(t *testing.T) {
	in, _ := example(t)
	turn := func(v []float32, size int) []float32 { // speakers 0 1 2 become 1 2 0
		out := make([]float32, len(v))
		for i := 0; i < len(v); i += people * size {
			copy(out[i+size:i+people*size], v[i:])
			copy(out[i:i+size], v[i+(people-1)*size:])
		}
		return out
	}
	d := Recording().New()
	turned := Input{people, slices.Clone(in.Frames), turn(in.Scores, 1), turn(in.Cosines, Scales)}
	d.Decode(&in)
	d.Decode(&turned)
	want := turn(in.Scores, 1)
	for i, p := range turned.Scores {
		if math.Abs(float64(p-want[i])) > 1e-5 {
			t.Fatalf("value %d is %v, in the other order %v", i, p, want[i])
		}
	}
}

// TestFewSpeakers: nobody talks where there is nobody, and one speaker sees nobody
// else. What was decoded before does not matter.
func TestFewSpeakers(t *testing.T) {
	d := Recording().New()
	var in Input
	d.Decode(&in)
	in.Reset(0, 1)
	in.Frames[0] = Frame{0.5, 0.6}
	d.Decode(&in)
	if f := in.Frames[0]; f.Speech != 0.5 || f.SpeakerCount != 0.3 {
		t.Errorf("%+v", f)
	}
	one := func() []float32 {
		in.Reset(1, 40)
		for i := range in.Scores {
			in.Scores[i], in.Frames[i] = 0.9, Frame{0.9, 0.9}
		}
		d.Decode(&in)
		return slices.Clone(in.Scores)
	}
	before := one()
	many, _ := example(t)
	d.Decode(&many)
	if after := one(); !slices.Equal(before, after) || !(after[40] > 0 && after[40] < 1) {
		t.Errorf("probability %v, and %v after another recording", before[40], after[40])
	}
}
