package protocol

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// FileTurn is a turn of an RTTM file, with the name of the recording.
type FileTurn struct {
	File string
	Turn
}

// UEMRegion is a region of a recording that is scored, in seconds.
type UEMRegion struct {
	File       string
	Start, End float64
}

// maxLine is the longest line of an RTTM or UEM file, in bytes.
const maxLine = 1 << 16

// FormatRTTM is a turn as one line of RTTM (NIST's Rich Transcription Time Marked,
// RT-09), without a line break. Times are seconds with three decimals; white space
// in name and label becomes "_".
func FormatRTTM(name string, t Turn) string {
	start := Round1ms(t.Start)
	return fmt.Sprintf("SPEAKER %s 1 %.3f %.3f <NA> <NA> %s <NA> <NA>",
		field(name, "live"), start, Round1ms(t.End)-start, field(t.Speaker, NoLabel))
}

// WriteRTTM writes turns in order of their starts, one line each.
func WriteRTTM(w io.Writer, name string, turns []Turn) error {
	turns = slices.Clone(turns)
	slices.SortStableFunc(turns, byStart)
	b := bufio.NewWriter(w)
	for _, t := range turns {
		b.WriteString(FormatRTTM(name, t)) // Flush returns the first error
		b.WriteByte('\n')
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("writing RTTM: %w", err)
	}
	return nil
}

// field converts s to a field of RTTM: not empty, without white space.
func field(s, empty string) string {
	return cmp.Or(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return '_'
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s), empty)
}

// rttmTypes are the types of RTTM lines (NIST, RT-09 evaluation plan, appendix A).
var rttmTypes = []string{"SPEAKER", "SPKR-INFO", "SEGMENT", "NOSCORE", "NO_RT_METADATA", "LEXEME", "NON-LEX",
	"NON-SPEECH", "FILLER", "EDIT", "IP", "SU", "CB", "A/P"}

// ReadRTTM reads the SPEAKER lines of an RTTM file in the order of the file.
// Lines of RTTM's other types, comments (";;"), empty lines and turns of length
// zero are ignored; any other text is an error. An error names the line.
func ReadRTTM(r io.Reader) ([]FileTurn, error) {
	var turns []FileTurn
	err := eachLine(r, "RTTM", func(f []string) error {
		if !slices.Contains(rttmTypes, f[0]) {
			return fmt.Errorf("%q is not a type of RTTM", Clean(f[0], 40))
		}
		if f[0] != "SPEAKER" {
			return nil
		}
		if len(f) < 8 {
			return fmt.Errorf("SPEAKER needs at least 8 fields, found %d", len(f))
		}
		start, err := seconds("start", f[3])
		if err != nil {
			return err
		}
		length, err := seconds("duration", f[4])
		if err != nil {
			return err
		}
		end := roundMicro(start + length)
		if end > start {
			turns = append(turns, FileTurn{File: f[1], Turn: Turn{Speaker: f[7], Start: start, End: end}})
		}
		return nil
	})
	return turns, err
}

// ReadUEM reads a UEM file (NIST's Un-partitioned Evaluation Map): lines of
// file, channel, start and end in seconds. Comments (";;") and empty lines are
// ignored. An error names the line.
func ReadUEM(r io.Reader) ([]UEMRegion, error) {
	var regions []UEMRegion
	err := eachLine(r, "UEM", func(f []string) error {
		if len(f) < 4 {
			return fmt.Errorf("a region needs 4 fields (file, channel, start, end), found %d", len(f))
		}
		start, err := seconds("start", f[2])
		if err != nil {
			return err
		}
		end, err := seconds("end", f[3])
		if err != nil {
			return err
		}
		if end <= start {
			return fmt.Errorf("end %s is not after start %s", Clean(f[3], 40), Clean(f[2], 40))
		}
		regions = append(regions, UEMRegion{File: f[0], Start: start, End: end})
		return nil
	})
	return regions, err
}

// eachLine calls do with the fields of every line that is neither empty nor a
// comment.
func eachLine(r io.Reader, format string, do func(fields []string) error) error {
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, maxLine)
	n := 0
	for scan.Scan() {
		n++
		line := scan.Text()
		if n == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], ";;") {
			continue
		}
		if err := do(fields); err != nil {
			return fmt.Errorf("%s line %d: %w", format, n, err)
		}
	}
	if err := scan.Err(); err != nil {
		return fmt.Errorf("%s line %d: %w", format, n+1, err)
	}
	return nil
}

// seconds parses a time that is finite, not negative and at most 10^9.
func seconds(what, text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		return 0, fmt.Errorf("%s %q is not a number of seconds", what, Clean(text, 40))
	case v < 0:
		return 0, fmt.Errorf("%s %s is negative", what, Clean(text, 40))
	case v > 1e9:
		return 0, fmt.Errorf("%s %s is too large for a time in seconds", what, Clean(text, 40))
	}
	return roundMicro(v), nil
}

// roundMicro rounds to 1 µs, which removes the binary error of adding decimal
// numbers: 1.240 + 2.623 is 3.863.
func roundMicro(seconds float64) float64 { return math.Round(seconds*1e6) / 1e6 }
