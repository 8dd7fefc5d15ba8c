package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// line is one utterance.
type line struct {
	voice string
	gap   float64 // s after the end of the previous lines
	text  string
}

// turn is the start and end of one voice, in samples.
type turn struct {
	voice    string
	from, to int
}

func parse(script string) ([]line, error) {
	var lines []line
	for n, s := range strings.Split(script, "\n") {
		s = strings.TrimSpace(s)
		if s == "" || s[0] == '#' {
			continue
		}
		part := strings.SplitN(s, " ", 3)
		if len(part) != 3 {
			return nil, fmt.Errorf("script line %d: want VOICE GAP TEXT", n+1)
		}
		gap, err := strconv.ParseFloat(part[1], 64)
		if _, known := voices[part[0]]; err != nil || !known {
			return nil, fmt.Errorf("script line %d: unknown voice or gap", n+1)
		}
		lines = append(lines, line{part[0], gap, part[2]})
	}
	return lines, nil
}

const (
	frame = rate / 100 // 10 ms
	// floor is the level relative to the speech at which a frame is still speech.
	floor = -32.0 // dB
	// pause is the longest silence within one turn, in frames.
	pause = 30
)

type part struct{ from, to int }

// speech detects the speech in a clean recording. Silence of up to 0.3 s is part
// of it.
func speech(x []float64) []part {
	limit := activeRMS(x) * math.Pow(10, floor/20)
	var out []part
	for at := 0; at < len(x); at += frame {
		end := min(at+frame, len(x))
		if rms(x[at:end]) < limit {
			continue
		}
		if n := len(out); n > 0 && at-out[n-1].to <= pause*frame {
			out[n-1].to = end
		} else {
			out = append(out, part{at, end})
		}
	}
	return out
}

// activeRMS is the RMS of the louder half of the frames: the level of the speech,
// independent of the silence around it.
func activeRMS(x []float64) float64 {
	var all []float64
	for at := 0; at+frame <= len(x); at += frame {
		r := rms(x[at : at+frame])
		all = append(all, r*r)
	}
	if len(all) == 0 {
		return rms(x)
	}
	slices.Sort(all)
	all = all[len(all)/2:]
	sum := 0.0
	for _, p := range all {
		sum += p
	}
	return math.Sqrt(sum / float64(len(all)))
}

func rms(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return math.Sqrt(sum / float64(max(1, len(x))))
}

// rttm writes the turns in order of their start (NIST RT-09, one line a turn).
func rttm(turns []turn) string {
	slices.SortStableFunc(turns, func(a, b turn) int { return a.from - b.from })
	var b strings.Builder
	for _, t := range turns {
		fmt.Fprintf(&b, "SPEAKER demo 1 %.3f %.3f <NA> <NA> %s <NA> <NA>\n",
			float64(t.from)/rate, float64(t.to-t.from)/rate, t.voice)
	}
	return b.String()
}
