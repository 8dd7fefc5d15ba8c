package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"hubbub/capture"
)

// flakyWay is a TCP connection between two places that can be cut.
type flakyWay struct {
	l net.Listener

	mu    sync.Mutex
	conns []net.Conn
	over  sync.WaitGroup
}

func newFlakyWay(t *testing.T, to string) *flakyWay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &flakyWay{l: l}
	p.over.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			p.mu.Unlock()
			for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
				p.over.Go(func() {
					_, _ = io.Copy(way[0], way[1])
					_ = way[0].Close()
				})
			}
		}
	})
	t.Cleanup(func() { _ = l.Close(); p.cut(); p.over.Wait() })
	return p
}

func (p *flakyWay) url() string { return "https://" + p.l.Addr().String() }

func (p *flakyWay) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// messages are the lines of a program's standard output.
func (p *program) messages() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Split(strings.TrimSpace(p.stdout.String()), "\n")
}

func (p *program) said(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(p.stderr.String(), text)
}

// TestWatch sends a stream to a server and watches it from elsewhere: early
// over a way that is cut, late, on a screen, and with another account's key.
func TestWatch(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := start(t, "serve", "--listen", "127.0.0.1:0", "--api-key", "k", "--data", data)
	url := strings.TrimPrefix(server.line(`^ready `), "ready ")
	ca := filepath.Join(data, "ca.pem")
	input := filepath.Join(t.TempDir(), "twenty.wav")
	writeWAV(t, input, demoSamples(t)[:20*capture.SampleRate])

	sender := start(t, "live", "--input", input, "--server", url, "--api-key", "k", "--ca", ca, "--output", "events")
	id := ""
	poll(t, "the id of the stream", func() bool {
		sender.mu.Lock()
		defer sender.mu.Unlock()
		_, rest, _ := strings.Cut(sender.stderr.String(), "hubbub watch ")
		id, _, _ = strings.Cut(rest, " ")
		return id != ""
	})
	way := newFlakyWay(t, strings.TrimPrefix(url, "https://"))
	rec := filepath.Join(t.TempDir(), "rec")
	early := start(t, "watch", id, "--server", way.url(), "--api-key", "k", "--ca", ca, "--output", "events", "--record", rec)
	screen := inTerminal(t, 100, 30, "watch", id, "--server", url, "--api-key", "k", "--ca", ca)
	early.line(`speaker_start`)
	way.cut()
	early.line(`speaker_end`)
	way.cut()
	screen.shows("watching stream "+id[:8], "● watching", "SPEAKER_00", "no sound")
	early.line(`SPEAKER_01`)
	late := start(t, "watch", id, "--server", url, "--api-key", "k", "--insecure", "--output", "events")
	rttm := start(t, "watch", id, "--server", url, "--api-key", "k", "--insecure", "--output", "rttm")
	screen.shows("SPEAKER_01")
	screen.tmux("send-keys", "w")
	screen.shows("the wire", `stream_state running at \d+\.\d{3} s`)
	screen.tmux("send-keys", "w")

	key := start(t, "key", "create", "--account", "other", "--data", data)
	foreign := key.line(`\.`)
	other := start(t, "watch", id, "--server", url, "--api-key", foreign, "--insecure")
	if code := other.exit(); code != exitFailed || !other.said("404") || !other.said("the account that sends") || strings.Contains(strings.Join(other.messages(), ""), "SPEAKER") {
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
	if !early.said("lost 2 times") {
		t.Error("the watcher does not say that its connection was lost")
	}
	if got := rttm.messages(); len(got) != len(want)/2 || !strings.HasPrefix(got[0], "SPEAKER "+id+" 1 ") {
		t.Errorf("%d turns of %d events: %q", len(got), len(want), got)
	}
	kept, err := os.ReadFile(filepath.Join(rec, eventsFile))
	if err != nil || strings.TrimSpace(string(kept)) != strings.Join(want, "\n") || exists(filepath.Join(rec, audioFile)) {
		t.Errorf("recorded %q, %v", kept, err)
	}
	again := start(t, "replay", rec, "--output", "rttm")
	if code := again.exit(); code != exitOK || !slices.Equal(again.messages(), rttm.messages()) || again.said("missing") {
		t.Errorf("replay exits with %d: %q", code, again.messages())
	}

	screen.shows("finished")
	screen.tmux("send-keys", "?")
	screen.shows("stream " + id)
	screen.tmux("send-keys", "q", "q")
	if code := screen.left(); code != "0" {
		t.Errorf("q leaves with %s", code)
	}
	screen.shows("SPEAKER_00 .*%")
}

// TestWatchEnds finds the id on the sender's own screen, leaves in order, and
// tells a stream that failed from one that is done.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := start(t, "serve", "--listen", "127.0.0.1:0", "--api-key", "k", "--data", data)
	url := strings.TrimPrefix(server.line(`^ready `), "ready ")
	way := newFlakyWay(t, strings.TrimPrefix(url, "https://"))
	sender := inTerminal(t, 120, 34, "live", "--input", demoFile, "--server", way.url(), "--api-key", "k", "--insecure")
	screen := sender.shows("others watch this with: hubbub watch ")
	_, rest, _ := strings.Cut(screen, "hubbub watch ")
	id, _, _ := strings.Cut(rest, " ")
	leaving := start(t, "watch", id, "--server", url, "--api-key", "k", "--insecure", "--accessible")
	leaving.line(`^Watching stream `)
	leaving.line(`^SPEAKER_00, `)
	wire := start(t, "watch", id, "--server", url, "--api-key", "k-not-to-be-seen", "--insecure", "--output", "wire")
	wire.line(`"code":401`)
	if code := wire.exit(); code != exitFailed || strings.Contains(strings.Join(wire.messages(), ""), "k-not-to-be-seen") {
		t.Errorf("the wire of a watcher with a wrong key: exit code %d", code)
	}
	if err := leaving.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := leaving.exit(); code != exitInterrupted {
		t.Errorf("an interrupted watcher exits with %d", code)
	}
	failed := start(t, "watch", id, "--server", url, "--api-key", "k", "--insecure", "--output", "lines")
	failed.line(`SPEAKER_00$`)
	way.cut()
	if code := failed.exit(); code != exitFailed || !failed.said("the stream is over: error: connection lost") {
		t.Errorf("a stream that failed: exit code %d", code)
	}
}
