package tui

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"hubbub/protocol"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

// TestMain also makes the test binary a program that the tmux tests run: with
// HUBBUB_TUI_SAMPLE it shows the real screen on a sample session.
func TestMain(m *testing.M) {
	time.Local = time.UTC // golden screens have times of day in them
	if os.Getenv("HUBBUB_TUI_SAMPLE") != "" {
		os.Exit(runSample(os.Getenv("HUBBUB_TUI_SAMPLE")))
	}
	os.Exit(m.Run())
}

// runSample reads "people=4 at=42 speed=1 ...": a session that begins at a
// position in seconds and continues at a speed; 0 = it stands still.
func runSample(spec string) int {
	people, at, speed, length := 4, 42.0, 1.0, 3600.0
	finish := false
	o := Options{Mouse: true}
	o.Annotations = protocol.NewAnnotationsStore(protocol.Annotations{})
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
		case "ascii":
			o.ASCII = true
		case "finish":
			finish = true
		}
	}
	turns := tuitest.Turns(people, length, 7)
	begin := time.Now()
	last := display.State{}
	o.Snapshot = func() display.State {
		position := at + speed*time.Since(begin).Seconds()
		position = float64(int(position*10)) / 10
		if finish {
			position = min(position, length)
		}
		s := tuitest.State(turns, position, 1)
		s.Started = begin.Add(-time.Duration(at * float64(time.Second)))
		if finish {
			s.Length = length
			if position >= length {
				s.Conn = display.Closed
			}
		}
		last = s
		return s
	}
	if err := Run(context.Background(), o); err != nil {
		fmt.Println("ended:", err)
	} else {
		fmt.Println("quit by q")
	}
	if err := Summary(os.Stdout, last, o); err != nil {
		fmt.Println(err)
	}
	return 0
}
