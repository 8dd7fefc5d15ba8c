package localserver

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"hubbub/localserver/apikeys"
	"hubbub/localserver/certificate"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// garbage makes invalid requests, the same for a seed.
type garbage struct{ *rand.Rand }

func (g garbage) bytes(most int) []byte {
	b := make([]byte, g.IntN(most+1))
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return b
}

func (g garbage) pick(from ...string) string { return from[g.IntN(len(from))] }

// request is valid HTTP and otherwise invalid.
func (g garbage) request(base, good, sealed string) *http.Request {
	r := &http.Request{Method: g.pick("GET", "POST", "PUT", "HEAD", "DELETE", "PATCH", "OPTIONS", "BREW"), Header: http.Header{}}
	r.URL, _ = url.Parse(base)
	r.URL.Path = g.pick("/", "/v1/test", "/v1/live", "/v1/live/"+string(g.bytes(40)), "/v1/stream/"+string(g.bytes(40)), "/v1/media/input", "/v1/media/output",
		mediaPath+sealed[:g.IntN(len(sealed))], mediaPath+string(g.bytes(200)), "/"+string(g.bytes(300)), "/v1/../../etc/passwd", "/openapi.json/x")
	r.URL.RawQuery = url.QueryEscape(string(g.bytes(50)))
	switch g.IntN(4) {
	case 0:
		r.Header.Set("Authorization", "Bearer "+testKey)
	case 1:
		r.Header.Set("Authorization", "Bearer "+good[:g.IntN(len(good))])
	case 2:
		r.Header.Set("Authorization", strings.Map(func(c rune) rune { return max(' ', c%127) }, string(g.bytes(100))))
	}
	if g.IntN(8) == 0 {
		for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="} {
			r.Header.Set(name, value)
		}
	}
	body := g.pick("", "{}", "[", `{"url":"media://`+fmt.Sprint(g.Uint32())+`"}`, `{"url":"media://live/x"}`, `{"url":{}}`, strings.Repeat("[", 5000), string(g.bytes(2000)))
	if body != "" {
		r.Body = io.NopCloser(strings.NewReader(body))
		r.ContentLength = int64(len(body))
		if g.IntN(3) == 0 {
			r.ContentLength = -1 // in chunks
		}
	}
	return r
}

// invalidRequests is how many a test of invalid requests sends.
func invalidRequests() int {
	if testing.Short() {
		return 1000
	}
	return 10_000
}

// raw is not valid HTTP, or only at its beginning.
func (g garbage) raw() []byte {
	head := g.pick("", "GET / HTTP/1.1\r\n", "POST /v1/live HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n", "GET /v1/test HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\x00",
		"PUT /v1/media/objects/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET "+strings.Repeat("/x", 20000))
	return append([]byte(head), g.bytes(500)...)
}

