package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

const testToken = "tok/en+5f.8=1c"

// notebook is a Tap that keeps everything.
type notebook struct {
	mu      sync.Mutex
	records []WireRecord
}

func (n *notebook) Record(r WireRecord) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.records = append(n.records, r)
}

func (n *notebook) all() []WireRecord {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]WireRecord(nil), n.records...)
}

// find waits for a record.
func (n *notebook) find(t *testing.T, what string, is func(WireRecord) bool) WireRecord {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, r := range n.all() {
			if is(r) {
				return r
			}
		}
	}
	t.Fatalf("no record of %s in %+v", what, n.all())
	return WireRecord{}
}

// checkSecrets fails when a key or a token can be found in any spelling.
func checkSecrets(t *testing.T, records []WireRecord) {
	t.Helper()
	for _, r := range records {
		line := r.Line()
		var back any
		if err := json.Unmarshal([]byte(line), &back); err != nil || strings.Contains(line, "\n") {
			t.Errorf("not one line of JSON: %v: %q", err, line)
		}
		for _, secret := range []string{testKey, testToken, "tok%2Fen", "5f.8"} {
			if strings.Contains(line, secret) || strings.Contains(fmt.Sprint(back), secret) {
				t.Errorf("%q is in %s", secret, line)
			}
		}
	}
}

