package localserver

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/gorilla/websocket"
	"github.com/rs/zerolog"

	"hubbub/localserver/certificate"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// network is an unreliable network between clients and a server.
type network struct {
	t      *testing.T
	proxy  *toxiproxy.Proxy
	opened []*testStream
}

func unreliableNetwork(t *testing.T, h *host) *network {
	t.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled)
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	n := &network{t: t, proxy: toxiproxy.NewProxy(api, "network", "127.0.0.1:0", h.Addr().String())}
	testkit.NoError(t, n.proxy.Start())
	t.Cleanup(n.proxy.Stop)
	return n
}

// add adds a fault in one direction: "upstream" is to the server.
func (n *network) add(kind, direction, attributes string) {
	n.t.Helper()
	_, err := n.proxy.Toxics.AddToxicJson(strings.NewReader(fmt.Sprintf(
		`{"name":"%s-%s","type":%q,"stream":%q,"attributes":%s}`, kind, direction, kind, direction, attributes)))
	testkit.NoError(n.t, err)
}

// open opens a stream through the network.
func (n *network) open(h *host) *testStream {
	n.t.Helper()
	l := h.create()
	_, path, _ := strings.Cut(strings.TrimPrefix(l.URL, "wss://"), "/")
	conn, res, err := h.dial.Dial("wss://"+n.proxy.Listen+"/"+path, nil)
	if err != nil {
		n.t.Fatalf("dial: %v %v", err, res)
	}
	s := &testStream{newClientConn(n.t, conn), n.t, l.ID}
	n.opened = append(n.opened, s)
	return s
}

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
	return baseline{goroutines(), m.HeapAlloc}
}

// goroutines counts the goroutines except those of the proxy, which sometimes
// leaks one of a connection that it has reset.
func goroutines() (n int) {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		if !bytes.Contains(stack, []byte("Shopify/toxiproxy/")) {
			n++
		}
	}
	return n
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

// complete sends chunks over a stream and ends it, and checks that it ends normally.
func complete(t *testing.T, h *host, s *testStream, chunks int) {
	t.Helper()
	s.chunks(chunks)
	s.end()
	events, code, _ := s.rest()
	if code != websocket.CloseNormalClosure || len(events) != 2 {
		t.Errorf("code %d, %q", code, raws(events))
	}
	h.becomes(s.id, "done")
	same(t, events, h.stored(s.id))
}

// broken checks that a stream has ended with an error, and its turn with it.
func broken(t *testing.T, h *host, s *testStream) {
	t.Helper()
	h.becomes(s.id, "error")
	if stored := h.stored(s.id); len(stored) != 2 || !strings.Contains(stored[1], "speaker_end") {
		t.Errorf("stored: %q", stored)
	}
}

// networkFaults are the faults of the network, each with a test of a stream during it.
var networkFaults = []struct {
	name string
	test func(t *testing.T, h *host, n *network)
}{
	{"none", func(t *testing.T, h *host, n *network) { complete(t, h, n.open(h), 3) }},
	{"latency and jitter", func(t *testing.T, h *host, n *network) {
		for _, d := range []string{"upstream", "downstream"} {
			n.add("latency", d, `{"latency":250,"jitter":200}`)
		}
		complete(t, h, n.open(h), 20)
	}},
	{"bytes in small pieces", func(t *testing.T, h *host, n *network) {
		for _, d := range []string{"upstream", "downstream"} {
			n.add("slicer", d, `{"average_size":100,"size_variation":90,"delay":50}`)
		}
		complete(t, h, n.open(h), 20)
	}},
	{"10 kbit/s", func(t *testing.T, h *host, n *network) {
		s := n.open(h)
		n.add("bandwidth", "upstream", `{"rate":1}`) // 1 kB/s, which is 8 kbit/s
		n.add("bandwidth", "downstream", `{"rate":1}`)
		complete(t, h, s, 1)
	}},
	{"reset", func(t *testing.T, h *host, n *network) {
		s := n.open(h)
		s.chunks(2)
		s.next()
		n.add("reset_peer", "upstream", `{"timeout":0}`)
		_ = s.WriteMessage(websocket.BinaryMessage, quiet)
		broken(t, h, s)
	}},
	{"cable pulled out", func(t *testing.T, h *host, n *network) {
		s := n.open(h)
		s.chunks(2)
		s.next()
		n.proxy.Stop()
		broken(t, h, s)
	}},
	{"20 MB frames", func(t *testing.T, h *host, n *network) {
		s := n.open(h)
		frame := make([]byte, 20<<20)
		for range 3 {
			testkit.NoError(t, s.WriteMessage(websocket.BinaryMessage, frame))
			if e := s.next(); e.Message != protocol.ErrChunkSize.Error() {
				t.Errorf("got %s", e.Raw)
			}
		}
		complete(t, h, s, 3)
	}},
	{"slow handshakes", slowHandshakes},
}

// slowHandshakes are connections that begin a TLS handshake and send nothing more. They
// are closed, and others are served meanwhile.
func slowHandshakes(t *testing.T, h *host, n *network) {
	var hung sync.WaitGroup
	for i := range 100 {
		conn, err := net.Dial("tcp", h.Addr().String())
		testkit.NoError(t, err)
		hung.Go(func() {
			defer func() { _ = conn.Close() }()
			_, _ = conn.Write([]byte{22, 3, 1, 2, 0}[:i%6]) // the head of a TLS record, and no more
			_ = conn.SetReadDeadline(time.Now().Add(testkit.Timeout))
			if _, err := io.Copy(io.Discard, conn); err != nil && isTimeoutError(err) {
				t.Errorf("a silent connection stays open: %v", err)
			}
		})
	}
	complete(t, h, n.open(h), 3)
	hung.Wait()
}

// With every fault of the network a stream continues or ends as the contract
// says, and leaves nothing. Most faults wait: they happen at once.
func TestFaultsOfTheNetwork(t *testing.T) {
	if testing.Short() {
		t.Skip("waits 10 s")
	}
	// The server's clock stands still: however long a fault takes on a busy
	// machine, no stream is closed for a minute of silence.
	h := serve(t, newClock().use)
	warm := h.open()
	complete(t, h, warm, 1)
	_ = warm.Close()
	base := measure(h)
	t.Run("at once", func(t *testing.T) {
		for _, fault := range networkFaults {
			t.Run(fault.name, func(t *testing.T) {
				t.Parallel()
				h := *h
				h.t = t
				n := unreliableNetwork(t, &h)
				fault.test(t, &h, n)
				n.proxy.Stop()
				for _, s := range n.opened {
					_ = s.Close()
				}
			})
		}
	})
	base.restored(h)
}

func isTimeoutError(err error) bool {
	n, ok := err.(net.Error)
	return ok && n.Timeout()
}

// Thousands of invalid requests, and of connections that are closed without reading, get an
// error of the contract or nothing, and leave nothing.
func TestGarbageRequests(t *testing.T) {
	h := serve(t, func(o *setup) { o.TLS.Mode = certificate.Off; o.RatePerMinute = -1 })
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
		conn, err := net.Dial("tcp", h.Addr().String())
		testkit.NoError(t, err)
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
		} else if isTimeoutError(err) {
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