// After thousands of invalid requests the service still responds, and neither
// goroutines nor memory have grown.
func TestGarbage(t *testing.T) {
	dir := t.TempDir()
	h := serve(t, func(o *setup) { o.TLS.Mode, o.DataDir = certificate.Off, dir })
	good := mustKey(t, dir, "a", apikeys.PlanPro, time.Hour, time.Now())
	sealed := h.signer.sign("PUT", "a", "x", time.Now().Add(time.Hour))
	client := &http.Client{Timeout: testkit.Timeout, Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	throw := func(seed uint64, n int) {
		var all sync.WaitGroup
		for worker := range uint64(4) {
			g := garbage{rand.New(rand.NewPCG(seed, worker))}
			all.Go(func() {
				for i := range n / 4 {
					if i%10 == 0 {
						conn, err := net.Dial("tcp", h.Addr().String())
						if err != nil {
							t.Error(err)
							return
						}
						_, _ = conn.Write(g.raw())
						_ = conn.Close()
						continue
					}
					r := g.request(h.URL(), good, sealed)
					res, err := client.Do(r)
					if err != nil { // net/http would not send some of it
						continue
					}
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
					if res.StatusCode >= 500 {
						t.Errorf("%s %q: %d", r.Method, r.URL.Path, res.StatusCode)
					}
				}
			})
		}
		all.Wait()
		client.CloseIdleConnections()
	}
	measure := func() (goroutines int, heap uint64) {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return runtime.NumGoroutine(), m.HeapAlloc
	}
	throw(1, 500) // allocates what is allocated once
	var goroutines int
	var heap uint64
	testkit.Eventually(t, "a steady state", func() bool {
		before := goroutines
		goroutines, heap = measure()
		return before == goroutines
	})
	throw(2, invalidRequests())
	var left int
	var held uint64
	testkit.Eventually(t, fmt.Sprintf("%d goroutines again", goroutines), func() bool {
		left, held = measure()
		return left <= goroutines
	})
	t.Logf("goroutines %d, then %d; heap %d KiB, then %d KiB", goroutines, left, heap>>10, held>>10)
	// Streams that were created are stored, some kilobytes each.
	if held > heap+32<<20 {
		t.Errorf("the heap has grown from %d KiB to %d KiB", heap>>10, held>>10)
	}
	h.do("GET", "/v1/test", good, nil).hasStatus(t, "afterwards", 200)
	if h.streams.Count() != 0 || h.transfers.Count() != 0 {
		t.Error("quotas were not released")
	}
}

// A complete stream, with every kind of secret and every kind of refusal: no
// secret is in the log, at any level, and each refusal has a line with its request id.
func TestLogOfAStreamHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	var log logBuffer
	dir := t.TempDir()
	h := serve(t, log.use, func(o *setup) { o.DataDir, o.KeepAudio = dir, true })
	key := mustKey(t, dir, "team", apikeys.PlanPro, time.Hour, time.Now())
	secrets := []string{testKey, key}
	parts := strings.Split(key, ".")
	secrets = append(secrets, parts[1], parts[2])
	address := func(op, location string) string {
		a := h.ask(op, location)
		secrets = append(secrets, a[strings.LastIndex(a, "/")+1:])
		return a
	}
	h.do("GET", "/v1/test", key, nil)
	h.do("GET", "/v1/test", key+"x", nil)
	h.do("GET", "/"+key+"?token="+key, "", nil)
	l := h.create()
	u, _ := url.Parse(l.URL)
	secrets = append(secrets, u.Query().Get("token"))
	conn, _, err := h.dial.Dial(l.URL, nil)
	testkit.NoError(t, err)
	s := &testStream{newClientConn(t, conn), t, l.ID}
	s.chunks(2)
	s.text("not a valid message")
	s.end()
	s.rest()
	_ = conn.Close()
	h.becomes(l.ID, protocol.StatusDone)
	_, res, err := h.dial.Dial(l.URL, nil)
	if err == nil {
		t.Fatal("a used token works")
	}
	refused := read(t, res).apiError(t, 401)
	in := address("input", "media://x")
	h.at("PUT", in, strings.NewReader("body"))
	h.at("GET", in, nil).apiError(t, 403)
	out := address("output", "media://x")
	h.at("GET", out, nil)
	h.at("GET", out+"?"+out, nil)
	h.at("PUT", out, strings.NewReader("x")).apiError(t, 403)
	h.at("GET", address("output", "media://live/"+l.ID+"/audio.wav"), nil)
	broken, _ := url.Parse(address("input", "media://y"))
	h.abortedUpload(broken)
	testkit.NoError(t, h.store.Close())
	h.at("GET", out, nil).apiError(t, 503)
	h.at("PUT", in, strings.NewReader("x")).apiError(t, 503)
	h.do("POST", "/v1/live", key, nil).apiError(t, 503)
	files, err := filepath.Glob(filepath.Join(dir, "keys", "*.pem"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		testkit.NoError(t, err)
		block, _ := pem.Decode(raw)
		private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		testkit.NoError(t, err)
		secrets = append(secrets, fmt.Sprintf("%x", private), fmt.Sprint(private))
	}
	testkit.Eventually(t, "the last line", func() bool { return strings.Count(log.String(), "status=503") >= 3 })
	text := log.String()
	for _, x := range secrets {
		if x == "" || strings.Contains(text, x) {
			t.Errorf("the log contains %q", x)
		}
	}
	if strings.Contains(text, "token=") || bytes.Contains([]byte(text), []byte("Bearer ")) {
		t.Error("the log contains a query or a credential")
	}
	for _, has := range []string{"stream=" + l.ID, "media stored", "account=default", "request=" + refused.RequestID} {
		if !strings.Contains(text, has) {
			t.Errorf("the log does not contain %q", has)
		}
	}
}
