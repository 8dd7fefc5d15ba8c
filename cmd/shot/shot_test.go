package main

import (
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseReadsWhatTmuxPrints(t *testing.T) {
	s := parse("a\x1b[1;38;2;1;2;3mb\x1b[0m\x1b[7mc\x1b[27;38;5;196md\x1b[39;41me\n李x\x1b[?25l", 6, 3)
	red, pure := base16[1], color.RGBA{255, 0, 0, 255}
	for i, want := range []glyph{
		{text: "a"},
		{text: "b", look: look{bold: true, fg: &color.RGBA{1, 2, 3, 255}}},
		{text: "c", look: look{reverse: true}},
		{text: "d", look: look{fg: &pure}},
		{text: "e", look: look{bg: &red}},
	} {
		got := s[0][i]
		same := func(a, b *color.RGBA) bool { return a == b || a != nil && b != nil && *a == *b }
		if got.text != want.text || got.look.bold != want.look.bold || got.look.reverse != want.look.reverse ||
			!same(got.look.fg, want.look.fg) || !same(got.look.bg, want.look.bg) {
			t.Errorf("cell %d is %+v, want %+v", i, got, want)
		}
	}
	if !s[1][0].wide || s[1][1].text != "" || s[1][2].text != "x" {
		t.Errorf("a wide character is parsed as %+v", s[1][:3])
	}
}

func TestParseCutsWhatDoesNotFit(t *testing.T) {
	s := parse(strings.Repeat(strings.Repeat("x", 50)+"\n", 50)+"\x1b[", 3, 2)
	if len(s) != 2 || len(s[0]) != 3 {
		t.Errorf("the screen is %dx%d", len(s[0]), len(s))
	}
}

// filled is the part of a cell's pixels that have a colour.
func filled(img image.Image, x, y int, c color.RGBA) float64 {
	n := 0
	for j := range cellH {
		for i := range cellW {
			if img.At(border+x*cellW+i, border+y*cellH+j) == color.Color(c) {
				n++
			}
		}
	}
	return float64(n) / (cellW * cellH)
}

func TestBlocksFillWhatTheySay(t *testing.T) {
	p, err := newPainter(1, darkTerminal)
	if err != nil {
		t.Fatal(err)
	}
	img := p.paint(parse("█▌▐▀▄ \x1b[7m▌ ", 8, 1))
	for x, want := range []float64{1, 0.5, 0.5, 0.5, 0.5, 0, 0.5, 1} {
		if got := filled(img, x, 0, darkTerminal.fg); got != want {
			t.Errorf("cell %d is filled to %.2f, want %.2f", x, got, want)
		}
	}
	// Swapped colours fill the other half.
	if img.At(border+6*cellW, border) != color.Color(darkTerminal.bg) {
		t.Error("a swapped left half is not filled on the right")
	}
}

func TestEveryGlyphOfTheScreenIsDrawn(t *testing.T) {
	p, err := newPainter(1, lightTerminal)
	if err != nil {
		t.Fatal(err)
	}
	blank := p.paint(parse("", 1, 1)).(*image.RGBA)
	missing := p.paint(parse("\U0010fffd", 1, 1)).(*image.RGBA)
	for _, r := range "▏▎▍▌▋▊▉█▕▐░▒─━╸┬┊│╭╮╰╯●○■×·→…←↑↓Az09" {
		got := p.paint(parse(string(r), 1, 1)).(*image.RGBA)
		if string(got.Pix) == string(blank.Pix) || string(got.Pix) == string(missing.Pix) {
			t.Errorf("%c (%U) is not drawn", r, r)
		}
	}
}

func TestPictureOfAProgram(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("HUBBUB_REQUIRE_TMUX") == "1" {
			t.Fatal("tmux is required and not installed")
		}
		t.Skip("tmux is not installed: no program's picture is taken")
	}
	out := filepath.Join(t.TempDir(), "x.png")
	args := []string{"-o", out, "-size", "30x6", "-scale", "1", "-timeout", "60s", "-until", `it's ready`, "--", "sh", "-c", `echo "it's ready"; cat`}
	if err := run(args, nil); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := img.Bounds().Max, image.Pt(30*cellW+2*border, 6*cellH+2*border); got != want {
		t.Errorf("the picture has %v pixels, want %v", got, want)
	}
	if err := run([]string{"-o", out, "-timeout", "2s", "-until", "never", "--", "cat"}, nil); err == nil || !strings.Contains(err.Error(), "did not come to match") {
		t.Errorf("a screen that never comes gives %v", err)
	}
}

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{{"-size", "0x3"}, {"-size", "wide"}, {"-scale", "0"}, {"-until", "("}} {
		if err := run(args, strings.NewReader("")); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}
