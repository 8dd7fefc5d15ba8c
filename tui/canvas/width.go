package canvas

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Terminals do not agree how wide a character of several code points is: a
// family joined from three faces takes two cells in one terminal and six in
// another, a Devanagari syllable one, two or three. Such a grapheme cluster gets
// the largest of these widths, and Render places the cursor after it, so that
// the rest of the line is in the same cells in every terminal.

// nextCluster returns the first grapheme cluster of s, the cells it gets, and
// whether every terminal agrees on that width.
func nextCluster(s string) (cluster string, width int, fixed bool) {
	if s == "" {
		return "", 0, true
	}
	if b := s[0]; b >= 0x20 && b < 0x7f && (len(s) == 1 || s[1] < 0x80) { // the common case, without segmentation
		return s[:1], 1, true
	}
	cluster, width = ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	if utf8.RuneCountInString(cluster) == 1 {
		return cluster, width, true
	}
	byRune := ansi.StringWidthWc(cluster)
	return cluster, max(width, byRune), width == byRune && !strings.ContainsAny(cluster, zeroWidthJoiners)
}

// zeroWidthJoiners are the zero-width non-joiner and joiner.
const zeroWidthJoiners = "\u200c\u200d"

// Width is the number of cells that text takes on a Canvas.
func Width(s string) (cells int) {
	for s != "" {
		cluster, w, _ := nextCluster(s)
		cells += w
		s = s[len(cluster):]
	}
	return cells
}

// FirstCluster is the length in bytes of the first grapheme cluster of s.
func FirstCluster(s string) int {
	cluster, _, _ := nextCluster(s)
	return len(cluster)
}

// LastCluster is the index at which the last grapheme cluster of s begins.
func LastCluster(s string) (at int) {
	for next := FirstCluster(s); next < len(s); next += FirstCluster(s[next:]) {
		at = next
	}
	return at
}

// Head is the beginning of s that takes at most that many cells.
func Head(s string, cells int) string {
	at := 0
	for at < len(s) {
		cluster, w, _ := nextCluster(s[at:])
		if cells -= w; cells < 0 {
			break
		}
		at += len(cluster)
	}
	return s[:at]
}

// Tail is the end of s that takes at most that many cells.
func Tail(s string, cells int) string {
	excess := Width(s) - cells
	for excess > 0 && s != "" {
		cluster, w, _ := nextCluster(s)
		excess -= w
		s = s[len(cluster):]
	}
	return s
}

// Fit shortens text to a width in cells. The ellipsis stands in the middle,
// because labels tend to differ at their ends; tail is how many cells of the
// end remain.
func Fit(s string, width, tail int, ellipsis string) string {
	if Width(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	room := width - Width(ellipsis)
	if tail = min(tail, width-2); tail > 0 {
		end := Tail(s, tail)
		short := Head(s, room-Width(end)) + ellipsis + end
		// Characters that join their neighbours can be wider when separated.
		if Width(short) <= width {
			return short
		}
	}
	if room < 0 {
		return Head(s, width)
	}
	return Head(s, room) + ellipsis
}

// WrapWords breaks text into lines of at most width cells: at blanks, or beside
// characters of two cells, as those of Chinese; a longer word at any character. No line
// begins with punctuation if it can be avoided.
func WrapWords(s string, width int) (lines []string) {
	for width > 0 {
		line := Head(s, width)
		if line == s || line == "" { // the last line, or a character wider than a line
			break
		}
		if at := lastBreak(s, len(line)); at > 0 {
			line = s[:at]
		}
		lines = append(lines, strings.TrimRight(line, " "))
		s = strings.TrimLeft(s[len(line):], " ")
	}
	return append(lines, s)
}

// WrapRows is WrapWords into at most rows lines, from 1: the last one has all that is left.
func WrapRows(s string, width, rows int) []string {
	lines := WrapWords(s, width)
	if last := rows - 1; len(lines) > rows {
		lines = append(lines[:last], strings.Join(lines[last:], " "))
	}
	return lines
}

// lastBreak is the last place up to end where a line of s may end; 0 = there is none.
func lastBreak(s string, end int) (at int) {
	wide := false // the character before
	for i := 0; i <= end && i < len(s); {
		cluster, w, fixed := nextCluster(s[i:])
		r, _ := utf8.DecodeRuneInString(cluster)
		isWide := w == 2 && fixed
		if i > 0 && (cluster == " " || (wide || isWide || s[i-1] == ' ') && !unicode.IsPunct(r)) {
			at = i
		}
		wide = isWide
		i += len(cluster)
	}
	return at
}
