package voiceprint

import (
	"math"
	"testing"

	"hubbub/localserver/engine/enginetest"
	"hubbub/protocol/testkit"
)

// The filters pass what a telephone line passes.
func TestLine(t *testing.T) {
	for hertz, want := range map[float64][2]float64{100: {0, 0.15}, 1000: {0.9, 1.05}, 2500: {0.8, 1.05}, 6500: {0, 0.3}} {
		x := make([]float32, rate)
		for n := range x {
			x[n] = float32(math.Sin(2 * math.Pi * hertz * float64(n) / rate))
		}
		var power float64
		for _, y := range simulateTelephone(x)[rate/2:] {
			power += float64(y) * float64(y)
		}
		if gain := 2 * math.Sqrt(power/rate); gain < want[0] || gain > want[1] { // a sine's RMS is 0.71, over half of the second
			t.Errorf("%.0f Hz: gain %.2f, want %.2f to %.2f", hertz, gain, want[0], want[1])
		}
	}
}

// The energy of the room's reflections and noise is that of their constants.
func TestRoom(t *testing.T) {
	x := make([]float32, rate)
	x[0] = 1
	y := simulateFarField(x)
	var tail float64
	for _, v := range y[rate/200 : rate/2] {
		tail += float64(v) * float64(v)
	}
	if y[0] < 0.9 || y[0] > 1.1 || tail < 0.3 || tail > 1.2 {
		t.Errorf("the direct sound is %.2f, the energy of the reflections %.2f", y[0], tail)
	}
	testkit.Equal(t, simulateFarField(x)[rate/3], y[rate/3], "the same audio sounds differently the second time")
}

// The embeddings of one voiceprint are similar, and not the same.
func TestConditionsAreOfOnePerson(t *testing.T) {
	v := made(t, cut(enginetest.Demo(t), 0.9, 5.84))
	for k := range v.embeddings {
		if own := v.embeddings[k].Dot(&v.embeddings[recorded]); own < 0.6 {
			t.Errorf("condition %d: cosine %.2f with the audio as recorded", k, own)
		}
	}
	if v.embeddings[telephone] == v.embeddings[recorded] || v.embeddings[farField] == v.embeddings[recorded] {
		t.Error("two conditions have the same embedding")
	}
	raw, projected := v.embeddings[farField].Dot(&v.embeddings[recorded]), v.projected[farField].Dot(&v.projected[recorded])
	if projected < raw+0.02 {
		t.Errorf("a room changes the projected embedding as much as the embedding: cosines %.3f and %.3f with the audio as recorded", projected, raw)
	}
}

// With new weights, `make calibrate` must be run again.
func TestLearntForTheseWeights(t *testing.T) {
	if v := version(); v != calibratedFor {
		t.Errorf("projection.bin, cohort.bin and calibration.go are for weights %s, these are %s: docs/accuracy.md says how to make them", calibratedFor, v)
	}
	if len(cohort) < 2*nearest {
		t.Errorf("the cohort has %d embeddings", len(cohort))
	}
	for i := range cohort {
		if c := cohort[i].Dot(&cohort[i]); math.Abs(c-1) > 1e-3 {
			t.Errorf("embedding %d of the cohort has the square %.4f", i, c)
		}
	}
}
