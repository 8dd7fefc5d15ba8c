package canvas

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// printable draws text without control characters.
func printable(t *rapid.T, name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"👨\u200d👩\u200d👧 Ott", "Zoë", "नीलिमा क्षिप्रा", "می\u200cخواهم", "🏳\ufe0f\u200d🌈 Ru", "தமிழ்", "ශ්\u200dරී", "Z̸a̴l̷g̸o̵ 李雷",
	})).Draw(t, name))
}

func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := printable(t, "s")
		width := rapid.IntRange(-1, 30).Draw(t, "width")
		tail := rapid.IntRange(0, 5).Draw(t, "tail")
		if got := Fit(s, width, tail, "…"); Width(got) > max(width, 0) {
			t.Fatalf("Fit(%q, %d, %d) = %q, %d wide", s, width, tail, got, Width(got))
		}
	})
	if got := Fit("SPEAKER_00 of the north", 10, 3, "…"); !strings.HasPrefix(got, "SPEAKE") || !strings.HasSuffix(got, "rth") {
		t.Errorf("a label was cut to %q", got)
	}
}

// Whatever a name is made of, cutting it keeps the width, and its parts are
// whole characters.
func TestHeadAndTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := printable(t, "a") + printable(t, "b")
		n := rapid.IntRange(0, 20).Draw(t, "cells")
		begin, end := Head(s, n), Tail(s, n)
		if !strings.HasPrefix(s, begin) || !strings.HasSuffix(s, end) || Width(begin) > n || Width(end) > n {
			t.Fatalf("%q in %d cells: %q, %q", s, n, begin, end)
		}
	})
}

func TestWrapWordsLosesNothing(t *testing.T) {
	withoutBlanks := func(s string) string { return strings.ReplaceAll(s, " ", "") }
	rapid.Check(t, func(t *rapid.T) {
		s := printable(t, "a") + " " + printable(t, "b")
		width := rapid.IntRange(2, 20).Draw(t, "width")
		lines := WrapWords(s, width)
		if withoutBlanks(strings.Join(lines, "")) != withoutBlanks(s) {
			t.Fatalf("%q became %q", s, lines)
		}
		for _, line := range lines[:len(lines)-1] {
			if Width(line) > width {
				t.Fatalf("%q is %d cells wide, not %d", line, Width(line), width)
			}
		}
	})
}

func TestClusters(t *testing.T) {
	for s, want := range map[string][2]int{"": {0, 0}, "abc": {1, 2}, "e\u0301x": {3, 3}, "x👨\u200d👩\u200d👧": {1, 1}} {
		if got := [2]int{FirstCluster(s), LastCluster(s)}; got != want {
			t.Errorf("%q: the first cluster has %d bytes, the last begins at %d; want %v", s, got[0], got[1], want)
		}
	}
}
