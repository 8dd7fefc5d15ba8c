package offline

import (
	"math"
	"slices"
	"testing"
)

// TestContinuation: a speaker continues another one only with turns that touch its turns at both ends.
func TestContinuation(t *testing.T) {
	long := []Turn{{0, 0, 10}, {0, 12, 20}, {0, 22, 30}, {0, 32, 40}}
	for _, c := range []struct {
		name  string
		other []Turn
		want  float64
	}{
		{"between its turns", []Turn{{1, 10, 12}, {1, 20, 22}, {1, 30, 32}}, 1},
		{"and within the gap", []Turn{{1, 10.1, 11.9}, {1, 20.1, 21.9}, {1, 30.1, 31.9}}, 1},
		{"with pauses", []Turn{{1, 10.2, 11.8}, {1, 20.2, 21.8}, {1, 30.2, 31.8}}, 0},
		{"at one end", []Turn{{1, 10, 11}, {1, 20, 21}, {1, 30, 31}}, 0},
		{"at once with it", []Turn{{1, 9, 12}, {1, 19, 22}, {1, 29, 32}}, 0},
		{"too rarely", []Turn{{1, 10, 12}, {1, 20, 22}}, 0},
		{"with a small part of its speech", []Turn{{1, 10, 12}, {1, 20, 22}, {1, 30, 32}, {0, 41, 241}, {1, 242, 356}}, 0.5},
	} {
		of := continuation(append(append([]Turn(nil), long...), c.other...), 2)
		if got := of(0, 1); math.Abs(got-c.want) > 0.001 || of(1, 0) != got {
			t.Errorf("%s: %v and %v, want %v", c.name, got, of(1, 0), c.want)
		}
	}
}

// TestContinuedSpeakersAreMerged: labels of similar voices that change without a pause are
// one person. People who take turns without a pause are two. The progress goes on while
// the recording is decoded again.
func TestContinuedSpeakersAreMerged(t *testing.T) {
	for _, c := range []struct {
		name      string
		cosine    float64
		pause     bool
		want      int
		decodings int
	}{
		{"one voice that varies", 0.59, false, 1, 2},
		{"the same with pauses", 0.59, true, 2, 1},
		{"two voices without a pause", 0.3, false, 2, 1},
	} {
		voices := people(2)
		mix := math.Sqrt(1 - c.cosine*c.cosine)
		for i := range voices[1].voice {
			voices[1].voice[i] = c.cosine*voices[0].voice[i] + mix*voices[1].voice[i]
		}
		pass := added(t, Options{}, voices, 120, func(second int) (int, int) {
			switch at := second % 20; {
			case c.pause && (at == 16 || at == 19):
				return -1, -1
			case at < 17:
				return 0, -1
			}
			return 1, -1
		})
		var shares []float64
		pass.Progress = func(share float64) { shares = append(shares, share) }
		if r := finish(t, pass); r.Speakers != c.want {
			t.Errorf("%s: %d speakers, want %d", c.name, r.Speakers, c.want)
		}
		const pages = 120 * windowFrames / 5 / pageFrames
		if len(slices.Compact(slices.Sorted(slices.Values(shares)))) != 1+c.decodings*pages+1 || !slices.IsSorted(shares) {
			t.Errorf("%s: the progress is %v", c.name, shares)
		}
	}
}

// TestMinorSpeakers: what is little beside another one's speech needs to be less similar to it.
func TestMinorSpeakers(t *testing.T) {
	p := Default()
	excess := func(long, short float64) float64 {
		a, b := atAngle(1, 0)[0], atAngle(1, 1)[0]
		a.duration, b.duration = long, short
		return p.mergeExcess(&a, &b, 0) - p.excess(&a, &b) + p.MergeMargin
	}
	for _, c := range []struct{ long, short, want float64 }{{60, 10, 0}, {160, 10, 0}, {320, 10, 1}, {10, 640, 2}, {600, 0.1, math.Log2(600 / 0.5 / 16)}} {
		if got := excess(c.long, c.short); math.Abs(got-c.want*p.MinorSlope) > 1e-9 {
			t.Errorf("%v and %v s: %v, want %v", c.long, c.short, got, c.want*p.MinorSlope)
		}
	}
}
