package canvas

import (
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"
	"pgregory.net/rapid"

	"hubbub/protocol/testkit"
)

func plainLines(c *Canvas) []string {
	return strings.Split(c.Render(NewTheme(termenv.Ascii, true, true)), "\n")
}

// Whatever is drawn wherever: the canvas has its size and no control characters.
func TestCanvasKeepsItsSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(1, 30).Draw(t, "w"), rapid.IntRange(1, 5).Draw(t, "h")
		g := NewGlyphs(rapid.Bool().Draw(t, "ascii"))
		c := New(w, h, g)
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"李雷韩梅梅", "👩‍👩‍👧 x", "e\u0301\u0301", "a\x1b[2Jb\u009b1m"}))
		at := rapid.IntRange(-5, 35)
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			x, y := at.Draw(t, "x"), at.Draw(t, "y")
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				c.Set(x, y, g.Speaking, Good)
			case 1:
				c.Text(x, y, at.Draw(t, "width"), text.Draw(t, "text"), Plain)
			case 2:
				c.TextRight(x, y, text.Draw(t, "text"), Plain.Reverse())
			case 3:
				c.Fill(x, y, at.Draw(t, "width"), at.Draw(t, "height"), rapid.SampledFrom([]string{"", g.Rule}).Draw(t, "glyph"), Faint)
			case 4:
				c.Line(x, y, at.Draw(t, "width"), Line{{text.Draw(t, "a"), Dim, 0}, {text.Draw(t, "b"), Bad, 1}}, 2)
			}
		}
		lines := plainLines(c)
		if len(lines) != h {
			t.Fatalf("%d lines on %d rows", len(lines), h)
		}
		for _, line := range lines {
			if n := ansi.StringWidth(line); n > w {
				t.Fatalf("%q is %d cells wide on %d columns", line, n, w)
			}
			if strings.ContainsFunc(line, unicode.IsControl) {
				t.Fatalf("%q has control characters", line)
			}
		}
	})
}

func TestOverwritingPartOfAWideCharacter(t *testing.T) {
	for x, want := range map[int]string{2: "李x 韩", 3: "李 x韩"} {
		c := New(6, 2, NewGlyphs(false))
		for y := range 2 {
			c.Text(0, y, 6, "李雷韩", Plain)
		}
		c.Set(x, 0, "x", Plain)
		c.Text(x, 1, 1, "x", Plain)
		if got := plainLines(c); got[0] != want || got[1] != want {
			t.Errorf("the lines are %q, want %q", got, want)
		}
		if c.Blank(0, 0) || !c.Blank(5-x, 0) || c.Blank(9, 0) {
			t.Error("a cell is wrongly blank")
		}
	}
}

// A character of which terminals disagree about the width: its cells are
// erased, and the cursor is set behind them.
func TestRenderPlacesTheCursor(t *testing.T) {
	c := New(12, 1, NewGlyphs(false))
	used := c.Text(0, 0, 12, "क्षि", Plain)
	c.Set(used, 0, "x", Plain)
	want := ansi.EraseCharacter(used) + "क्षि" + ansi.CursorHorizontalAbsolute(used+1) + "x"
	testkit.Equal(t, c.Render(NewTheme(termenv.Ascii, true, false)), want, "rendered")
	testkit.Equal(t, c.Render(NewTheme(termenv.Ascii, true, true)), "क्षिx", "without escape sequences rendered")
}

func TestSegmentsAreOmittedByRank(t *testing.T) {
	segments := Line{{"always", Plain, 0}, {"second", Plain, 1}, {"first", Plain, 3}, {"third", Plain, 2}}
	for width, want := range map[int]string{
		40: "always  second  first  third", 22: "always  second  third", 16: "always  second", 10: "always", 4: "alw…",
	} {
		c := New(40, 1, NewGlyphs(false))
		c.Line(0, 0, width, segments, 2)
		testkit.Equal(t, plainLines(c)[0], want, "in", width, "cells")
	}
}
