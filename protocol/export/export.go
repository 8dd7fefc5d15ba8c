// Package export writes a session in other formats: RTTM, JSON, CSV, Audacity
// labels, WebVTT, and a self-contained HTML page.
//
// A Document is the session with its annotations applied: names instead of labels,
// merged labels as one speaker. All formats are written from it, so that they
// agree. Equal documents give equal bytes.
package export

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Format is the name of a format.
type Format string

// The formats.
const (
	RTTM     Format = "rttm"     // NIST's Rich Transcription Time Marked
	JSON     Format = "json"     // everything, as one object
	CSV      Format = "csv"      // RFC 4180, one turn or bookmark per row
	Audacity Format = "audacity" // label track: start, end and text, separated by tabs
	WebVTT   Format = "vtt"      // W3C WebVTT, one cue per turn
	HTML     Format = "html"     // a page with the timeline, for a browser
)

// Formats are all formats, in the order of help texts.
func Formats() []Format { return []Format{RTTM, JSON, CSV, Audacity, WebVTT, HTML} }

// FormatNames are the names of all formats, for a command line.
func FormatNames() []string {
	var names []string
	for _, f := range Formats() {
		names = append(names, string(f))
	}
	return names
}

// ParseFormat parses the name of a format, in any case. "webvtt" is "vtt".
func ParseFormat(s string) (Format, error) {
	switch f := Format(strings.ToLower(strings.TrimSpace(s))); {
	case f == "webvtt":
		return WebVTT, nil
	case slices.Contains(Formats(), f):
		return f, nil
	}
	return "", fmt.Errorf("unknown export format %q: it must be one of %s", s, strings.Join(FormatNames(), ", "))
}

// File is the file name of the format in a folder of exports.
func (f Format) File() string {
	switch f {
	case Audacity:
		return "labels.txt"
	case HTML:
		return "timeline.html"
	case RTTM:
		return "named.rttm" // a recording has turns.rttm, with labels
	}
	return "turns." + string(f)
}

// Write writes the document to w.
func Write(w io.Writer, f Format, d *Document) error {
	b := bufio.NewWriterSize(w, 1<<16) // Flush returns the first error of a write
	var err error
	switch f {
	case RTTM:
		writeRTTM(b, d)
	case JSON:
		err = writeJSON(b, d)
	case CSV:
		err = writeCSV(b, d)
	case Audacity:
		writeAudacity(b, d)
	case WebVTT:
		writeWebVTT(b, d)
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
