package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
	"hubbub/protocol/trace"
)

const testToken = "tok/en+5f.8=1c"

// recordList is a Tracer that keeps everything.
type recordList struct {
	mu      sync.Mutex
	records []trace.Record
}

func (n *recordList) Record(r trace.Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.records = append(n.records, r)
}

func (n *recordList) all() []trace.Record {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]trace.Record(nil), n.records...)
}

// find waits for a record.
func (n *recordList) find(t *testing.T, what string, is func(trace.Record) bool) (found trace.Record) {
	t.Helper()
	testkit.Eventually(t, "a record of "+what, func() bool {
		i := slices.IndexFunc(n.all(), is)
		if i >= 0 {
			found = n.all()[i]
		}
		return i >= 0
	})
	return found
}

// checkSecrets fails when a key or a token can be found in any spelling.
func checkSecrets(t *testing.T, records []trace.Record) {
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

// leakyService is a service that repeats key and token wherever it can.
func leakyService(t *testing.T, s script) (*Client, *recordList) {
	t.Helper()
	address, ca := protocoltest.ServeTLS(t, protocoltest.Service{
		Test: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, "<title>no %s</title>", r.Header.Get("Authorization"))
		},
		Create: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Request-Id", "req-1")
			fmt.Fprintf(w, `{"id":"one","url":"wss://%s\/stream?token=tok%%2Fen%%2B5f.8%%3D1c","token":"tok\/en+5f.8=1c","key":%q}`,
				r.Host, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		},
		Handshake: func(w http.ResponseWriter, r *http.Request) {
			token := r.URL.Query().Get("token")
			if s == nil || token != testToken {
				w.WriteHeader(http.StatusUnauthorized)
				fmt.Fprintf(w, `{"requestId":"r","message":"token %s is not good"}`, token)
			} else if conn := protocoltest.Upgrade(w, r); conn != nil {
				defer conn.Close()
				s(t, conn)
			}
		},
	}.Handler(), nil)
	book := &recordList{}
	return newTestClient(t, Options{BaseURL: address, CACert: ca, Tracer: book}), book
}

// kinds are the kinds and directions of records without pings, in order.
func kinds(records []trace.Record) (out []string) {
	for _, r := range records {
		if r.Kind != trace.KindPing && r.Kind != trace.KindPong {
			out = append(out, strings.TrimSpace(string(r.Dir)+" "+string(r.Kind)))
		}
	}
	return out
}

