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

// The check names the cause of what the built-in server does wrong on purpose.
func TestCheckNamesTheFault(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault              string
		limit              time.Duration
		chunks             int
		stage, cause, next string
	}{
		{fault: "401,on=test", stage: "key", cause: "401", next: "API key"},
		{fault: "429=7s,on=test", stage: "key", cause: "429", next: "wait 7s"},
		{fault: "web-page,on=test", stage: "key", cause: "web page", next: "captive portal"},
		{fault: "no-answer,on=test", limit: time.Second, stage: "key", cause: "no response", next: "nothing responds"},
		{fault: "402", stage: "create", cause: "402", next: "subscription"},
		{fault: "503=30s", stage: "create", cause: "503", next: "30s"},
		{fault: "no-handshake", limit: time.Second, stage: "websocket", cause: "no response", next: "WebSocket"},
		{fault: "refuse-handshake=401", stage: "websocket", cause: "401", next: "used up"},
		{fault: "web-page,on=handshake", stage: "websocket", cause: "not a WebSocket", next: "Upgrade"},
		{fault: "close=1011@300ms", chunks: 15, stage: "audio", cause: "1011", next: "service"},
		{fault: "ahead@300ms", chunks: 15, stage: "audio", cause: "ahead of real time", next: "rule"},
		{fault: "hang-up@300ms", chunks: 15, stage: "audio", cause: "the connection ", next: "network"},
		{fault: "reset@300ms", chunks: 15, stage: "audio", cause: "", next: "again"},
		{fault: "chunk-size=2", chunks: 30, stage: "audio", cause: "Invalid chunk size", next: "6400"},
		{fault: "never-close", limit: 3 * time.Second, stage: "close", cause: "did not close", next: "operator"},
		{fault: "no-close", stage: "close", cause: "without a close", next: "network"},
		{fault: "500,on=status", stage: "status", cause: "500", next: "request id"},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			t.Parallel()
			if tt.limit == 0 {
				tt.limit = testkit.Timeout
			}
			if tt.chunks == 0 {
				tt.chunks = 5
			}
			server := serveFaulty(t, tt.fault)
			r := checkServer(t, server, tt.limit, make([]float32, tt.chunks*protocol.ChunkSamples))
			failsAt(t, r, tt.stage, tt.cause, tt.next)
		})
	}
}

// A session that is refused at its start says at once that it waits, and nothing else
// during the wait.
func TestLiveSaysThatItWaits(t *testing.T) {
	t.Parallel()
	server := serveFaulty(t, "429=3s,times=1")
	var stdout, stderr bytes.Buffer
	a := &App{Args: []string{"live", "--input", talkFile(t, 1), "--server", server.URL(), "--api-key", checkKey, "--insecure"}, Stdout: &stdout, Stderr: &stderr}
	if code := a.Main(); code != exitOK || !strings.HasPrefix(stderr.String(), "hubbub: the service returned 429 Too Many Requests: ") ||
		!strings.Contains(stderr.String(), "; trying again in 3s\n") || strings.Contains(stderr.String(), "connecting to") {
		t.Errorf("exit code %d\n%s", code, stderr.String())
	}
}

// checkServer checks a server with some audio; limit is for each step.
func checkServer(t *testing.T, server *localserver.Server, limit time.Duration, speech []float32) check.Report {
	t.Helper()
	c, err := client.New(client.Options{BaseURL: server.URL(), APIKey: checkKey, CACert: server.CAPEM(), Timeout: limit})
	testkit.NoError(t, err)
	defer c.Close()
	return check.Run(t.Context(), check.Options{Client: c, Key: checkKey, Limit: limit, Speech: speech})
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
			for _, s := range checkServer(t, server, testkit.Timeout, speech).Stages {
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
