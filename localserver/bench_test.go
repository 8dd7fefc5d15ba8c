package localserver

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"hubbub/localserver/limits"
	"hubbub/localserver/stream"
	"hubbub/localserver/stream/streamtest"
	"hubbub/protocol/testkit"
)

// The path of a chunk without the engine (TLS, frame, checks, queue), compared
// with a WebSocket that only echoes. Back pressure paces both.
func BenchmarkStreamPath(b *testing.B) {
	b.Run("hubbub", func(b *testing.B) {
		h := serve(b, func(o *setup) { o.Unpaced = true }, withEngine(func() stream.Diarizer { return &streamtest.Diarizer{} }))
		s := h.open()
		b.SetBytes(int64(len(quiet)))
		b.ReportAllocs()
		for b.Loop() {
			testkit.NoError(b, s.WriteMessage(websocket.BinaryMessage, quiet))
		}
		s.end()
		s.closes(1000)
		b.ReportMetric(float64(h.counters.Chunks.Load())/b.Elapsed().Seconds(), "chunks/s")
	})
	b.Run("bare echo", func(b *testing.B) {
		url, config := bareTLS(b, func(w http.ResponseWriter, r *http.Request) {
			conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			for {
				kind, raw, err := conn.ReadMessage()
				if err != nil || conn.WriteMessage(kind, raw) != nil {
					return
				}
			}
		})
		dial := websocket.Dialer{TLSClientConfig: config}
		conn, _, err := dial.Dial("wss"+strings.TrimPrefix(url, "https"), nil)
		testkit.NoError(b, err)
		back := make(chan int, 1)
		go func() {
			n := 0
			for ; ; n++ {
				if kind, _, err := conn.ReadMessage(); err != nil || kind == websocket.TextMessage {
					break
				}
			}
			back <- n
		}()
		b.SetBytes(int64(len(quiet)))
		b.ReportAllocs()
		for b.Loop() {
			testkit.NoError(b, conn.WriteMessage(websocket.BinaryMessage, quiet))
		}
		_ = conn.WriteMessage(websocket.TextMessage, nil)
		n := <-back
		_ = conn.Close()
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "chunks/s")
	})
}

// bareTLS serves one handler and nothing else, with the same TLS.
func bareTLS(b *testing.B, f http.HandlerFunc) (url string, client *tls.Config) {
	bare := httptest.NewTLSServer(f)
	b.Cleanup(bare.Close)
	return bare.URL, bare.Client().Transport.(*http.Transport).TLSClientConfig
}

// Creating a stream writes two records; the bare handler responds with the same
// body and writes nothing.
func BenchmarkCreateStream(b *testing.B) {
	post := func(b *testing.B, h *host) {
		for b.Loop() {
			if res := h.do("POST", "/v1/live", testKey, strings.NewReader("{}")); res.StatusCode != 200 {
				b.Fatal(res.StatusCode)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	}
	b.Run("memory", func(b *testing.B) {
		post(b, serve(b, func(o *setup) { o.RatePerMinute = -1 }))
	})
	b.Run("disk", func(b *testing.B) {
		post(b, serve(b, func(o *setup) { o.DataDir, o.RatePerMinute = b.TempDir(), -1 }))
	})
	b.Run("bare handler", func(b *testing.B) {
		url, config := bareTLS(b, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"id":"d3b07384-d9a0-4c9b-8d3a-1f0e5b6c7a80","url":"wss://127.0.0.1:1/v1/stream/d3b07384-d9a0-4c9b-8d3a-1f0e5b6c7a80?token=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`))
		})
		transport := &http.Transport{TLSClientConfig: config}
		b.Cleanup(transport.CloseIdleConnections)
		post(b, &host{t: b, url: url, http: &http.Client{Transport: transport}})
	})
}

func BenchmarkTest(b *testing.B) {
	get := func(b *testing.B, h *host) {
		for b.Loop() {
			if res := h.do("GET", "/v1/test", testKey, nil); res.StatusCode != 200 {
				b.Fatal(res.StatusCode)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	}
	b.Run("hubbub", func(b *testing.B) { get(b, serve(b, func(o *setup) { o.RatePerMinute = -1 })) })
	b.Run("with rate limit", func(b *testing.B) {
		clock := newClock()
		h := serve(b, clock.use, limitOf(MaxRatePerMinute))
		b.ResetTimer()
		for i := 1; b.Loop(); i++ {
			if res := h.do("GET", "/v1/test", testKey, nil); res.StatusCode != 200 {
				b.Fatal(res.StatusCode)
			}
			if i%100 == 0 { // as many uses as the default limit has
				clock.move(limits.RateWindow)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	})
	b.Run("bare handler", func(b *testing.B) {
		url, config := bareTLS(b, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"status":"OK","message":"The API key is accepted"}`))
		})
		transport := &http.Transport{TLSClientConfig: config}
		b.Cleanup(transport.CloseIdleConnections)
		get(b, &host{t: b, url: url, http: &http.Client{Transport: transport}})
	})
}
