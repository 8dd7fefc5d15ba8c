package decoder

import (
	"math"
	"os"
	"slices"
	"testing"

	"hubbub/localserver/engine/weights"
)

func model(t testing.TB, load func() (*Model, error)) *Model {
	t.Helper()
	m, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// example is the input of three speakers and what PyTorch makes of it, from a file of
// ../testdata.
func example(t testing.TB, name string) (in Input, want []float32) {
	t.Helper()
	data, err := os.ReadFile("../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := weights.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	r := weights.Reader{File: f}
	read := func(name string) []float32 { return r.Tensor(name, f.Shape(name)...) }
	for v := read("frames"); len(v) > 0; v = v[2:] {
		in.Frames = append(in.Frames, Frame{v[0], v[1]})
	}
	in.Speakers, in.Scores, in.Cosines, want = people, read("scores"), read("cosines"), read("probabilities")
	if f.Shape("durations") != nil {
		in.Durations = read("durations")
	}
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	return in, want
}

const (
	people           = 3 // in the examples
	liveExample      = "decoder-live.hubw"
	recordingExample = "decoder-recording.hubw"
)

func TestParity(t *testing.T) {
	for name, load := range map[string]func() (*Model, error){liveExample: Live, recordingExample: Recording} {
		in, want := example(t, name)
		model(t, load).New().Decode(&in)
		worst := 0.0
		for i := range want {
			worst = max(worst, math.Abs(float64(in.Scores[i])-float64(want[i])))
		}
		t.Logf("%s: probabilities within %.1e", name, worst)
		if !(worst < 2e-3) { // the weights are stored in half precision
			t.Errorf("%s: probabilities are off by %v", name, worst)
		}
	}
}

// TestParts: a part of a recording gives what the whole one does, but for the steps
// whose context is missing.
func TestParts(t *testing.T) {
	in, _ := example(t, liveExample)
	d := model(t, Live).New()
	const skip = 4 // steps
	part := Input{people, slices.Clone(in.Frames[skip*Split:]), slices.Clone(in.Scores[skip*Split*people:]), in.Cosines[skip*people*Scales:], in.Durations}
	d.Decode(&in)
	d.Decode(&part)
	whole := in.Scores[skip*Split*people:]
	for i, p := range part.Scores {
		if i >= Context*Split*people && math.Abs(float64(p-whole[i])) > 1e-5 {
			t.Fatalf("value %d is %v, of the whole recording %v", i, p, whole[i])
		}
	}
}

// TestOrder: the order of the speakers does not matter.
func TestOrder(t *testing.T) {
	in, _ := example(t, liveExample)
	turn := func(v []float32, size int) []float32 { // speakers 0 1 2 become 1 2 0
		out := make([]float32, len(v))
		for i := 0; i < len(v); i += people * size {
			copy(out[i+size:i+people*size], v[i:])
			copy(out[i:i+size], v[i+(people-1)*size:])
		}
		return out
	}
	d := model(t, Live).New()
	turned := Input{people, slices.Clone(in.Frames), turn(in.Scores, 1), turn(in.Cosines, Scales), turn(in.Durations, 1)}
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
	d := model(t, Live).New()
	var in Input
	d.Decode(&in)
	in.Reset(0, 1)
	in.Frames[0] = Frame{0.5, 0.6}
	d.Decode(&in)
	if f := in.Frames[0]; f.Speech != 0.5 || f.Talkers != 0.3 {
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
	many, _ := example(t, liveExample)
	d.Decode(&many)
	if after := one(); !slices.Equal(before, after) || !(after[40] > 0 && after[40] < 1) {
		t.Errorf("probability %v, and %v after another recording", before[40], after[40])
	}
}

// BenchmarkDecode is a minute of five speakers.
func BenchmarkDecode(b *testing.B) {
	d := model(b, Live).New()
	var in Input
	in.Reset(5, 1500)
	for b.Loop() {
		d.Decode(&in)
	}
}
