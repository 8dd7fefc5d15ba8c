package main

import (
	"math"
	"os"
	"slices"
	"testing"

	"hubbub/protocol/testkit"
)

func TestScript(t *testing.T) {
	b := testkit.Must(os.ReadFile("../script.txt"))(t)
	lines := testkit.Must(parse(string(b)))(t)
	overlaps, who := 0, map[string]bool{}
	for _, l := range lines {
		who[l.voice] = true
		if l.gap < 0 {
			overlaps++
		}
	}
	if len(who) != 4 || overlaps < 2 || overlaps > 4 {
		t.Errorf("%d voices, %d overlaps", len(who), overlaps)
	}
	for _, bad := range []string{"awb 0.5", "nobody 0.5 Hello.", "awb soon Hello."} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestSpeech: a silence of 0.2 s belongs to a turn, one of 0.5 s ends it.
func TestSpeech(t *testing.T) {
	var x []float64
	add := func(seconds, amplitude float64) {
		for range int(seconds * rate) {
			x = append(x, amplitude*math.Sin(2*math.Pi*300*float64(len(x))/rate))
		}
	}
	add(0.1, 0)
	add(0.4, 0.3)
	add(0.2, 0)
	add(0.4, 0.2)
	add(0.5, 0)
	add(0.3, 0.3)
	add(0.1, 0)
	want := []part{{rate / 10, rate * 11 / 10}, {rate * 16 / 10, rate * 19 / 10}}
	if got := speech(x); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestRTTM(t *testing.T) {
	got := rttm([]turn{{"b", 32000, 48000}, {"a", 0, 16000}})
	want := "SPEAKER demo 1 0.000 1.000 <NA> <NA> a <NA> <NA>\nSPEAKER demo 1 2.000 1.000 <NA> <NA> b <NA> <NA>\n"
	testkit.Equal(t, got, want)
}
