package session

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// TestUnsavedNames: at the end of its input, the display for screen readers does not lose names and
// bookmarks that its user can still save.
func TestUnsavedNames(t *testing.T) {
	const (
		question = "Names and bookmarks are not saved. Quit discards them, export saves them.\n"
		lost     = "Names and bookmarks were not saved.\n"
	)
	for _, c := range []struct {
		name, first, then string
		asked, lost       bool
	}{
		{"exported", "bookmark", "export", true, false},
		{"discarded", "bookmark", "quit", true, true},
		{"quit was asked before", "bookmark\nquit", "quit", true, true},
		{"nothing more can be typed", "bookmark", "", true, true},
		{"interrupted", "bookmark", "interrupt", true, true},
		{"nothing to save", "bookmark\nundo", "", false, false},
		{"nothing can be typed", "bookmark\n", "closed", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			ends := make(chan struct{})
			s, _ := live(t, protocoltest.Service{Stream: func(conn *websocket.Conn) {
				<-ends
				protocoltest.OneTurn(conn)
			}}, "")
			stdin, typed, err := os.Pipe()
			testkit.NoError(t, err)
			defer stdin.Close()
			defer typed.Close()
			var out testkit.Buffer
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			ended := make(chan error, 1)
			go func() {
				ended <- Run(ctx, s, &accessible{streams: Streams{Stdin: stdin, Stdout: &out, Stderr: &out}})
			}()
			_, _ = typed.WriteString(c.first + "\nhelp\n")
			testkit.Eventually(t, "the answers", func() bool { return strings.Contains(out.String(), "quit: ends the session.") })
			if c.then == "closed" {
				typed.Close() // which may be noticed before the end of the session, or after the question
			}
			close(ends)
			if c.asked {
				testkit.Eventually(t, "the question", func() bool { return strings.Contains(out.String(), question) })
				switch c.then {
				case "interrupt":
					interrupt()
				case "":
					typed.Close()
				default:
					_, _ = typed.WriteString(c.then + "\n")
				}
			}
			testkit.NoError(t, <-ended)
			if text := out.String(); strings.Contains(text, question) != c.asked && c.then != "closed" || strings.Contains(text, lost) != c.lost {
				t.Errorf("%q", text)
			}
		})
	}
}
