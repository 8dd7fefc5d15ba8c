package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hubbub/cmd/hubbub/internal/recording"
)

// TestWatch sends a stream to a server and watches it from elsewhere: early
// over a way that is cut, late, on a screen, and with another account's key.
func TestWatch(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server, url := startServer(t, data, "127.0.0.1:0")
	watchers := func(n int) {
		t.Helper()
		poll(t, fmt.Sprintf("watcher %d", n), 10*time.Millisecond, func() bool { return strings.Count(server.errors(), "watcher connected") >= n })
	}
	ca := filepath.Join(data, "ca.pem")
	sender := start(t, "live", "--input", talkFile(t, 20), "--server", url, "--api-key", "k", "--ca", ca, "--output", "events")
	id := sender.stream()
	way := newCutter(t, url)
	rec := filepath.Join(t.TempDir(), "rec")
	early := start(t, "watch", id, "--server", way.url, "--api-key", "k", "--ca", ca, "--output", "events", "--record", rec)
	screen := inTerminal(t, 100, 30, "watch", id, "--server", url, "--api-key", "k", "--ca", ca)
	early.line(`speaker_start`)
	watchers(2)
	way.cut()
	way.connect()
	watchers(3) // the end of the turn may have come before
	early.line(`speaker_end`)
	way.cut()
	way.connect()
	screen.shows("watching stream "+id[:8], "● watching", "SPEAKER_00", "no sound")
	early.line(`SPEAKER_01`)
	late := start(t, "watch", id, "--server", url, "--api-key", "k", "--insecure", "--output", "events")
	rttm := start(t, "watch", id, "--server", url, "--api-key", "k", "--insecure", "--output", "rttm")
	screen.shows("SPEAKER_01")
	screen.keys("w")
	screen.shows("wire view", `stream_state running at \d+\.\d{3} s`)
	screen.keys("w")

	key := start(t, "key", "create", "--account", "other", "--data", data)
	foreign := key.line(`\.`)
	other := start(t, "watch", id, "--server", url, "--api-key", foreign, "--insecure")
	if code := other.exit(); code != exitFailed || !strings.Contains(other.errors(), "404") || !strings.Contains(other.errors(), "the account that sends") || strings.Contains(strings.Join(other.messages(), ""), "SPEAKER") {
		t.Errorf("another account's key: exit code %d", code)
	}

	for _, p := range []*program{sender, early, late, rttm} {
		if code := p.exit(); code != exitOK {
			t.Errorf("%v exits with %d", p.Args[1:], code)
		}
	}
	want := sender.messages()
	if len(want) < 4 || !slices.Equal(early.messages(), want) || !slices.Equal(late.messages(), want) {
		t.Errorf("sent %q\nwatched %q\nlate %q", want, early.messages(), late.messages())
	}
	if !strings.Contains(early.errors(), "lost 2 times") {
		t.Error("the watcher does not say that its connection was lost")
	}
	if got := rttm.messages(); len(got) != len(want)/2 || !strings.HasPrefix(got[0], "SPEAKER "+id+" 1 ") {
		t.Errorf("%d turns of %d events: %q", len(got), len(want), got)
	}
	kept, err := os.ReadFile(filepath.Join(rec, recording.EventsFile))
	if err != nil || strings.TrimSpace(string(kept)) != strings.Join(want, "\n") || exists(filepath.Join(rec, recording.AudioFile)) {
		t.Errorf("recorded %q, %v", kept, err)
	}
	again := start(t, "replay", rec, "--output", "rttm")
	if code := again.exit(); code != exitOK || !slices.Equal(again.messages(), rttm.messages()) || strings.Contains(again.errors(), "missing") {
		t.Errorf("replay exits with %d: %q", code, again.messages())
	}

	screen.shows("finished")
	screen.keys("?")
	screen.shows("stream " + id)
	screen.keys("q", "q")
	if code := screen.exitCode(); code != "0" {
		t.Errorf("q exits with %s", code)
	}
	screen.shows("SPEAKER_00 .*%")
}

