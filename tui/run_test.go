package tui

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"go.uber.org/goleak"

	"hubbub/protocol"
	"hubbub/protocol/recovered"
	"hubbub/protocol/testkit"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

const (
	enterScreen = "\x1b[?1049h"
	leaveScreen = "\x1b[?1049l"
	showCursor  = "\x1b[?25h"
)

// run starts Run without a terminal; keys go into the writer.
func run(t *testing.T, ctx context.Context, o Options) (keys *io.PipeWriter, out *testkit.Buffer, done chan error) {
	t.Helper()
	r, w := io.Pipe()
	out, done = &testkit.Buffer{}, make(chan error, 1)
	o.Input, o.Output = r, out
	go func() {
		done <- Run(ctx, o)
		// Bubble Tea's reader waits on its input until that ends.
		r.Close()
	}()
	return w, out, done
}

func awaitEnd(t *testing.T, done chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(testkit.Timeout):
		t.Fatal("Run does not end")
		return nil
	}
}

func checkRestored(t *testing.T, out *testkit.Buffer) {
	t.Helper()
	s := out.String()
	testkit.Contains(t, s, enterScreen, "the alternate screen was not used")
	if i, j := strings.LastIndex(s, leaveScreen), strings.LastIndex(s, enterScreen); i < j {
		t.Error("the alternate screen was not left")
	}
	testkit.Contains(t, s[strings.LastIndex(s, enterScreen):], showCursor, "the cursor was not shown again")
}

func TestRunEnds(t *testing.T) {
	defer goleak.VerifyNone(t)
	cause := errors.New("made-up cause")
	for _, c := range []struct {
		name string
		end  func(keys io.Writer, cancel context.CancelCauseFunc)
		want error
	}{
		{"q", func(k io.Writer, _ context.CancelCauseFunc) { k.Write([]byte("q")) }, nil},
		{"ctrl+c", func(k io.Writer, _ context.CancelCauseFunc) { k.Write([]byte{3}) }, ErrInterrupted},
		{"context", func(_ io.Writer, cancel context.CancelCauseFunc) { cancel(cause) }, cause},
	} {
		ctx, cancel := context.WithCancelCause(context.Background())
		box := make(chan Msg, 4)
		keys, out, done := run(t, ctx, Options{
			Controls: display.Controls{Snapshot: func() display.State { return tuitest.State(tuitest.FourSpeakers, 60, 1) }},
			Messages: box,
		})
		testkit.Eventually(t, "the screen appears", func() bool { return strings.Contains(out.String(), "SPEAKER_00") })
		for _, msg := range []Msg{{Text: "a made-up notice"}, {Text: "a made-up problem", Problem: true}} {
			box <- msg
			testkit.Eventually(t, msg.Text, func() bool { return strings.Contains(out.String(), msg.Text) })
		}
		c.end(keys, cancel)
		if err := awaitEnd(t, done); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: Run returns %v, want %v", c.name, err, c.want)
		}
		checkRestored(t, out)
		cancel(nil)
	}
}

// The late answer of a terminal to the question for its background is not typed.
func TestLateAnswerOfTheTerminal(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, end := range []string{"\x1b\\", "\a"} {
		keys, out, done := run(t, context.Background(), Options{
			Controls: display.Controls{Snapshot: func() display.State { return tuitest.State(tuitest.FourSpeakers, 60, 1) }},
		})
		testkit.Eventually(t, "the screen appears", func() bool { return strings.Contains(out.String(), "SPEAKER_00") })
		keys.Write([]byte("\x1b]11;rgb:ffff/ffff/ffff" + end + "\x1b[1;1R"))
		testkit.Eventually(t, "keys work again", func() bool {
			keys.Write([]byte("q"))
			return len(done) > 0
		})
		if strings.Contains(out.String(), "name of SPEAKER") {
			t.Error("the answer opens the prompt for a name")
		}
	}
}

// TestAnswerInParts: an answer is taken as one on a machine that is slow, and when its escape was read before the rest.
func TestAnswerInParts(t *testing.T) {
	const colour = "11;rgb:ffff/ffff/ffff"
	for _, parts := range [][]tea.KeyMsg{
		{{Type: tea.KeyRunes, Runes: []rune("]"), Alt: true}, {Type: tea.KeyRunes, Runes: []rune(colour)}, {Type: tea.KeyCtrlG}},
		{{Type: tea.KeyEsc}, {Type: tea.KeyRunes, Runes: []rune("]" + colour)}, {Type: tea.KeyCtrlG}},
	} {
		m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 80, 24)
		at := m.now()
		m.now = func() time.Time { return at }
		for _, part := range parts {
			m.Update(part)
			at = at.Add(time.Second)
		}
		if m.prompting() || m.selected != "" {
			t.Errorf("%q is typed", parts)
		}
	}
}

// TestPanicRestoresTheTerminal breaks the display where it can break: the
// terminal is as it was, and Run tells where it happened.
func TestPanicRestoresTheTerminal(t *testing.T) {
	for _, where := range []string{"update", "command"} {
		t.Run(where, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			var broken atomic.Bool
			keys, out, done := run(t, context.Background(), Options{Controls: display.Controls{
				Snapshot: func() display.State {
					if broken.Load() {
						panic("a made-up panic")
					}
					return tuitest.State(tuitest.FourSpeakers, 60, 1)
				},
				Export: func(protocol.Annotations) (string, error) { panic("a made-up panic") },
			}})
			testkit.Eventually(t, "the screen appears", func() bool { return strings.Contains(out.String(), "SPEAKER_00") })
			if where == "update" {
				broken.Store(true)
			} else {
				keys.Write([]byte("e"))
			}
			err := awaitEnd(t, done)
			var p *recovered.Error
			if !errors.As(err, &p) || !strings.Contains(string(p.Stack()), "TestPanicRestoresTheTerminal") {
				t.Errorf("Run returns %v", err)
			}
			checkRestored(t, out)
			if strings.Contains(out.String(), "goroutine ") {
				t.Error("the stack was written on the terminal")
			}
		})
	}
}

// TestUnusableInput: what is typed cannot be read. The screen is left.
func TestUnusableInput(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the console is opened by its name")
	}
	defer goleak.VerifyNone(t)
	in, err := os.Open(os.DevNull)
	testkit.NoError(t, err)
	testkit.NoError(t, in.Close())
	out := &testkit.Buffer{}
	if err = Run(t.Context(), Options{Input: in, Output: out, Controls: display.Controls{Snapshot: func() display.State { return display.State{} }}}); err == nil {
		t.Error("Run returns no error")
	}
	checkRestored(t, out)
}

// TestPanicOfTheView: the first screen cannot be drawn.
func TestPanicOfTheView(t *testing.T) {
	defer goleak.VerifyNone(t)
	out := &testkit.Buffer{}
	m, p := newProgram(Options{Input: strings.NewReader(""), Output: out, Controls: display.Controls{
		Snapshot: func() display.State { return tuitest.State(tuitest.FourSpeakers, 60, 1) },
	}})
	m.theme = nil
	if err := m.run(t.Context(), p); err != nil || m.panicked == nil || !strings.Contains(string(m.panicked.Stack()), "model).View") {
		t.Errorf("after a panic of the view: %v, %v", err, m.panicked)
	}
	checkRestored(t, out)
}
