// Package plain has the displays of a session without a screen: Printer writes one
// record per line for programs, Accessible is for screen readers.
package plain

import (
	"fmt"
	"io"

	"hubbub/protocol"
	"hubbub/tui/display"
)

// Format is an output without a screen.
type Format string

// The formats of a Printer. The contract fixes their spelling.
const (
	FormatLines  Format = "lines"  // 00:00:01.240 00:00:03.863 SPEAKER_00, the match, and after a tab the text if there are any
	FormatJSON   Format = "json"   // {"speaker":"SPEAKER_00","start":1.24,"end":3.863}
	FormatEvents Format = "events" // stream messages as received
	FormatRTTM   Format = "rttm"   // SPEAKER NAME 1 1.240 2.623 <NA> <NA> SPEAKER_00 <NA> <NA>
	FormatWire   Format = "wire"   // records of the connection, which no Printer has
)

// Printer writes a session as text, one record per line, each with one write as
// soon as it is known. It is for one goroutine.
type Printer struct {
	w      io.Writer
	format Format
	name   string
	err    error // the first failure; nothing is written after it
}

// NewPrinter writes to w. name is the recording's name in RTTM.
func NewPrinter(w io.Writer, format Format, name string) *Printer {
	return &Printer{w: w, format: format, name: name}
}

// Turn writes a finished turn. The formats events and wire have none.
func (p *Printer) Turn(t protocol.Turn) error {
	switch p.format {
	case FormatLines:
		line := fmt.Sprintf("%s %s %s", display.ClockMillis(t.Start), display.ClockMillis(t.End), display.TerminalSafe(t.Speaker))
		if t.Match != "" && t.Match != t.Speaker {
			line += " " + display.TerminalSafe(t.Match)
		}
		if t.Text != "" {
			line += "\t" + display.TerminalSafe(t.Text)
		}
		return p.line(line)
	case FormatJSON:
		t.Start, t.End = protocol.Round1ms(t.Start), protocol.Round1ms(t.End)
		line, err := protocol.MarshalLine(t)
		if err != nil {
			return fmt.Errorf("turn as JSON: %w", err)
		}
		return p.line(string(line))
	case FormatRTTM:
		if t.Match != "" {
			t.Speaker = t.Match
		}
		return p.line(protocol.FormatRTTM(p.name, t))
	}
	return nil
}

// Event writes a stream message as it was received. Only the format events has
// messages.
func (p *Printer) Event(e protocol.Event) error {
	if p.format != FormatEvents {
		return nil
	}
	return p.line(string(e.Raw))
}

func (p *Printer) line(s string) error {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, s+"\n")
	}
	return p.err
}
