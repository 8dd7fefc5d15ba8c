package canvas

import (
	"strings"
	"testing"
)

func TestFontIsComplete(t *testing.T) {
	for _, r := range "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-.'ÄÖÜÉÈÇÑÅŠŽŁĞİŞАБВГДЕЁЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ" {
		if _, ok := NewBigText(string(r)); !ok && !strings.ContainsRune("ÇŞŁ", r) {
			t.Errorf("%q is not in the font", r)
		}
	}
	seen := map[letter]rune{}
	for r, l := range font {
		if other, twice := seen[l]; twice && !strings.ContainsRune("БВГЗ", r) && !strings.ContainsRune("БВГЗ", other) {
			t.Errorf("%q and %q look the same", r, other)
		}
		seen[l] = r
	}
}

func TestBigTextIsDrawn(t *testing.T) {
	text, ok := NewBigText("i.")
	if !ok {
		t.Fatal("the font lacks a letter")
	}
	c := New(text.Width(), BigTextRows(1), NewGlyphs(false))
	c.BigText(0, 0, 1, text, Plain)
	want := strings.Join([]string{"", " ▀█▀", "  █", "  █", " ▀▀▀    ▀"}, "\n")
	if got := strings.Join(plainLines(c), "\n"); got != want {
		t.Errorf("drawn\n%s\nwant\n%s", got, want)
	}
}
