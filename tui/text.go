package tui

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/tui/canvas"
)

// Clean makes text from a network or a file name safe for a terminal. It removes
// escape sequences, control characters, and invisible characters that reorder
// or hide text; line breaks become spaces. Joiners stay where scripts and emoji
// need them.
func Clean(s string) string {
	plain := true
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	runes := []rune(ansi.Strip(strings.ToValidUTF8(s, "\uFFFD")))
	kept := make([]rune, 0, len(runes))
	last := rune(0) // in kept, variation selectors left out
	for i, r := range runes {
		next := rune(0)
		if i+1 < len(runes) {
			next = runes[i+1]
		}
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			r = ' '
		case protocol.IsJoiner(r):
			if !protocol.Joins(last, r, next) {
				continue
			}
		case unicode.Is(unicode.Variation_Selector, r):
			// After a symbol it selects its text or its emoji form.
			if !unicode.IsSymbol(last) || r != '\ufe0e' && r != '\ufe0f' || len(kept) > 0 && kept[len(kept)-1] != last {
				continue
			}
			kept = append(kept, r)
			continue
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r), unicode.Is(unicode.Co, r):
			continue
		}
		kept = append(kept, r)
		last = r
	}
	return string(kept)
}

// errorText is an error on one line, with its hint.
func errorText(err error, g *canvas.Glyphs) string {
	text := err.Error()
	if next := hint.Of(err); next != "" {
		text += " " + g.Dot + " " + next
	}
	return text
}

// count is "1 chunk", "2 chunks".
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// times is "once", "2 times".
func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// clock is a position or length in seconds as m:ss, or h:mm:ss from one hour on.
// It counts complete seconds.
func clock(seconds float64) string {
	s := int64(math.Floor(max(seconds, 0) + 1e-9))
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// clockTenths is a position in seconds as m:ss.t.
func clockTenths(seconds float64) string {
	t := int64(max(seconds, 0)*10 + 0.5)
	return fmt.Sprintf("%s.%d", clock(float64(t/10)), t%10)
}

// clockMillis is a position in seconds as hh:mm:ss.mmm.
func clockMillis(seconds float64) string {
	ms := int64(math.Round(max(seconds, 0) * 1000))
	return fmt.Sprintf("%02d:%02d:%02d.%03d", ms/3600000, ms/60000%60, ms/1000%60, ms%1000)
}

// talkTime is a length in seconds, rounded.
func talkTime(seconds float64) string { return clock(seconds + 0.5) }

// durationText is a duration with tenths of a second below a minute.
func durationText(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return clock(d.Seconds())
}

// millisText is a duration with milliseconds below a second.
func millisText(d time.Duration) string {
	switch ms := d.Seconds() * 1000; {
	case ms < 9.95:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 999.5:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return durationText(d)
}

// spanText is the length of a window in one unit.
func spanText(seconds float64) string {
	switch s := int(seconds); {
	case s < 120 || s%60 != 0 && s < 600:
		return fmt.Sprintf("%d s", s)
	case s < 7200:
		return fmt.Sprintf("%d min", s/60)
	default:
		return fmt.Sprintf("%d h", s/3600)
	}
}

// bytesText is a number of bytes in at most 6 cells.
func bytesText(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 99_950:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 999_500:
		return fmt.Sprintf("%.0f kB", float64(n)/1e3)
	case n < 99_950_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	if n < 9_950_000_000 {
		return fmt.Sprintf("%.0f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.0f GB", float64(n)/1e9)
}

// thinBar is a bar of that many cells, in halves of a cell, never empty.
func thinBar(cells float64, g *canvas.Glyphs) string {
	halves := max(int(2*cells+0.5), 1)
	s := strings.Repeat(g.Thin, halves/2)
	if halves%2 == 1 {
		s += g.HalfThin
	}
	return s
}