// tattler is a service that repeats key and token wherever it can.
func tattler(t *testing.T, s script) (*Client, *notebook) {
	t.Helper()
	upgrader := websocket.Upgrader{}
	var address string
	address, ca := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "req-1")
		switch {
		case r.URL.Path == "/v1/test":
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, "<title>no %s</title>", r.Header.Get("Authorization"))
		case r.Method == http.MethodPost:
			fmt.Fprintf(w, `{"id":"one","url":"wss%s\/stream?token=tok%%2Fen%%2B5f.8%%3D1c","token":"tok\/en+5f.8=1c","key":%q}`,
				strings.TrimPrefix(address, "https"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		case r.URL.Query().Get("token") == testToken && s != nil:
			conn, err := upgrader.Upgrade(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			s(t, conn)
		default:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"requestId":"r","message":"token %s is not good"}`, r.URL.Query().Get("token"))
		}
	}), nil)
	book := &notebook{}
	return newTestClient(t, ClientOptions{BaseURL: address, CACert: ca, Tap: book}), book
}

// kinds are the kinds and directions of records without pings, in order.
func kinds(records []WireRecord) (out []string) {
	for _, r := range records {
		if r.Kind != WirePing && r.Kind != WirePong {
			out = append(out, strings.TrimSpace(string(r.Dir)+" "+string(r.Kind)))
		}
	}
	return out
}

func TestWireOfAWholeStream(t *testing.T) {
	c, book := tattler(t, func(t *testing.T, conn *websocket.Conn) {
		if err := conn.WriteControl(websocket.PingMessage, []byte("hi"), time.Now().Add(patience)); err != nil {
			t.Error(err)
		}
		samples, payload := make([]float32, ChunkSamples), []byte(nil)
		for range 3 {
			var err error
			if _, payload, err = conn.ReadMessage(); err != nil || DecodeChunk(samples, payload) != nil {
				t.Error(err)
			}
		}
		say(t, conn, `{"type":"diarization_speaker_start","data":{"timestamp":0.15,"speaker":"SPEAKER_00"}}`)
		say(t, conn, `{"type":"error","message":"\u0074ok\/en+5f.8=1c came with `+testKey+`\u001b[2J"}`)
		say(t, conn, `{"type":"error"}`)
		untilEnd(t, conn)
		closeWith(conn, websocket.CloseNormalClosure, "bye "+testToken)
	})
	s := openLive(t, c)
	defer s.Close()
	for _, seq := range []int64{0, 1, 5} {
		mustSend(t, s, seq)
	}
	book.find(t, "a message that cannot be read", func(r WireRecord) bool { return r.Kind == WireError && r.Type == TypeError && len(r.Raw) == 16 })
	book.find(t, "a pong", func(r WireRecord) bool { return r.Kind == WirePong && r.Dir == Incoming && r.Took > 0 })
	book.find(t, "a pong of this side", func(r WireRecord) bool { return r.Kind == WirePong && r.Dir == Outgoing })
	if err := s.EndOfStream(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, info := collect(t, s); info.Reason != Completed {
		t.Fatalf("%+v", info)
	}
	records := book.all()
	checkSecrets(t, records)
	got := strings.Join(kinds(records), ", ")
	want := "out request, connect, tls, in answer, out handshake, connect, tls, in handshake, " +
		"out chunk, out chunk, out chunk, in event, in error, in error, out message, in close, out close, end"
	// What answers a chunk may come before the chunk's write has returned.
	for _, early := range []string{"in event, in error, in error, ", "in event, in error, ", "in event, "} {
		got = strings.Replace(got, early+"out chunk, ", "out chunk, "+early, 1)
	}
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, r := range records {
		switch {
		case r.Kind == WireTLS && (!strings.HasPrefix(r.Text, "TLS 1.3") || !strings.Contains(r.Text, "127.0.0.1 by test (self-signed)") || r.Took <= 0),
			r.Kind == WireRequest && (!strings.HasPrefix(r.Text, "POST https://127.0.0.1:") || !strings.HasSuffix(r.Text, "/v1/live") || string(r.Raw) != "{}" || r.Stream != 0),
			r.Kind == WireAnswer && (r.Code != 200 || r.Took <= 0 || !strings.Contains(r.Text, "req-1") || r.Size == 0),
			r.Kind == WireHandshake && r.Dir == Incoming && (r.Code != 101 || r.Took <= 0 || r.Stream != 1),
			r.Kind == WireChunk && (r.Size != ChunkBytes || r.Took <= 0 || r.Stream != 1),
			r.Kind == WireChunk && r.Chunk == 1 && (r.Gap <= 0 || r.Dropped != 0),
			r.Kind == WireChunk && r.Chunk == 5 && (r.Dropped != 3 || r.Ahead < 300*time.Millisecond),
			r.Kind == WireEvent && (r.Type != TypeSpeakerStart || r.Text != "SPEAKER_00 at 0.150 s" || r.Lag < 0 || r.Lag > patience),
			r.Kind == WireMessage && string(r.Raw) != EndOfStreamMessage,
			r.Kind == WireClose && r.Code != 1000,
			r.Kind == WireEnd && (r.Code != 1000 || r.Type != "completed" || r.Fault):
			t.Errorf("%s", r.Line())
		}
		if runtime.GOOS == "linux" && r.Kind == WireChunk && r.Socket != nil && (r.Socket.RTT <= 0 || r.Socket.Window <= 0) {
			t.Errorf("no state of the socket: %+v", r.Socket)
		}
	}
	if runtime.GOOS == "linux" {
		book.find(t, "a socket's state", func(r WireRecord) bool { return r.Socket != nil })
	}
	if _, ok := s.Socket(); ok {
		t.Error("a closed socket has a state")
	}
}

// openLive makes a stream with the client and opens it.
func openLive(t *testing.T, c *Client) *Stream {
	t.Helper()
	live, err := c.CreateStream(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.OpenStream(context.Background(), live.URL)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWireOfALatePong answers the first ping only after the second: its round
// trip is that of the first.
func TestWireOfALatePong(t *testing.T) {
	c, book := tattler(t, func(t *testing.T, conn *websocket.Conn) {
		var pings []string
		conn.SetPingHandler(func(p string) error {
			if pings = append(pings, p); len(pings) == 2 {
				return conn.WriteControl(websocket.PongMessage, []byte(pings[0]), time.Now().Add(patience))
			}
			return nil
		})
		drain(conn)
	})
	c.stream.pingEvery = 50 * time.Millisecond
	s := openLive(t, c)
	defer s.Close()
	pong := book.find(t, "a pong", func(r WireRecord) bool { return r.Kind == WirePong && r.Dir == Incoming })
	if pong.Took < 50*time.Millisecond/2 {
		t.Errorf("a round trip of %v", pong.Took)
	}
}

func TestWireOfWhatFails(t *testing.T) {
	t.Run("answers", func(t *testing.T) {
		c, book := tattler(t, nil)
		if _, err := c.Test(context.Background()); err == nil {
			t.Error("no error")
		}
		live, err := c.CreateStream(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.OpenStream(context.Background(), live.URL); err == nil {
			t.Error("no error")
		}
		checkSecrets(t, book.all())
		page := book.find(t, "a page", func(r WireRecord) bool { return r.Code == http.StatusTeapot })
		if !page.Fault || !strings.Contains(page.Text, `a web page, "no`) || page.Raw != nil {
			t.Errorf("%s", page.Line())
		}
		refused := book.find(t, "a refusal", func(r WireRecord) bool { return r.Code == http.StatusUnauthorized })
		if refused.Kind != WireHandshake || !refused.Fault || string(refused.Raw) != `{"requestId":"r","message":"token [redacted] is not good"}` &&
			string(refused.Raw) != `{"message":"token [redacted] is not good","requestId":"r"}` {
			t.Errorf("%s", refused.Line())
		}
	})
	t.Run("no answer", func(t *testing.T) {
		book := &notebook{}
		c := newTestClient(t, ClientOptions{BaseURL: "https://127.0.0.1:1", Tap: book})
		_, err := c.Test(context.Background())
		if err == nil {
			t.Fatal("no error")
		}
		r := book.find(t, "a failure", func(r WireRecord) bool { return r.Kind == WireFailure })
		if !r.Fault || !strings.Contains(r.Text, "refuses connections") || !strings.Contains(r.Text, hintOf(err)) {
			t.Errorf("%s", r.Line())
		}
		book.find(t, "a failed connection", func(r WireRecord) bool { return r.Kind == WireConnect && r.Fault })
	})
	t.Run("a connection that breaks", func(t *testing.T) {
		c, book := tattler(t, func(t *testing.T, conn *websocket.Conn) {
			_, _, _ = conn.ReadMessage()
			breakOff(t, conn)
		})
		s := openLive(t, c)
		defer s.Close()
		for seq := int64(0); ; seq++ {
			if err := s.Send(context.Background(), seq, make([]float32, ChunkSamples)); err != nil {
				if !errors.Is(err, ErrStreamOver) {
					t.Error(err)
				}
				break
			}
		}
		end := book.find(t, "an end", func(r WireRecord) bool { return r.Kind == WireEnd })
		if !end.Fault || end.Type != Lost.String() || !strings.Contains(end.Text, "start again") {
			t.Errorf("%s", end.Line())
		}
		checkSecrets(t, book.all())
	})
}

