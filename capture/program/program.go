// Package program has what processes of other programs share: recorders of a device, the decoder of a
// recording, and those that list devices.
package program

import (
	"bytes"
	"context"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// withoutKeys is an environment without the API keys of this program, which no other one needs.
func withoutKeys(env []string) []string {
	return slices.DeleteFunc(env, func(variable string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(variable), "=")
		return strings.HasPrefix(name, "HUBBUB_") && strings.HasSuffix(name, "_KEY")
	})
}

// Command is a process with a group of its own, killed when ctx ends. Its output is waited for
// a second longer at most: children may keep it open.
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = withoutKeys(cmd.Environ())
	ownGroup(cmd)
	cmd.WaitDelay = time.Second
	return cmd
}

// MaxComplaint limits what is kept of a process's standard error for a message, in bytes.
const MaxComplaint = 2 << 10

// Tail keeps the last bytes of an output.
type Tail struct {
	Max  int // bytes
	mu   sync.Mutex
	kept []byte
}

func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if extra := len(t.kept) - t.Max; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(b), nil
}

// Any reports whether there is more than blanks.
func (t *Tail) Any() bool { return t.Last() != "" }

// String is all that is kept.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}

// Last is the last line that is not blank, for display.
func (t *Tail) Last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.kept), []byte("\n"))
	return Printable(string(lines[len(lines)-1]))
}

// Lines passes an output on line by line, without the line breaks. Of a longer line than MaxLine
// bytes it passes the beginning.
type Lines struct {
	Each func(line string)
	part []byte
}

// MaxLine is the longest line (bytes) that Lines passes on.
const MaxLine = 4 << 10

func (l *Lines) Write(b []byte) (int, error) {
	for _, c := range b {
		switch {
		case c == '\n' || c == '\r':
			l.Each(string(l.part))
			l.part = l.part[:0]
		case len(l.part) < MaxLine:
			l.part = append(l.part, c)
		}
	}
	return len(b), nil
}

// Printable is text of another program on one line.
func Printable(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "")))
}