func TestRecordsOfAStream(t *testing.T) {
	c, book := leakyService(t, func(t *testing.T, conn *websocket.Conn) {
		if err := conn.WriteControl(websocket.PingMessage, []byte("hi"), time.Now().Add(testkit.Timeout)); err != nil {
			t.Error(err)
		}
		samples, payload := make([]float32, protocol.ChunkSamples), []byte(nil)
		for range 3 {
			var err error
			if _, payload, err = conn.ReadMessage(); err != nil || protocol.DecodeChunk(samples, payload) != nil {
				t.Error(err)
			}
		}
		say(t, conn, `{"type":"diarization_speaker_start","data":{"timestamp":0.15,"speaker":"SPEAKER_00"}}`)
		say(t, conn, `{"type":"diarization_speaker_start","data":{"timestamp":0.25,"speaker":"SPEAKER_01"}}`)
		say(t, conn, `{"type":"error","message":"\u0074ok\/en+5f.8=1c came with `+testKey+`\u001b[2J"}`)
		say(t, conn, `{"type":"error"}`)
		untilEnd(t, conn)
		protocoltest.CloseWith(conn, websocket.CloseNormalClosure, "bye "+testToken)
	})
	s := openLive(t, c)
	defer s.Close()
	for _, seq := range []int64{0, 1, 5} {
		mustSend(t, s, seq)
	}
	book.find(t, "a message that cannot be read", func(r trace.Record) bool {
		return r.Kind == trace.KindError && r.Type == protocol.TypeError && len(r.Raw) == 16
	})
	book.find(t, "a pong", func(r trace.Record) bool { return r.Kind == trace.KindPong && r.Dir == trace.Incoming && r.Took > 0 })
	book.find(t, "a pong of this side", func(r trace.Record) bool { return r.Kind == trace.KindPong && r.Dir == trace.Outgoing })
	testkit.NoError(t, s.EndOfStream())
	events, info := collect(t, s)
	if info.Reason != Completed || info.Text != "bye [redacted]" {
		t.Fatalf("%+v", info)
	}
	for i, want := range []protocol.Event{{Message: "[redacted] came with [redacted]\x1b[2J"}, {Err: `error without a message: {"type":"error"}`}} {
		if e := events[i+2]; e.Message != want.Message || e.Err != want.Err {
			t.Errorf("%q, %q, want %q, %q", e.Message, e.Err, want.Message, want.Err)
		}
	}
	records := book.all()
	checkSecrets(t, records)
	got := strings.Join(kinds(records), ", ")
	want := "out request, connect, tls, in answer, out handshake, connect, tls, in handshake, " +
		"out chunk, out chunk, out chunk, in event, in event, in error, in error, out message, in close, out close, end"
	// The response to a chunk may come before the chunk's write has returned.
	for _, early := range []string{"in event, in event, in error, in error, ", "in event, in event, in error, ", "in event, in event, ", "in event, "} {
		got = strings.Replace(got, early+"out chunk, ", "out chunk, "+early, 1)
	}
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	sending := time.Duration(0) // since the first chunk
	for _, r := range records {
		sending += r.Gap
		switch {
		case r.Kind == trace.KindTLS && (!strings.HasPrefix(r.Text, "TLS 1.3") || !strings.Contains(r.Text, "127.0.0.1 by Test Authority (self-signed)") || r.Took <= 0),
			r.Kind == trace.KindRequest && (!strings.HasPrefix(r.Text, "POST https://127.0.0.1:") || !strings.HasSuffix(r.Text, "/v1/live") || string(r.Raw) != "{}" || r.Stream != 0),
			r.Kind == trace.KindResponse && (r.Code != 200 || r.Took <= 0 || !strings.Contains(r.Text, "req-1") || r.Size == 0),
			r.Kind == trace.KindHandshake && r.Dir == trace.Incoming && (r.Code != 101 || r.Took <= 0 || r.Stream != 1),
			r.Kind == trace.KindChunk && (r.Size != protocol.ChunkBytes || r.Took <= 0 || r.Stream != 1),
			r.Kind == trace.KindChunk && r.Chunk == 0 && (r.Gap != 0 || r.Dropped != 0),
			r.Kind == trace.KindChunk && r.Chunk == 1 && (r.Gap <= 0 || r.Dropped != 0),
			r.Kind == trace.KindChunk && r.Chunk == 5 && (r.Dropped != 3 || r.Ahead < 6*protocol.ChunkDuration-sending-r.Took),
			r.Kind == trace.KindEvent && (r.Type != protocol.TypeSpeakerStart || r.Text != "SPEAKER_00 at 0.150 s" && r.Text != "SPEAKER_01 at 0.250 s (session 0.550 s)" || r.Lag < 0 || r.Lag > testkit.Timeout),
			r.Kind == trace.KindMessage && string(r.Raw) != protocol.EndOfStreamMessage,
			r.Kind == trace.KindClose && (r.Code != 1000 || r.Stream != 1),
			r.Kind == trace.KindEnd && (r.Code != 1000 || r.Type != "completed" || r.Fault):
			t.Errorf("%s", r.Line())
		}
		if runtime.GOOS == "linux" && r.Kind == trace.KindChunk && r.Socket != nil && (r.Socket.RTT <= 0 || r.Socket.Window <= 0) {
			t.Errorf("no state of the socket: %+v", r.Socket)
		}
	}
	if runtime.GOOS == "linux" {
		book.find(t, "a socket's state", func(r trace.Record) bool { return r.Socket != nil })
	}
	if s.Socket() != nil {
		t.Error("a closed socket has a state")
	}
}

// openLive makes a stream with the client and opens it.
func openLive(t *testing.T, c *Client) *Stream {
	t.Helper()
	live := testkit.Must(c.CreateStream(context.Background(), nil))(t)
	s := testkit.Must(c.OpenStream(context.Background(), live.URL))(t)
	return s
}