func TestRedactor(t *testing.T) {
	r := newRedactor("k3y")
	if got := r.text("k3y"); got != "k3y" {
		t.Errorf("a key of three characters is found by chance: %q", got)
	}
	r = newRedactor(testKey)
	r.add(testToken)
	for raw, want := range map[string]string{
		`{"a":"b"}`:                            `{"a":"b"}`,
		`{"a": 1.50,"b":"\u00e9"}`:             `{"a": 1.50,"b":"\u00e9"}`, // as it came, byte by byte
		`{"a":"` + testKey + `"}`:              `{"a":"[redacted]"}`,
		`{"` + testKey + `":1.50}`:             `{"[redacted]":1.50}`,
		`["tok\/en\u002b5f.8=1c",2]`:           `["[redacted]",2]`,
		`{"url":"wss:\/\/h\/p?token=new&x=1"}`: `{"url":"wss://h/p?[redacted]"}`,
		`{"url":"wss://h/p?token=new&x=1"}`:    `{"url":"wss://h/p?[redacted]"}`,
		`{"url":"wss://h/p#token=new"}`:        `{"url":"wss://h/p?[redacted]"}`,
		`{"accessToken":"unheard-of"}`:         `{"accessToken":"[redacted]"}`,
		`{"x":"<b>&","y":"\n` + testKey + `"}`: `{"x":"<b>&","y":"\n[redacted]"}`,
		`"plain text"`:                         `"plain text"`,
	} {
		if got := string(r.json(json.RawMessage(raw))); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", raw, got, want)
		}
	}
	r.addQuery(&url.URL{RawQuery: "from=12345&token=987654&x=abcdef"})
	if got := r.text("12345 987654 abcdef"); got != "12345 [redacted] [redacted]" {
		t.Errorf("got %q", got)
	}
	for i := range 10 * maxSecrets {
		r.add(fmt.Sprintf("secret-%d", i))
	}
	if got := r.text(testKey); len(r.words) > maxSecrets || got != redacted {
		t.Errorf("%d words, and the key reads %q", len(r.words), got)
	}
}

// FuzzRedactor looks for a spelling in which the key gets through.
func FuzzRedactor(f *testing.F) {
	f.Add(`{"a":"%s"}`, "x")
	f.Add(`"%s"`, `\u0073`)
	f.Add(`{"%s":["%s",{"token":"%s"}]}`, "://")
	f.Fuzz(func(t *testing.T, form, extra string) {
		r := newRedactor(testKey)
		raw := oneLine([]byte(strings.ReplaceAll(form, "%s", extra+testKey)))
		clean := r.json(raw)
		var v any
		if err := json.Unmarshal(clean, &v); err != nil {
			t.Fatalf("%q became %q: %v", raw, clean, err)
		}
		if strings.Contains(string(clean), testKey) || strings.Contains(fmt.Sprint(v), testKey) {
			t.Errorf("%q became %q", raw, clean)
		}
	})
}
