package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"hubbub/capture"
	"hubbub/localserver/engine"
)

// TestScriptedEngine pushes the audio of a conversation chunk by chunk: all events come, in
// order and not before their delay, labels are in order of first speech, and no
// label has two open turns.
func TestScriptedEngine(t *testing.T) {
	const long = 300
	script := converse(long)
	e := &scriptedEngine{script: script}
	open, seen := map[int]bool{}, 0
	last := time.Duration(0)
	count := 0
	check := func(events []engine.Event, position time.Duration) {
		for _, e := range events {
			count++
			if e.At < last || e.At > position {
				t.Fatalf("%v comes at %v after %v", e.At, position, last)
			}
			last = e.At
			if start := e.Kind == engine.Start; start == open[e.Speaker] {
				t.Fatalf("label %d: start %v twice", e.Speaker, start)
			}
			open[e.Speaker] = e.Kind == engine.Start
			if e.Speaker > seen {
				t.Fatalf("label %d before label %d", e.Speaker, seen)
			}
			seen = max(seen, e.Speaker+1)
		}
	}
	chunk := make([]float32, capture.SampleRate/10)
	for i := range long * 10 {
		position := time.Duration(i+1) * 100 * time.Millisecond
		check(e.Push(chunk, nil), position-delay)
	}
	check(e.Flush(nil), long*time.Second)
	if count != len(script) || seen != people {
		t.Errorf("%d of %d events, %d of %d people", count, len(script), seen, people)
	}
}

// TestSoak watches a program that does nothing for a second.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a terminal")
	}
	if _, err := exec.LookPath("tmux"); err != nil || runtime.GOOS != "linux" {
		if os.Getenv("HUBBUB_REQUIRE_TMUX") != "" {
			t.Fatal("tmux is not installed; make test installs it")
		}
		t.Skip("tmux and /proc are needed")
	}
	if err := run(context.Background(), []string{"-for", "1s", "-every", "200ms", "--", "sh", "-c", "echo words; exec sleep 60"}); err != nil {
		t.Error(err)
	}
	err := run(context.Background(), []string{"-for", "60s", "-every", "200ms", "--", "true"})
	if err == nil || !strings.Contains(err.Error(), "the program is gone") {
		t.Errorf("a program that ends at once: %v", err)
	}
}