// TestWatchEnds reads the id from the sender's screen, is interrupted, and reports
// a stream that failed.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	_, url := startServer(t, data, "127.0.0.1:0")
	way := newCutter(t, url)
	sender := inTerminal(t, 120, 34, "live", "--input", talkFile(t, 0), "--server", way.url, "--api-key", "k", "--insecure")
	sender.shows(`others can watch: \? shows the stream   q quit`)
	sender.keys("?")
	id := regexp.MustCompile(`stream ([0-9a-f-]{36}) `).FindStringSubmatch(sender.shows(`stream [0-9a-f-]{36} `))[1]
	interrupted := start(t, "watch", id, "--server", url, "--api-key", "k", "--insecure", "--accessible")
	interrupted.line(`^Watching stream `)
	interrupted.line(`^SPEAKER_00, `)
	wire := start(t, "watch", id, "--server", url, "--api-key", "k-not-to-be-seen", "--insecure", "--output", "wire")
	wire.line(`"code":401`)
	if code := wire.exit(); code != exitFailed || strings.Contains(strings.Join(wire.messages(), ""), "k-not-to-be-seen") {
		t.Errorf("the wire of a watcher with a wrong key: exit code %d", code)
	}
	if err := interrupted.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := interrupted.exit(); code != exitInterrupted {
		t.Errorf("an interrupted watcher exits with %d", code)
	}
	failed := start(t, "watch", id, "--server", url, "--api-key", "k", "--insecure", "--output", "lines")
	failed.line(`SPEAKER_00$`)
	way.cut()
	if code := failed.exit(); code != exitFailed || !strings.Contains(failed.errors(), "the stream is over: error: connection lost\nThe turns that the service kept are displayed") {
		t.Errorf("a stream that failed: exit code %d", code)
	}
}

// TestWatchFollows cuts the sender off: a watcher that stays, and one that comes
// after the end, see one session on one clock, as its sender does.
func TestWatchFollows(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	_, url := startServer(t, data, "127.0.0.1:0")
	way := newCutter(t, url)
	sent := filepath.Join(t.TempDir(), "rec")
	sender := start(t, "live", "--input", talkFile(t, 20), "--server", way.url, "--api-key", "k", "--insecure", "--output", "lines", "--record", sent)
	id := sender.stream()
	screen := inTerminal(t, 120, 34, "watch", id, "--server", url, "--api-key", "k", "--insecure")
	early := start(t, "watch", id, "--server", url, "--api-key", "k", "--insecure", "--output", "rttm")
	early.line("SPEAKER_00")
	way.cut()
	early.says("the sender lost its stream, waiting for it to resume: ", 1)
	way.connect()
	early.says("the stream continues", 1)
	screen.shows("● watching", "SPEAKER_01")
	if code := sender.exit(); code != exitOK {
		t.Fatalf("the sender exits with %d", code)
	}
	if code := early.exit(); code != exitOK {
		t.Errorf("the watcher exits with %d", code)
	}
	screen.shows("finished")
	late := start(t, "watch", id, "--server", url, "--api-key", "k", "--insecure", "--output", "rttm")
	if code := late.exit(); code != exitOK {
		t.Errorf("a late watcher exits with %d", code)
	}
	for name, p := range map[string]*program{"early": early, "late": late} {
		got := filepath.Join(t.TempDir(), "watched.rttm")
		if err := os.WriteFile(got, []byte(strings.ReplaceAll(p.output(), id, "talk")), 0o600); err != nil {
			t.Fatal(err)
		}
		score := start(t, "score", filepath.Join(sent, recording.TurnsFile), got, "--output", "json")
		if code := score.exit(); code != exitOK {
			t.Fatalf("score exits with %d", code)
		}
		var rate struct{ DER, Confusion float64 }
		if err := json.Unmarshal([]byte(score.output()), &rate); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: difference to the sender's turns %.2f %%", name, 100*rate.DER)
		// The lost connection decides differently for a second or two.
		if rate.DER > 0.1 || rate.Confusion > 0.02 {
			t.Errorf("%s: the turns differ by %.1f %%, labels by %.1f %%", name, 100*rate.DER, 100*rate.Confusion)
		}
	}
}
