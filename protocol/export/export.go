// Package export writes a session down for other programs and other people:
// RTTM, JSON, CSV, Audacity labels, WebVTT, and a page for a browser that needs
// nothing but itself.
//
// A Document is the session as people see it: names in place of labels, merged
// labels as one speaker. All formats are written from it and from nothing else,
// so that they agree; the same document gives the same bytes.
package export

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Format is a way to write a session down.
type Format string

// The formats.
const (
	RTTM     Format = "rttm"     // NIST's Rich Transcription Time Marked
	JSON     Format = "json"     // everything that is known, as one object
	CSV      Format = "csv"      // RFC 4180, one turn or bookmark a row
	Audacity Format = "audacity" // label track: start, end, text, with tabs between
	WebVTT   Format = "webvtt"   // W3C WebVTT, one cue a turn
	HTML     Format = "html"     // a page with the timeline, for a browser
)

// Formats are all formats, in the order in which they are offered.
func Formats() []Format { return []Format{RTTM, JSON, CSV, Audacity, WebVTT, HTML} }

// Words are the names of all formats, for a command line.
func Words() []string {
	var words []string
	for _, f := range Formats() {
		words = append(words, string(f))
	}
	return words
}

// ParseFormat reads the name of a format, in any case; "vtt", "labels" and
// "txt" are understood as well.
func ParseFormat(s string) (Format, error) {
	switch f := Format(strings.ToLower(strings.TrimSpace(s))); f {
	case "vtt":
		return WebVTT, nil
	case "labels", "txt":
		return Audacity, nil
	default:
		if slices.Contains(Formats(), f) {
			return f, nil
		}
	}
	return "", fmt.Errorf("unknown export format %q: it must be one of %s", s, strings.Join(Words(), ", "))
}

// File is the name of the file that a folder gets for this format.
func (f Format) File() string {
	switch f {
	case Audacity:
		return "labels.txt"
	case WebVTT:
		return "turns.vtt"
	case HTML:
		return "timeline.html"
	case RTTM:
		return "named.rttm" // turns.rttm is the recording's own, with labels
	}
	return "turns." + string(f)
}

// Write writes the document to w.
func Write(w io.Writer, f Format, d *Document) error {
	b := bufio.NewWriterSize(w, 1<<16)
	var err error
	switch f {
	case RTTM:
		err = writeRTTM(b, d)
	case JSON:
		err = writeJSON(b, d)
	case CSV:
		err = writeCSV(b, d)
	case Audacity:
		err = writeAudacity(b, d)
	case WebVTT:
		err = writeWebVTT(b, d)
	case HTML:
		err = writeHTML(b, d)
	default:
		return fmt.Errorf("unknown export format %q", f)
	}
	if err == nil {
		err = b.Flush()
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", f, err)
	}
	return nil
}
