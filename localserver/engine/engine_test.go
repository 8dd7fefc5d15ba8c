package engine

import (
	"slices"
	"testing"
	"time"

	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		config Config
		text   string // of the error
		hint   string
	}{
		{Config{}, "", ""},
		{Config{Latency: 500 * time.Millisecond, MaxSpeakers: 1}, "", ""},
		{Config{Latency: 5 * time.Second, MaxSpeakers: 8}, "", ""},
		{Config{Latency: 499 * time.Millisecond}, "a latency of 499ms is out of range", "choose 500ms to 5s"},
		{Config{Latency: 5001 * time.Millisecond}, "a latency of 5.001s is out of range", "choose 500ms to 5s"},
		{Config{Latency: -time.Second}, "a latency of -1s is out of range", "choose 500ms to 5s"},
		{Config{MaxSpeakers: 9}, "at most 9 speakers is out of range", "choose 1 to 8"},
		{Config{MaxSpeakers: -1}, "at most -1 speakers is out of range", "choose 1 to 8"},
	} {
		e, err := New(c.config)
		if c.text == "" {
			if err != nil || e == nil {
				t.Errorf("%+v: %v", c.config, err)
			}
			continue
		}
		if err == nil || err.Error() != c.text || hint.Of(err) != c.hint {
			t.Errorf("%+v: %v, want %q and the hint %q", c.config, err, c.text, c.hint)
		}
		if (c.config.Validate() == nil) != (err == nil) {
			t.Errorf("%+v: Validate and New disagree", c.config)
		}
	}
}

func TestAfterFlushNothingHappens(t *testing.T) {
	speech := make([]speakerSet, 100)
	for i := range speech {
		speech[i] = 1
	}
	e := newEngine(Config{Latency: time.Second}, &script{final: speech})
	events := e.Flush(e.Push(make([]float32, 32000), nil))
	if want := []Event{{Kind: Start}, {Kind: End, At: 2 * time.Second}}; !slices.Equal(events, want) {
		t.Fatalf("%v, want %v", events, want)
	}
	if more := e.Flush(e.Push(make([]float32, 32000), nil)); len(more) > 0 {
		t.Errorf("events after the end: %v", more)
	}
}

func TestShortInput(t *testing.T) {
	for _, n := range []int{0, 1, 319, 320, 321, 1599, 1600, 1601} {
		e := testkit.Must(New(Config{}))(t)
		order := eventOrder{}
		order.check(t, e.Flush(e.Push(make([]float32, n), nil)), n)
		if len(order.open) > 0 {
			t.Errorf("%d samples: turns left open", n)
		}
	}
}
