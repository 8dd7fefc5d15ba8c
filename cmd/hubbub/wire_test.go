package main

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
	"hubbub/protocol/trace"
)

// wireRecord is what scripts read of a line of --output wire.
type wireRecord struct {
	Number  int64          `json:"n"`
	At      time.Time      `json:"at"`
	Stream  int            `json:"stream"`
	Dir     string         `json:"dir"`
	Kind    string         `json:"kind"`
	Type    string         `json:"type"`
	Code    int            `json:"code"`
	Meaning string         `json:"meaning"`
	Fault   bool           `json:"fault"`
	Text    string         `json:"text"`
	Message map[string]any `json:"message"`
}

// TestWireOutputHasNoSecrets lets a service say key and token wherever it can,
// break rules, and close with a code of its own: everything else is printed.
func TestWireOutputHasNoSecrets(t *testing.T) {
	t.Parallel()
	server := protocoltest.Serve(t, protocoltest.Service{
		Handshake: func(w http.ResponseWriter, r *http.Request) {
			upgrader := websocket.Upgrader{}
			conn, err := upgrader.Upgrade(w, r, http.Header{"X-Request-Id": {"id " + protocoltest.Token}})
			if err != nil {
				return
			}
			defer conn.Close()
			_, _, _ = conn.ReadMessage()
			for _, text := range []string{
				`{"type":"error","message":"` + protocoltest.Token + ` and \u006bey-that-nobody-may-see"}`,
				`{"type":"news","` + checkKey + `":"wss:\/\/elsewhere\/?token=another"}`,
				"no JSON\r\n" + protocoltest.Token,
			} {
				_ = conn.WriteMessage(websocket.TextMessage, []byte(text))
			}
			_ = conn.WriteMessage(websocket.BinaryMessage, []byte(checkKey))
			protocoltest.CloseWith(conn, 4001, "bye "+protocoltest.Token)
		},
	}.Handler())
	p := start(t, "live", "--input", talkFile(t, 0), "--server", server, "--api-key", checkKey, "--output", "wire")
	p.ends(exitFailed)
	out := p.output()
	var kinds []string
	records := map[string]wireRecord{}
	last := wireRecord{}
	for line := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
		var r wireRecord
		var plain any
		if err := json.Unmarshal([]byte(line), &plain); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		_ = json.Unmarshal([]byte(line), &r) // a message that is no object is left out
		if r.Number != last.Number+1 || r.At.Before(last.At) {
			t.Errorf("record %d at %v follows %d at %v", r.Number, r.At, last.Number, last.At)
		}
		last = r
		if r.Kind != "chunk" && r.Kind != "ping" && r.Kind != "pong" {
			kinds = append(kinds, strings.TrimSpace(r.Dir+" "+r.Kind))
		}
		records[strings.TrimSpace(r.Dir+" "+r.Kind)] = r
		encoded, _ := json.Marshal(plain) // every escape spelled out
		for _, secret := range []string{checkKey, protocoltest.Token, "token=another", base64.StdEncoding.EncodeToString([]byte(checkKey))} {
			if strings.Contains(line, secret) || strings.Contains(string(encoded), secret) {
				t.Errorf("%q is in %s", secret, line)
			}
		}
	}
	want := "out request, connect, in answer, out handshake, connect, in handshake, in error, in event, in error, in error, in close, out close, end"
	testkit.Equal(t, strings.Join(kinds, ", "), want)
	if c := records["in close"]; c.Code != 4001 || c.Meaning != "a code of the service's own" || c.Text != "bye [redacted]" {
		t.Errorf("%+v", c)
	}
	if e := records["end"]; !e.Fault || e.Code != 4001 || e.Stream != 1 {
		t.Errorf("%+v", e)
	}
}

// TestWireOutputClosed has a reader that has seen enough: no failure, and the
// session ends although its service sends nothing.
func TestWireOutputClosed(t *testing.T) {
	t.Parallel()
	server := protocoltest.Serve(t, protocoltest.Service{Stream: func(conn *websocket.Conn) {
		protocoltest.UntilEnd(conn)
		protocoltest.CloseWith(conn, 1000, "")
	}}.Handler())
	r, w, err := os.Pipe()
	testkit.NoError(t, err)
	a := &App{Args: []string{"live", "--input", talkFile(t, 0), "--server", server, "--api-key", checkKey, "--output", "wire"}, Stdout: w, Stderr: os.Stderr}
	code := make(chan int, 1)
	go func() { code <- a.Main() }()
	buf := make([]byte, 1)
	testkit.Must(r.Read(buf))(t)
	_ = r.Close()
	select {
	case got := <-code:
		testkit.Equal(t, got, exitInterrupted, "exit code")
	case <-time.After(testkit.Timeout):
		t.Fatal("the session continues without a reader")
	}
	_ = w.Close()
}

// TestScreenWire opens the wire view on a real terminal, against the built-in
// server over TLS: chunks are folded, an event shows its JSON, everything goes
// into a file, and the timeline comes back.
func TestScreenWire(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, 100, 30, "live", "--input", talkFile(t, 0))
	x.Shows("SPEAKER_00", "connected")
	x.Keys("w")
	x.Shows("wire view", "open 0:", "pace 1\\.|pace 0\\.", "handshake .*101 Switching Protocols", "tls .*TLS 1\\.3, http/1\\.1", "chunk .* in \\d+\\.\\d s", "← event .*start SPEAKER_00 at .*lag")
	x.Shows("round trip \\d")
	x.Keys("t")
	x.Shows("messages$")
	x.Keys("Home")
	x.Keys("Enter")
	x.Shows(`^ \{"type":"diarization_speaker_start","data":\{"timestamp":`, `"lag_ms": `)
	x.Keys("Escape")
	x.Keys("t", "t", "t")
	x.Shows("everything$")
	x.Keys("C")
	x.Shows(`wrote \d+ records to \./hubbub-wire-.*\.ndjson`)
	x.Keys("c")
	x.Shows("sent to the terminal's clipboard")
	x.Keys("/")
	x.Types("no such text")
	x.Keys("Enter")
	x.Shows("nothing matches everything")
	x.Keys("w")
	x.Shows("across$", "SPEAKER_00 .*")
	x.Keys("q")
	x.ends(exitOK)
	files := testkit.Files(t, x.dir, "hubbub-wire-*.ndjson")
	if len(files) != 1 {
		t.Fatalf("%d files", len(files))
	}
	text := testkit.Must(os.ReadFile(files[0]))(t)
	seen := map[string]bool{}
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		var r wireRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		seen[r.Kind] = true
	}
	for _, k := range []trace.Kind{trace.KindRequest, trace.KindResponse, trace.KindTLS, trace.KindHandshake, trace.KindChunk, trace.KindPong, trace.KindEvent} {
		if !seen[string(k)] {
			t.Errorf("no %s is in the file", k)
		}
	}
	if strings.Contains(string(text), "token=") {
		t.Error("a token is in the file")
	}
}
