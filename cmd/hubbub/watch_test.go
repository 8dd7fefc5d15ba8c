package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/protocol/testkit"
)

// TestWatch sends a stream to a server and watches it from elsewhere: early
// over a way that is cut, late, on a screen, and with another account's key.
func TestWatch(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server, url := serve(t, "--api-key", "k", "--data", data)
	ca := filepath.Join(data, "ca.pem")
	sender := start(t, "live", "--input", talkFile(t, 20), "--server", url, "--api-key", "k", "--ca", ca, "--output", "events")
	id := sender.stream()
	sender.says("hubbub watch "+id+" --server "+url+" --ca "+ca, 1)
	way := newCutter(t, url)
	early := start(t, "watch", id, "--server", way.url, "--api-key", "k", "--ca", ca, "--output", "events")
	screen := inTerminal(t, 100, 30, "watch", id, "--server", url, "--api-key", "k", "--ca", ca)
	early.line(`speaker_start`)
	server.says("watcher connected", 2)
	way.cut()
	way.connect()
	server.says("watcher connected", 3) // the end of the turn may have come before
	early.line(`speaker_end`)
	way.cut()
	way.connect()
	screen.Shows("watching stream "+id[:8], "● watching", "SPEAKER_00", "no sound")
	early.line(`SPEAKER_01`)
	late := start(t, "watch", id, "--server", url, "--api-key", "k", "--insecure", "--output", "events")
	rttm := start(t, "watch", id, "--server", url, "--api-key", "k", "--insecure", "--output", "rttm")
	screen.Shows("SPEAKER_01")
	screen.Keys("w")
	screen.Shows("wire view", `stream_state running at \d+\.\d{3} s`)
	screen.Keys("w")

	key := start(t, "key", "create", "--account", "other", "--data", data)
	foreign := key.line(`\.`)
	other := start(t, "watch", id, "--server", url, "--api-key", foreign, "--insecure")
	other.ends(exitFailed, "404", "the account that sends")
	testkit.Equal(t, other.output(), "", "with another account's key")

	for _, p := range []*program{sender, early, late, rttm} {
		p.ends(exitOK)
	}
	want := sender.messages()
	if len(want) < 4 || !slices.Equal(early.messages(), want) || !slices.Equal(late.messages(), want) {
		t.Errorf("sent %q\nwatched %q\nlate %q", want, early.messages(), late.messages())
	}
	testkit.Contains(t, early.errors(), "lost 2 times", "the watcher does not say that its connection was lost")
	if got := rttm.messages(); len(got) != len(want)/2 || !strings.HasPrefix(got[0], "SPEAKER "+id+" 1 ") {
		t.Errorf("%d turns of %d events: %q", len(got), len(want), got)
	}
	screen.Shows("finished")
	screen.Keys("?")
	screen.Shows("stream " + id)
	screen.Keys("q", "q")
	screen.ends(exitOK)
	screen.Shows("SPEAKER_00 .*%")
}

// TestWatchEnds reads the id from the sender's screen, is interrupted, and reports
// a stream that failed.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	_, url := serve(t, "--api-key", "k", "--data", data)
	way := newCutter(t, url)
	sender := inTerminal(t, 120, 34, "live", "--input", talkFile(t, 0), "--server", way.url, "--api-key", "k", "--insecure")
	sender.Shows(`others can watch: \? shows the stream   q quit`)
	sender.Keys("?")
	id := regexp.MustCompile(`stream ([0-9a-f-]{36})`).FindStringSubmatch(sender.Shows(`stream [0-9a-f-]{36}`))[1]
	interrupted := start(t, "watch", id, "--server", url, "--api-key", "k", "--insecure", "--accessible")
	interrupted.line(`^Watching stream `)
	interrupted.line(`^SPEAKER_00, `)
	wire := start(t, "watch", id, "--server", url, "--api-key", "k-not-to-be-seen", "--insecure", "--output", "wire")
	wire.line(`"code":401`)
	wire.ends(exitFailed)
	if strings.Contains(wire.output(), "k-not-to-be-seen") {
		t.Error("the key is printed")
	}
	interrupted.signal(os.Interrupt)
	interrupted.ends(exitInterrupted)
	failed := start(t, "watch", id, "--server", url, "--api-key", "k", "--insecure", "--output", "lines")
	failed.line(`SPEAKER_00$`)
	way.cut()
	failed.ends(exitFailed, "the stream is over: error: connection lost\nThe turns that the service kept are displayed")
}

// TestWatchFollows cuts the sender off: a watcher that stays, and one that comes
// after the end, see one session on one clock, as its sender does.
func TestWatchFollows(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	_, url := serve(t, "--api-key", "k", "--data", data)
	way := newCutter(t, url)
	sent := filepath.Join(t.TempDir(), "rec")
	sender := start(t, "live", "--input", talkFile(t, 20), "--server", way.url, "--api-key", "k", "--insecure", "--output", "lines", "--record", sent)
	id := sender.stream()
	screen := inTerminal(t, 120, 34, "watch", id, "--server", url, "--api-key", "k", "--insecure")
	early := start(t, "watch", id, "--server", url, "--api-key", "k", "--insecure", "--output", "rttm")
	early.line("SPEAKER_00")
	way.cut()
	early.says("the sender lost its stream, waiting for it to resume: ", 1)
	screen.Shows("○ connecting", "the sender lost its stream, waiting for it to resume: error: connection lost")
	way.connect()
	early.says("the stream continues", 1)
	screen.Shows("● watching", "SPEAKER_01")
	sender.ends(exitOK)
	early.ends(exitOK)
	screen.Shows("finished")
	late := start(t, "watch", id, "--server", url, "--api-key", "k", "--insecure", "--output", "rttm")
	late.ends(exitOK)
	for name, p := range map[string]*program{"early": early, "late": late} {
		got := filepath.Join(t.TempDir(), "watched.rttm")
		testkit.NoError(t, os.WriteFile(got, []byte(strings.ReplaceAll(p.output(), id, "talk")), 0o600))
		rate := score(t, filepath.Join(sent, recording.TurnsFile), got)
		t.Logf("%s: difference to the sender's turns %.2f %%", name, 100*rate.DER)
		// The lost connection decides differently for a second or two.
		if rate.DER > 0.1 || rate.Confusion > 0.02 {
			t.Errorf("%s: the turns differ by %.1f %%, labels by %.1f %%", name, 100*rate.DER, 100*rate.Confusion)
		}
	}
}
