package localserver

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// The way of a chunk with the engine switched off: TLS, frame, checks, hand
// over. Back pressure paces it.
func BenchmarkStreamPath(b *testing.B) {
	h := serve(b, func(o *Options) { o.Unpaced = true }, withEngine(func() Diarizer { return &fake{} }))
	s := h.open()
	b.SetBytes(int64(len(quiet)))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.WriteMessage(websocket.BinaryMessage, quiet); err != nil {
			b.Fatal(err)
		}
	}
	s.end()
	if _, code, _ := s.rest(); code != 1000 {
		b.Fatalf("code %d", code)
	}
	b.ReportMetric(float64(h.Stats().Chunks)/b.Elapsed().Seconds(), "chunks/s")
}

func BenchmarkCreateStream(b *testing.B) {
	for name, change := range map[string]func(*Options){
		"memory": func(*Options) {},
		"disk":   func(o *Options) { o.DataDir = b.TempDir() },
	} {
		b.Run(name, func(b *testing.B) {
			h := serve(b, change)
			for b.Loop() {
				if res := h.do("POST", "/v1/live", testKey, strings.NewReader("{}")); res.StatusCode != 200 {
					b.Fatal(res.StatusCode)
				}
			}
		})
	}
}

func BenchmarkTest(b *testing.B) {
	h := serve(b)
	get := func(b *testing.B, url string) {
		r, _ := http.NewRequest("GET", url+"/v1/test", nil)
		r.Header.Set("Authorization", "Bearer "+testKey)
		for b.Loop() {
			if res := h.send(r); res.StatusCode != 200 {
				b.Fatal(res.StatusCode)
			}
		}
	}
	bare := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"OK","message":"The API key is accepted"}`))
	}))
	bare.TLS = h.tls.config()
	bare.StartTLS()
	defer bare.Close()
	b.Run("hubbub", func(b *testing.B) { get(b, h.URL()) })
	b.Run("bare handler", func(b *testing.B) { get(b, bare.URL) })
}
