package tui

import (
	"bytes"
	"strings"
	"testing"

	"hubbub/protocol"
)

const someStream = "7c0e9a52-8f4b-4f0a-9c64-1f2b7d1f3a10"

// TestWatchingInWords says of a stream of somebody else's whose it is, and
// nothing of a sound that does not come here; of one's own, how others watch it.
func TestWatchingInWords(t *testing.T) {
	var b bytes.Buffer
	s := sessionAt(talkOf4, 60, 1)
	s.Source, s.Stream, s.Watching, s.Level, s.Levels = "stream "+someStream, someStream, true, Level{}, nil
	a := NewAccessible(&b)
	c := NewConsole(a, ConsoleOptions{Snapshot: func() State { return s }, Annotations: protocol.NewAnnotationsStore(protocol.Annotations{})})
	if err := a.State(s); err != nil {
		t.Fatal(err)
	}
	if err := c.Do("status"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Watching stream " + someStream + ". There is no sound here.\n", "Somebody else sends it"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %q", want, b.String())
		}
	}
	for _, never := range []string{"dropped", "silent", "decibels", "Others watch", "Listening"} {
		if strings.Contains(b.String(), never) {
			t.Errorf("%q in %q", never, b.String())
		}
	}

	b.Reset()
	s.Watching, s.Source = false, "microphone"
	if err := c.Do("status"); err != nil {
		t.Fatal(err)
	}
	if err := NewAccessible(&b).State(s); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "Others watch it as stream "+someStream+".\n"); n != 2 {
		t.Errorf("the id is said %d times: %q", n, b.String())
	}
}

// TestWatchingOnScreen shows the id where it can be read whole, and that a
// stream has not begun.
func TestWatchingOnScreen(t *testing.T) {
	s := sessionAt(talkOf4, 60, 1)
	s.Stream = someStream
	for _, size := range [][2]int{{80, 24}, {120, 34}, {200, 40}} {
		m := still(s, size[0], size[1])
		press(m, "?")
		if v := string(picture(m)); !strings.Contains(v, "stream "+someStream) {
			t.Errorf("%v: the help does not name the stream:\n%s", size, v)
		}
	}
	s = State{Stream: someStream, Watching: true, Source: "stream " + someStream, SourceNotice: "not begun", Link: Open}
	v := string(picture(still(s, 80, 24)))
	for _, want := range []string{"watching stream " + someStream, "not begun", "waiting for its sender to begin", "nothing sent from here"} {
		if !strings.Contains(v, want) {
			t.Errorf("no %q in\n%s", want, v)
		}
	}
}
