package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"hubbub/capture"
	"hubbub/localserver"
	"hubbub/localserver/faults"
	"hubbub/protocol"
	"hubbub/protocol/check"
	"hubbub/protocol/client"
	"hubbub/protocol/testkit"
)

// serveHere starts a server with the key checkKey in this process.
func serveHere(t *testing.T, o localserver.Options) *localserver.Server {
	t.Helper()
	o.Addr, o.APIKeys = "127.0.0.1:0", []string{checkKey}
	server, err := localserver.Start(context.Background(), o)
	testkit.NoError(t, err)
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
		f, err := faults.Parse(spec)
		testkit.NoError(t, err)
		o.Faults = append(o.Faults, f)
	}
	return serveHere(t, o)
}

// The check names the cause of faults that only the built-in server has; package check tests the
// other causes.
func TestCheckNamesTheFault(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ fault, stage, cause, next string }{
		{"web-page,on=handshake", "websocket", "not a WebSocket", "Upgrade"},
		{"hang-up@300ms", "audio", "the connection ", "network"},
		{"reset@300ms", "audio", "", "again"},
		{"no-close", "close", "without a close", "network"},
		{"500,on=status", "status", "500", "request id"},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			t.Parallel()
			failsAt(t, checkServer(t, serveFaulty(t, tt.fault), make([]float32, 15*protocol.ChunkSamples)), tt.stage, tt.cause, tt.next)
		})
	}
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

// checkServer checks a server with some audio.
func checkServer(t *testing.T, server *localserver.Server, speech []float32) check.Report {
	t.Helper()
	c, err := client.New(client.Options{BaseURL: server.URL(), APIKey: checkKey, CACert: server.CAPEM(), Timeout: testkit.Timeout})
	testkit.NoError(t, err)
	defer c.Close()
	return check.Run(t.Context(), check.Options{Client: c, Key: checkKey, Limit: testkit.Timeout, Speech: speech})
}

// failsAt demands that a stage failed, and that its cause and its next step
// say what they should. Stages before may be notices: so little audio need not
// give an event.
func failsAt(t *testing.T, r check.Report, stage, cause, next string) {
	t.Helper()
	for _, s := range r.Stages {
		if s.Name == stage {
			if s.State != check.Failed || !strings.Contains(s.Cause, cause) || !strings.Contains(s.Next, next) {
				t.Errorf("%s: %s\ncause %q, want %q\nnext  %q, want %q", stage, s.State, s.Cause, cause, s.Next, next)
			}
			return
		}
		if s.State == check.Failed || s.State == check.Skipped {
			t.Errorf("%s was %s before %s: %s", s.Name, s.State, stage, s.Cause)
		}
	}
}

// Late and lost events are seen by the check, too.
func TestCheckSeesLateEvents(t *testing.T) {
	t.Parallel()
	speech := demoSamples(t)[:6*capture.SampleRate]
	for fault, want := range map[string]struct {
		stage string
		state check.State
		text  string
	}{
		"drop-events=1":   {"event", check.Failed, "no event"},
		"event-lag=6s":    {"lag", check.Notice, "late"},
		"out-of-order@1h": {"close", check.OK, "1000"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			server := serveFaulty(t, fault)
			for _, s := range checkServer(t, server, speech).Stages {
				if s.Name == want.stage && (s.State != want.state || !strings.Contains(s.Seen+s.Cause, want.text)) {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

// TestConnectingToASlowService: a service that does not respond is named before the screen is there.
func TestConnectingToASlowService(t *testing.T) {
	t.Parallel()
	server := serveFaulty(t, "slow=1m")
	terminal := inTerminal(t, 80, 24, "live", "--input", "demo", "--server", server.URL(), "--api-key", checkKey, "--insecure")
	terminal.Shows("hubbub: connecting to " + server.URL())
}
