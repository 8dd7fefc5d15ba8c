package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hubbub/localserver/engine/clustering"
)

// TestPieces writes what the networks hear of the demo: about half of its speech, and pieces of one person more alike than pieces of two.
func TestPieces(t *testing.T) {
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
	type piece struct {
		speaker   string
		embedding clustering.Embedding
	}
	var pieces []piece
	speech, heard := 0.0, 0.0
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
		heard += x[1] - x[0]
		p := piece{}
		for i, v := range x[2:] {
			p.embedding[i] = float32(v)
		}
		if d := p.embedding.Dot(&p.embedding); d < 0.99 || d > 1.01 {
			t.Errorf("an embedding of length %g squared", d)
		}
		for _, turn := range turns {
			if turn.Start <= x[0]+0.1 && x[1] <= turn.End+0.1 {
				p.speaker = turn.Speaker
			}
		}
		if p.speaker != "" {
			pieces = append(pieces, p)
		}
	}
	if heard < 0.35*speech || heard > 1.2*speech {
		t.Errorf("pieces of %.1f s together, of %.1f s of speech", heard, speech)
	}
	var cos, n [2]float64
	for i := range pieces {
		for j := range i {
			k := 0
			if pieces[i].speaker == pieces[j].speaker {
				k = 1
			}
			cos[k] += pieces[i].embedding.Dot(&pieces[j].embedding)
			n[k]++
		}
	}
	other, same := cos[0]/n[0], cos[1]/n[1]
	t.Logf("%d pieces, %.1f s of %.1f s; one person's are alike by %.2f, two people's by %.2f", len(pieces), heard, speech, same, other)
	if !(same > other+0.15) {
		t.Errorf("pieces of one person are alike by %.2f, of two by %.2f", same, other)
	}
}
