package localserver

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"hubbub/localserver/certificate"
	"hubbub/protocol/testkit"
)

// baseline is what an idle server uses.
type baseline struct {
	goroutines int
	heap       uint64 // bytes
}

func measure(h *host) baseline {
	h.http.CloseIdleConnections()
	runtime.GC()
	runtime.GC() // what finalizers had retained
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return baseline{runtime.NumGoroutine(), m.HeapAlloc}
}

// restored waits until a server uses no more than before.
func (b baseline) restored(h *host) {
	h.t.Helper()
	const slack = 8 << 20 // pools, caches, counters: less than a frame or a stream
	var now baseline
	deadline := time.Now().Add(testkit.Timeout)
	for ; time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		now = measure(h)
		if now.goroutines <= b.goroutines && now.heap <= b.heap+slack && h.streams.Count()+h.transfers.Count() == 0 {
			return
		}
	}
	stacks := make([]byte, 1<<20)
	h.t.Errorf("%d goroutines and %d KiB were used before, %d and %d KiB are now; %d streams and transfers\n%s", b.goroutines, b.heap>>10,
		now.goroutines, now.heap>>10, h.streams.Count()+h.transfers.Count(), stacks[:runtime.Stack(stacks, true)])
}

// Thousands of invalid requests, and of connections that are closed without reading, get an
// error of the contract or nothing, and leave nothing. The server has no workers of jobs, whose
// first wait starts goroutines after the baseline.
func TestGarbageRequests(t *testing.T) {
	h := serve(t, func(o *setup) { o.TLS.Mode = certificate.Off; o.RatePerMinute, o.Jobs = -1, -1 })
	base := measure(h)
	sealed := h.signer.sign("PUT", "a", "x", time.Now().Add(time.Hour))
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	junk := func(n int) string {
		b := make([]byte, random.IntN(n))
		for i := range b {
			b[i] = byte(random.IntN(256))
		}
		return string(b)
	}
	word := func() string {
		return pick("/v1/live", "/v1/live/", "/v1/stream/x", "/v1/test", "/v1/media/input", "/v1/media/output", mediaPath+sealed[:random.IntN(len(sealed))], "/v1/jobs/x", "/", "*", "//", "/v1/../v1/test", "/%00", "/%zz", "http://x/", "") + pick("", "?token=", "?", "/..", "%2e%2e", strings.Repeat("x", 100))
	}
	dial := func() (net.Conn, *bufio.Reader) {
		conn := testkit.Must(net.Dial("tcp", h.Addr().String()))(t)
		_ = conn.SetDeadline(time.Now().Add(2 * testkit.Timeout))
		return conn, bufio.NewReader(conn)
	}
	conn, in := dial()
	statuses := map[int]int{}
	requests := 10_000
	if testing.Short() {
		requests = 1000
	}
	for i := range requests {
		if i%10 == 0 { // no request, or the beginning of one
			unread, _ := dial()
			_, _ = io.WriteString(unread, pick("", "GET / HTTP/1.1\r\n", "POST /v1/live HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n", "\x16\x03\x01\x02\x00",
				"PUT "+mediaPath+sealed+" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET "+strings.Repeat("/x", 20000))+junk(500))
			_ = unread.Close()
		}
		body := pick("", "{", "[]", `{"a":`, "null", junk(50))
		fmt.Fprintf(conn, "%s %s %s\r\nHost: x\r\n%s: %s\r\n%sContent-Length: %d\r\n\r\n%s",
			pick("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "BREW", "", junk(3)), word(), pick("HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/9.9", ""),
			pick("Authorization", "Upgrade", "X", ""), pick("Bearer "+testKey, "Bearer", "websocket", junk(20)),
			pick("", "Connection: Upgrade\r\n", "Transfer-Encoding: chunked\r\n"), len(body), body)
		_ = conn.(*net.TCPConn).CloseWrite() // there is no more of it
		_ = conn.SetReadDeadline(time.Now().Add(testkit.Timeout))
		res, err := http.ReadResponse(in, nil)
		if err == nil {
			statuses[res.StatusCode]++
			if res.StatusCode >= 500 && res.StatusCode != http.StatusHTTPVersionNotSupported && res.StatusCode != http.StatusNotImplemented {
				t.Fatalf("status %d", res.StatusCode)
			}
		} else if isTimeout(err) {
			t.Fatal("no response, and the connection stays open")
		}
		// The rest of the connection after an invalid request is undefined.
		_ = conn.Close()
		conn, in = dial()
	}
	_ = conn.Close()
	t.Logf("responses by status: %v", statuses)
	if statuses[400] == 0 || statuses[401] == 0 || statuses[404] == 0 || statuses[405] == 0 {
		t.Errorf("these requests are not varied enough: %v", statuses)
	}
	h.do("GET", "/v1/test", testKey, nil).hasStatus(t, "test", 200)
	base.restored(h)
}
