package display

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/trace"
	"hubbub/tui/canvas"
)

// TerminalSafe makes text from a network or a file name safe for a terminal. It removes
// escape sequences, control characters, and invisible characters that reorder
// or hide text; line breaks become spaces. Joiners stay where scripts and emoji
// need them.
func TerminalSafe(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r >= 0x7f }) {
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

// ErrorText is an error on one line, with its hint.
func ErrorText(err error, g *canvas.Glyphs) string {
	text := err.Error()
	if next := hint.Of(err); next != "" {
		text += " " + g.Dot + " " + next
	}
	return text
}

// Count is "1 chunk", "2 chunks".
func Count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Times is "once", "2 times".
func Times[N int | int64](n N) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// HasWords reports whether a text has all words, in any case.
func HasWords(text, words string) bool {
	text = strings.ToLower(text)
	for word := range strings.FieldsSeq(strings.ToLower(words)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// Clock is a position or length in seconds as m:ss, or h:mm:ss from one hour on.
// It counts complete seconds.
func Clock(seconds float64) string {
	s := int64(math.Floor(max(seconds, 0) + 1e-9))
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// ParseClock reads seconds, m:ss or h:mm:ss.
func ParseClock(text string) (seconds float64, ok bool) {
	parts := strings.Split(text, ":")
	if len(parts) > 3 {
		return 0, false
	}
	for i, p := range parts {
		v, err := strconv.ParseFloat(p, 64)
		if err != nil || !(v >= 0 && v <= protocol.MaxTimestamp) || i > 0 && v >= 60 || i < len(parts)-1 && v != math.Trunc(v) {
			return 0, false
		}
		seconds = seconds*60 + v
	}
	return seconds, true
}

// ClockTenths is a position in seconds as m:ss.t. It counts complete tenths, so that its
// seconds are those of Clock.
func ClockTenths(seconds float64) string {
	t := int64(max(seconds, 0)*10 + 1e-6)
	return fmt.Sprintf("%s.%d", Clock(float64(t/10)), t%10)
}

// ClockMillis is a position in seconds as hh:mm:ss.mmm.
func ClockMillis(seconds float64) string {
	ms := int64(math.Round(max(seconds, 0) * 1000))
	return fmt.Sprintf("%02d:%02d:%02d.%03d", ms/3600000, ms/60000%60, ms/1000%60, ms%1000)
}

// TalkText is a length in seconds, rounded.
func TalkText(seconds float64) string { return Clock(seconds + 0.5) }

// Duration is a duration with tenths of a second below a minute.
func Duration(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return Clock(d.Seconds())
}

// Millis is a duration with milliseconds below a second.
func Millis(d time.Duration) string {
	switch ms := d.Seconds() * 1000; {
	case ms < 9.95:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 999.5:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return Duration(d)
}

// Span is the length of a window in one unit.
func Span(seconds float64) string {
	switch s := int(seconds); {
	case s < 120 || s%60 != 0 && s < 600:
		return fmt.Sprintf("%d s", s)
	case s < 7200:
		return fmt.Sprintf("%d min", s/60)
	default:
		return fmt.Sprintf("%d h", s/3600)
	}
}

// Bytes is a number of bytes in at most 6 cells.
func Bytes(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 99_950:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 999_500:
		return fmt.Sprintf("%.0f kB", float64(n)/1e3)
	case n < 99_950_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n < 9_950_000_000:
		return fmt.Sprintf("%.0f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.0f GB", float64(n)/1e9)
}

// ThinBar is a bar of that many cells, in halves of a cell, never empty.
func ThinBar(cells float64, g *canvas.Glyphs) string {
	halves := max(int(2*cells+0.5), 1)
	s := strings.Repeat(g.Thin, halves/2)
	if halves%2 == 1 {
		s += g.HalfThin
	}
	return s
}

// onTime is how far from the wall clock sending may be to count as real time.
const onTime = 300 * time.Millisecond

// Ahead says how far sending is ahead of the wall clock, or behind it.
func Ahead(d time.Duration) string {
	switch {
	case d < -onTime:
		return Duration(-d) + " behind"
	case d > onTime:
		return Duration(d) + " ahead"
	}
	return "real time"
}

// ScaleDecibels maps a linear level to 0..1 of a range in dB of full scale.
func ScaleDecibels(level float32, floor, top float64) float64 {
	if !(level > 0) { // NaN as well
		return 0
	}
	return min(max((20*math.Log10(float64(level))-floor)/(top-floor), 0), 1)
}

const (
	// Clipping is the peak from which on the input is too loud to be recorded
	// well.
	Clipping = 0.98
	// MeterFloor is the lowest level of the meter, in dB of full scale.
	MeterFloor = -60
)

// HealthSegments are the lag of the newest event, with the largest one if withMax
// is set, and the time since the service last sent something.
func HealthSegments(h trace.Health, rank int, withMax bool) (segments canvas.Line) {
	if h == (trace.Health{}) {
		return nil
	}
	style := canvas.Dim
	if h.Problem != "" {
		style = canvas.Warn.Bold()
	}
	if h.Lag >= 0 {
		text := "lag " + Duration(h.Lag)
		if withMax {
			text += ", max " + Duration(h.MaxLag)
		}
		segments.Add(text, style, rank)
	}
	reply := "no reply yet"
	if h.Reply >= 0 {
		reply = fmt.Sprintf("last reply %d s ago", int(h.Reply.Seconds()))
	}
	return append(segments, canvas.NewSegment(reply, style, rank))
}

// AheadSegment is Ahead as a segment; being behind is a warning.
func AheadSegment(d time.Duration) canvas.Segment {
	style := canvas.Dim
	if d < -onTime {
		style = canvas.Warn
	}
	return canvas.NewSegment(Ahead(d), style, 2)
}
