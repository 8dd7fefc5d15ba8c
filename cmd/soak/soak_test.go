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

// TestTeller pushes the sound of a talk, chunk by chunk: everything of the
// script is told, in order, no earlier than its delay, every label in order of
// first speech, and no label has two turns at once.
func TestTeller(t *testing.T) {
	const people, long = 8, 300
	script := converse(people, long)
	te := &teller{talk: script}
	open, seen := map[int]bool{}, 0
	last := time.Duration(0)
	told := 0
	check := func(events []engine.Event, heard time.Duration) {
		for _, e := range events {
			told++
			if e.At < last || e.At > heard {
				t.Fatalf("%v is told at %v after %v", e.At, heard, last)
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
		heard := time.Duration(i+1) * 100 * time.Millisecond
		check(te.Push(chunk, nil), heard-delay)
	}
	check(te.Flush(nil), long*time.Second)
	if told != len(script.events) || seen != people {
		t.Errorf("%d of %d events, %d of %d people", told, len(script.events), seen, people)
	}
}

// TestSoak watches a program that does nothing for a second.
func TestSoak(t *testing.T) {
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
