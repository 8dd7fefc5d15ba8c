package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hubbub/localserver/engine/clustering"
)

// TestExportedSegments exports the segments of the demo: about half of its speech.
// Segments of one person are more similar than those of two.
func TestExportedSegments(t *testing.T) {
	const ref = "../../capture/demo/demo.rttm"
	path := filepath.Join(t.TempDir(), "demo.pieces")
	if _, err := eval(t, "--ref", ref, "--wav", "../../capture/demo/demo.flac", "--pieces", path); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	turns, err := readRTTM(ref)
	if err != nil {
		t.Fatal(err)
	}
	type segment struct {
		speaker   string
		embedding clustering.Embedding
	}
	var segments []segment
	speech, exported := 0.0, 0.0
	for _, turn := range turns {
		speech += turn.End - turn.Start
	}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) != 3+clustering.Dim || fields[0] != "demo" {
			t.Fatalf("a line of %d fields: %.60s", len(fields), line)
		}
		var x [2 + clustering.Dim]float64
		for i, f := range fields[1:] {
			if x[i], err = strconv.ParseFloat(f, 64); err != nil {
				t.Fatal(err)
			}
		}
		exported += x[1] - x[0]
		s := segment{}
		for i, v := range x[2:] {
			s.embedding[i] = float32(v)
		}
		if d := s.embedding.Dot(&s.embedding); d < 0.99 || d > 1.01 {
			t.Errorf("an embedding of length %g squared", d)
		}
		for _, turn := range turns {
			if turn.Start <= x[0]+0.1 && x[1] <= turn.End+0.1 {
				s.speaker = turn.Speaker
			}
		}
		if s.speaker != "" {
			segments = append(segments, s)
		}
	}
	if exported < 0.35*speech || exported > 1.2*speech {
		t.Errorf("segments of %.1f s together, of %.1f s of speech", exported, speech)
	}
	var cos, n [2]float64
	for i := range segments {
		for j := range i {
			k := 0
			if segments[i].speaker == segments[j].speaker {
				k = 1
			}
			cos[k] += segments[i].embedding.Dot(&segments[j].embedding)
			n[k]++
		}
	}
	other, same := cos[0]/n[0], cos[1]/n[1]
	t.Logf("%d segments, %.1f s of %.1f s; mean cosine of one person %.2f, of two people %.2f", len(segments), exported, speech, same, other)
	if !(same > other+0.15) {
		t.Errorf("segments of one person have a mean cosine of %.2f, of two %.2f", same, other)
	}
}
