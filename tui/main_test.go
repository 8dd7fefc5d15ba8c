package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"hubbub/protocol"
)

// TestMain makes the test binary its own test program: with HUBBUB_TUI_SHOW
// it runs the real screen on a made-up session, for the tmux tests and for
// looking at it.
func TestMain(m *testing.M) {
	time.Local = time.UTC // pictures have times of day in them
	if os.Getenv("HUBBUB_TUI_SHOW") != "" {
		os.Exit(show(os.Getenv("HUBBUB_TUI_SHOW")))
	}
	os.Exit(m.Run())
}

// show reads "people=4 at=42 speed=1 ...": a session that begins at a
// position and goes on at a speed; 0 stands still.
func show(spec string) int {
	people, at, speed, length := 4, 42.0, 1.0, 3600.0
	crash, dropped, finish, cancel := false, int64(0), false, time.Duration(0)
	notes, gaps := false, []Span(nil)
	o := Options{Annotations: protocol.NewAnnotationsStore(protocol.Annotations{}), Mouse: true}
	o.Export = func(protocol.Annotations) (string, error) { return "wrote meeting.html and 5 more in ./hubbub-1", nil }
	for _, f := range strings.Fields(spec) {
		k, v, _ := strings.Cut(f, "=")
		num, _ := strconv.ParseFloat(v, 64)
		switch k {
		case "people":
			people = int(num)
		case "at":
			at = num
		case "speed":
			speed = num
		case "length":
			length = num
		case "light":
			o.Theme = ThemeLight
		case "dark":
			o.Theme = ThemeDark
		case "ascii":
			o.ASCII = true
		case "crash":
			crash = true
		case "dropped":
			dropped = int64(num)
		case "finish":
			finish = true
		case "notes":
			notes = true
		case "gaps":
			gaps = []Span{{at - 600, at - 560}, {at - 20, at - 17.5}}
		case "cancel":
			cancel = time.Duration(num * float64(time.Second))
		}
	}
	turns := conversation(people, length, 7)
	if notes {
		_ = o.Annotations.Update(func(a protocol.Annotations) (protocol.Annotations, error) { return someNotes(at), nil })
	}
	begin := time.Now()
	last := State{}
	o.Snapshot = func() State {
		heard := at + speed*time.Since(begin).Seconds()
		heard = float64(int(heard*10)) / 10
		if crash && time.Since(begin) > 500*time.Millisecond {
			panic("a made-up panic")
		}
		if finish {
			heard = min(heard, length)
		}
		s := sessionAt(turns, heard, 1)
		s.Started = begin.Add(-time.Duration(at * float64(time.Second)))
		s.Dropped, s.Gaps = dropped, gaps
		if finish {
			s.Length = length
			if heard >= length {
				s.Link, s.Finished = Closed, true
			}
		}
		last = s
		return s
	}
	o.Interrupt = func() {}
	ctx := context.Background()
	if cancel > 0 {
		c, stop := context.WithTimeout(ctx, cancel)
		defer stop()
		ctx = c
	}
	err := Run(ctx, o)
	switch {
	case errors.Is(err, ErrInterrupted):
		fmt.Println("left by ctrl+c")
	case err != nil:
		fmt.Println("ended:", err)
	default:
		fmt.Println("left by q")
	}
	if err := Summary(os.Stdout, last, o); err != nil {
		fmt.Println(err)
	}
	return 0
}
