package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"hubbub/localserver"
	"hubbub/localserver/faults"
	"hubbub/protocol/testkit"
)

// serveHere starts a server with the key checkKey in this process.
func serveHere(t *testing.T, o localserver.Options) *localserver.Server {
	t.Helper()
	o.Addr, o.APIKeys = "127.0.0.1:0", []string{checkKey}
	server := testkit.Must(localserver.Start(context.Background(), o))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = server.Shutdown(ctx) // what is held on purpose is cut off
	})
	return server
}

// serveFaulty is the built-in server, misbehaving.
func serveFaulty(t *testing.T, specs ...string) *localserver.Server {
	t.Helper()
	var o localserver.Options
	for _, spec := range specs {
		f := testkit.Must(faults.Parse(spec))(t)
		o.Faults = append(o.Faults, f)
	}
	return serveHere(t, o)
}

// A session that is refused at its start says at once that it waits, and nothing else
// during the wait.
func TestLiveSaysThatItWaits(t *testing.T) {
	t.Parallel()
	server := serveFaulty(t, "429=3s,times=1")
	var stdout bytes.Buffer
	var stderr timedLines
	a := &App{Args: []string{"live", "--input", talkFile(t, 1), "--server", server.URL(), "--api-key", checkKey, "--insecure"}, Stdout: &stdout, Stderr: &stderr}
	if code := a.Main(); code != exitOK || !strings.HasPrefix(stderr.text, "hubbub: the service returned 429 Too Many Requests: ") ||
		!strings.Contains(stderr.text, "; trying again in 3s\n") || stderr.second.Sub(stderr.first) < 3*time.Second {
		t.Errorf("exit code %d, %v between the lines of\n%s", code, stderr.second.Sub(stderr.first), stderr.text)
	}
}

// timedLines is text with the times of its first two lines. A busy machine may take long to connect: that notice is left out.
type timedLines struct {
	text          string
	first, second time.Time
}

func (l *timedLines) Write(b []byte) (int, error) {
	text := withoutWait(string(b))
	switch {
	case text == "":
	case l.first.IsZero():
		l.first = time.Now()
	case l.second.IsZero():
		l.second = time.Now()
	}
	l.text += text
	return len(b), nil
}

// TestConnectingToASlowService: a service that does not respond is named before the screen is there.
func TestConnectingToASlowService(t *testing.T) {
	t.Parallel()
	server := serveFaulty(t, "slow=1m")
	terminal := inTerminal(t, 80, 24, "live", "--input", "demo", "--server", server.URL(), "--api-key", checkKey, "--insecure")
	terminal.Shows("hubbub: connecting to " + server.URL())
}
