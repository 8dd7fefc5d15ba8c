package tui

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/aymanbagabas/go-osc52/v2"
	tea "github.com/charmbracelet/bubbletea"

	"hubbub/protocol"
)

// maxClipboard is how much is given to a terminal's clipboard at most; some
// take less than 100 kB after base64.
const maxClipboard = 48 << 10

// wireSavedMsg is the answer of Options.SaveWire.
type wireSavedMsg struct {
	text string
	err  error
}

// ndjson is rows as records, one a line; of a run all chunks that are still
// known one by one, else the newest.
func (m *model) ndjson(rows []wireRow) (text []byte, records int) {
	var b bytes.Buffer
	add := func(r *protocol.WireRecord) {
		b.WriteString(r.Line())
		b.WriteByte('\n')
		records++
	}
	chunks := m.wire.snap.Chunks
	k := 0
	for _, r := range rows {
		if r.run == nil {
			add(r.record)
			continue
		}
		for k < chunks.Len() && chunks.At(k).Number < r.run.First {
			k++
		}
		known := false
		for ; k < chunks.Len() && chunks.At(k).Number <= r.record.Number; k++ {
			add(chunks.At(k))
			known = true
		}
		if !known {
			add(r.record)
		}
	}
	return b.Bytes(), records
}

// copyWire gives the selected row to the terminal's clipboard. Whether it took
// that, no terminal says.
func (m *model) copyWire() tea.Cmd {
	rows := m.wireRows()
	i := m.wire.index(rows)
	if i < 0 {
		m.say("there is nothing to copy", roleDim)
		return nil
	}
	text, n := m.ndjson(rows[i : i+1])
	if len(text) > maxClipboard {
		m.say(fmt.Sprintf("%s are too much for a clipboard: C writes a file", bytesText(int64(len(text)))), roleWarn)
		return nil
	}
	if m.theme.plain {
		m.say("this terminal (TERM=dumb) has no clipboard: C writes a file", roleWarn)
		return nil
	}
	m.say(fmt.Sprintf("%s sent to the terminal's clipboard (OSC 52, not every terminal takes it; C writes a file)", count(int64(n), "record")), roleGood)
	out := m.o.Output
	return func() tea.Msg {
		if out == nil {
			out = os.Stdout
		}
		// One write: it cannot come between two halves of a frame.
		if _, err := io.WriteString(out, clipboard(string(text))); err != nil {
			return wireSavedMsg{err: fmt.Errorf("the terminal cannot be written to: %w", err)}
		}
		return nil
	}
}

// clipboard is the sequence that puts a text into the terminal's clipboard. A
// tmux or screen in between must be asked to pass it on.
func clipboard(text string) string {
	seq := osc52.New(text)
	switch {
	case os.Getenv("TMUX") != "":
		// Both: what tmux takes itself (set-clipboard) and what it passes on.
		return seq.String() + seq.Tmux().String()
	case os.Getenv("STY") != "":
		seq = seq.Screen()
	}
	return seq.String()
}

// saveWire writes all rows into a file.
func (m *model) saveWire() tea.Cmd {
	text, n := m.ndjson(m.wireRows())
	if n == 0 {
		m.say("there is nothing to write", roleDim)
		return nil
	}
	m.say("writing", roleDim)
	save := m.o.SaveWire
	return func() tea.Msg {
		text, err := save(text)
		if err == nil {
			text = fmt.Sprintf("wrote %s to %s", count(int64(n), "record"), text)
		}
		return wireSavedMsg{text, err}
	}
}

func (m *model) wireSaved(msg wireSavedMsg) {
	if msg.err == nil {
		m.say(msg.text, roleGood)
		return
	}
	text := msg.err.Error()
	var h interface{ Hint() string }
	if errors.As(msg.err, &h) && h.Hint() != "" {
		text += " " + m.glyphs.dot + " " + h.Hint()
	}
	m.say(text, roleBad)
}