// TestAStreamRepeatsNoSecret: what a service says on a stream that is not traced, in an error, in a close
// frame and in the response to the handshake, has neither the key nor the token.
func TestAStreamRepeatsNoSecret(t *testing.T) {
	c, _ := leakyService(t, func(_ *testing.T, conn *websocket.Conn) {
		text := "token " + testToken + " of " + testKey
		protocoltest.Send(conn, protocol.NewErrorEvent("bad audio, 100 %"))
		protocoltest.Send(conn, protocol.NewErrorEvent(text))
		protocoltest.CloseWith(conn, websocket.ClosePolicyViolation, text)
	})
	c.tracer = nil
	events, info := collect(t, openLive(t, c))
	const clean = "token [redacted] of [redacted]"
	if len(events) != 2 || events[0].Message != "bad audio, 100 %" || events[1].Message != clean || info.Text != clean {
		t.Errorf("%+v, %+v", events, info)
	}
	_, err := c.OpenStream(context.Background(), "wss://"+c.base.Host+"/stream?token="+url.QueryEscape(testToken+"x"))
	for _, text := range []string{fmt.Sprintf("%+v %s", events, events[len(events)-1].Raw), info.Err.Error(), fmt.Sprint(err)} {
		if strings.Contains(text, testToken) || strings.Contains(text, testKey) {
			t.Errorf("%q", text)
		}
	}
}

func TestRecordsOfFailures(t *testing.T) {
	t.Run("responses", func(t *testing.T) {
		c, book := leakyService(t, nil)
		if _, err := c.Test(context.Background()); err == nil {
			t.Error("no error")
		}
		live := testkit.Must(c.CreateStream(context.Background(), nil))(t)
		if _, err := c.OpenStream(context.Background(), live.URL); err == nil {
			t.Error("no error")
		}
		checkSecrets(t, book.all())
		page := book.find(t, "a page", func(r trace.Record) bool { return r.Code == http.StatusTeapot })
		if !page.Fault || !strings.Contains(page.Text, `a web page, "no`) || page.Raw != nil {
			t.Errorf("%s", page.Line())
		}
		refused := book.find(t, "a refusal", func(r trace.Record) bool { return r.Code == http.StatusUnauthorized })
		if refused.Kind != trace.KindHandshake || !refused.Fault || string(refused.Raw) != `{"requestId":"r","message":"token [redacted] is not good"}` &&
			string(refused.Raw) != `{"message":"token [redacted] is not good","requestId":"r"}` {
			t.Errorf("%s", refused.Line())
		}
	})
	t.Run("no response", func(t *testing.T) {
		book := &recordList{}
		c := newTestClient(t, Options{BaseURL: "https://127.0.0.1:1", Tracer: book})
		_, err := c.Test(context.Background())
		if err == nil {
			t.Fatal("no error")
		}
		r := book.find(t, "a failure", func(r trace.Record) bool { return r.Kind == trace.KindFailure })
		if !r.Fault || !strings.Contains(r.Text, "refuses connections") || !strings.Contains(r.Text, hint.Of(err)) {
			t.Errorf("%s", r.Line())
		}
		book.find(t, "a failed connection", func(r trace.Record) bool { return r.Kind == trace.KindConnect && r.Fault })
	})
	t.Run("a connection that breaks", func(t *testing.T) {
		c, book := leakyService(t, func(t *testing.T, conn *websocket.Conn) {
			_, _, _ = conn.ReadMessage()
			breakOff(t, conn)
		})
		s := openLive(t, c)
		defer s.Close()
		for seq := int64(0); ; seq++ {
			if err := s.Send(seq, make([]float32, protocol.ChunkSamples)); err != nil {
				if !errors.Is(err, ErrStreamOver) {
					t.Error(err)
				}
				break
			}
		}
		end := book.find(t, "an end", func(r trace.Record) bool { return r.Kind == trace.KindEnd })
		if !end.Fault || end.Type != Lost.String() || !strings.Contains(end.Text, "start again") {
			t.Errorf("%s", end.Line())
		}
		checkSecrets(t, book.all())
	})
}

// BenchmarkTracer is what a chunk costs more when somebody may look: the
// record, the question to the socket, the log.
func BenchmarkTracer(b *testing.B) {
	listener := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(b)
	defer listener.Close()
	conn := testkit.Must(net.Dial("tcp", listener.Addr().String()))(b)
	defer conn.Close()
	for name, tap := range map[string]trace.Tracer{"nobody": nil, "log": trace.NewLog()} {
		b.Run(name, func(b *testing.B) {
			var w *streamTracer
			if tap != nil {
				w = &streamTracer{tracer: &tracer{sink: tap, redactor: trace.NewRedactor(testKey)}, stream: 1, socket: conn}
			}
			b.ReportAllocs()
			for seq := int64(0); b.Loop(); seq++ {
				now := time.Now()
				w.chunk(trace.Record{Kind: trace.KindChunk, Chunk: seq}, now, now, nil)
			}
		})
	}
}
