package localserver

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"hubbub/localserver/apikeys"
	"hubbub/localserver/certificate"
	"hubbub/protocol/testkit"
)

const (
	// oddRequestsVar is the environment variable with the number of requests
	// that TestOddRequests makes; a tenth of them go to a cluster.
	oddRequestsVar   = "HUBBUB_ODD_REQUESTS"
	oddRequests      = 5000
	oddRequestsShort = 1000 // with go test -short
	// Every so many requests one goes over a socket, and the store is written.
	socketEvery  = 10
	workingEvery = 500
)

// oddCount is how many requests a test makes.
func oddCount(t testing.TB) int {
	text := os.Getenv(oddRequestsVar)
	if text == "" && testing.Short() {
		return oddRequestsShort
	}
	if text == "" {
		return oddRequests
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, not a number of requests", oddRequestsVar, text)
	}
	return n
}

// oddRequest is a request, in all parts that a client controls.
type oddRequest struct {
	method, target, body string // target is the path and query, escaped
	key                  string
	upgrade              bool
}

// oddGenerator makes requests with ids, keys, queries and bodies of odd
// contents and lengths, the same ones for a seed.
type oddGenerator struct {
	*rand.Rand
	host    *host
	known   []string // ids of streams
	granted []string // addresses of media that are good
	keys    []string
}

func newOddGenerator(h *host, seed uint64) *oddGenerator {
	g := &oddGenerator{Rand: rand.New(rand.NewPCG(seed, 1)), host: h, keys: []string{"", testKey, testKey, testKey}}
	for range 3 {
		g.known = append(g.known, h.create().ID)
	}
	ended := h.open()
	ended.chunks(1)
	ended.end()
	ended.rest()
	g.known = append(g.known, ended.id)
	for _, account := range []string{apikeys.DefaultAccount, strings.Repeat("é", 64), "a.*.>"} {
		for _, name := range []string{"x", "../..", "live/" + ended.id + "/turns.rttm", "live/*/turns.json", "live/" + strings.Repeat("A", 200) + "/turns.json"} {
			for _, method := range []string{"GET", "PUT"} {
				g.granted = append(g.granted, h.signer.sign(method, account, name, time.Now().Add(24*time.Hour)))
			}
		}
	}
	return g
}

func (g *oddGenerator) pick(from ...string) string { return from[g.IntN(len(from))] }

// id is a text in the place of an id. Most are short, so that most code is
// reached; lengths cluster around bounds.
func (g *oddGenerator) id() string {
	switch g.IntN(12) {
	case 0:
		return g.pick(g.known...)
	case 1: // nearly one
		raw := []byte(g.pick(g.known...))
		raw[g.IntN(len(raw))] = byte(g.Uint32())
		return string(raw)
	case 2:
		return g.pick(g.known...) + g.pick("\x00", " ", ".", ".x", "/", "\r\n", "\r\nPING\r\n", "*", "é", "=", "%")
	case 3:
		return g.pick(strings.ToUpper(g.known[0]), "{"+g.known[0]+"}", "urn:uuid:"+g.known[0], strings.ReplaceAll(g.known[0], "-", ""), uuid.Nil.String(), uuid.NewString())
	case 4:
		return g.pick("*", ">", "a.*", ".>", ".", "..", "a..b", ".a", "a.", "$JS.API.INFO", "_INBOX.x", "$KV.sessions.x", "$SYS", "hubbub.events.x", "probe", "media-addresses")
	case 5:
		return strings.Repeat(g.pick("../", "..\\", "/", "./", "%2e%2e%2f", "%", "%00"), 1+g.IntN(30)) + "etc/passwd"
	case 6:
		return strings.Repeat(g.pick("A", "a.", "-", "é", "\x00", "*", "f"), g.length())
	case 7, 8:
		raw := make([]byte, g.length())
		for i := range raw {
			raw[i] = byte(g.Uint32())
		}
		return string(raw)
	case 9: // as an id of another service
		const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ_-"
		raw := make([]byte, g.length())
		for i := range raw {
			raw[i] = digits[g.IntN(len(digits))]
		}
		return string(raw)
	case 10:
		return g.pick("PUB x 1\r\nx\r\n", "-ERR 'x'", "+OK", "CONNECT {}", "\r\n\r\n", "\xff\xfe", "\u202e", "NaN", "-1", "18446744073709551616")
	}
	return ""
}

func (g *oddGenerator) length() int {
	if g.IntN(4) > 0 {
		return g.IntN(60)
	}
	near := []int{64, 128, 255, 256, 1024, 1500, maxTarget - 40, maxTarget, 4020, 4096, 5000, 8192, 12_000}
	return max(0, near[g.IntN(len(near))]+g.IntN(41)-20)
}

// segment is an id as a segment of a path, escaped if necessary.
func (g *oddGenerator) segment() string {
	id := g.id()
	switch g.IntN(8) {
	case 0:
		return id
	case 1:
		return url.QueryEscape(id)
	}
	return url.PathEscape(id)
}

func (g *oddGenerator) request() oddRequest {
	r := oddRequest{method: "GET", key: g.pick(g.keys...)}
	switch g.IntN(11) {
	case 0:
		r.target, r.upgrade = streamPath+g.segment(), true
	case 1:
		r.target, r.upgrade = streamPath+g.segment()+"?token="+g.segment(), true
	case 2, 3:
		r.target = "/v1/live/" + g.segment()
	case 4:
		r.target, r.upgrade = "/v1/live/"+g.segment()+"/events?from="+g.pick("", "0", "1", "-1", "9223372036854775807", g.segment()), true
	case 5:
		r.method, r.target = "POST", "/v1/live"
		r.body = g.pick("", "{}", fmt.Sprintf(`{"resume":%q}`, g.id()), `{"resume":"`+g.id()+`"}`, `{"resume":["`+g.pick(g.known...)+`"]}`)
	case 6:
		r.method, r.target = "POST", g.pick("/v1/media/input", "/v1/media/output")
		r.body = g.pick(`{"url":"media://`+g.id()+`"}`, `{"url":"media://live/`+g.id()+`/turns.rttm"}`, fmt.Sprintf(`{"url":%q}`, "media://"+g.id()))
	case 7:
		r.method, r.target = g.pick("GET", "HEAD", "PUT"), mediaPath+g.pick(g.granted...)
		if r.method == "PUT" {
			r.body = g.id()
		}
	case 8:
		sealed := []byte(g.pick(g.granted...))
		sealed[g.IntN(len(sealed))] = byte(g.Uint32())
		r.method, r.target = g.pick("GET", "PUT"), mediaPath+g.pick(g.segment(), url.PathEscape(string(sealed)))
	case 9:
		r.method, r.target = g.pick("GET", "DELETE"), "/v1/media?"+g.pick("after=", "url=", "url=media://", "url=media%3A%2F%2Flive%2F")+g.segment()
	case 10:
		r.target = g.pick("/v1/test", "/v1/media", "/healthz", "/readyz", "/openapi.json", "/"+g.segment(), "/v1/"+g.segment(), "/v1/live/"+g.segment()+"/"+g.segment()) + g.pick("", "?"+g.segment())
	}
	if g.IntN(20) == 0 {
		r.method = g.pick("GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH", "BREW", "TRACE")
	}
	if g.IntN(20) == 0 {
		r.upgrade = !r.upgrade
	}
	if g.IntN(50) == 0 {
		r.key = strings.Map(func(c rune) rune { return max(' ', c%127) }, g.id())
	}
	return r
}

// throw gives a request to the routes of a server and checks the response. It
// returns false if the request cannot arrive over a connection in this form.
func (r oddRequest) throw(t testing.TB, routes http.Handler) bool {
	t.Helper()
	at, err := url.ParseRequestURI(r.target)
	if err != nil {
		return false
	}
	q := httptest.NewRequest("GET", "/", strings.NewReader(r.body))
	q.Method, q.URL, q.RequestURI = r.method, at, r.target
	if r.key != "" {
		q.Header.Set("Authorization", "Bearer "+r.key)
	}
	if r.upgrade {
		for name, value := range upgrade {
			q.Header[name] = value
		}
	}
	w := httptest.NewRecorder()
	routes.ServeHTTP(w, q)
	if w.Code >= 500 {
		t.Errorf("%s %.200q %.200q: %d %s", r.method, r.target, r.body, w.Code, w.Body)
	}
	if len(r.target) > maxTarget && w.Code != http.StatusRequestURITooLong {
		t.Errorf("%d bytes of address return %d", len(r.target), w.Code)
	}
	return true
}

// send writes a request to a socket unchanged, whether or not it is valid HTTP,
// and reads the status of the response. It does not read stream messages.
func (r oddRequest) send(t testing.TB, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	testkit.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(testkit.Timeout))
	head := r.method + " " + r.target + " HTTP/1.1\r\nHost: x\r\n"
	if r.upgrade {
		for name, value := range upgrade {
			head += name + ": " + value[0] + "\r\n"
		}
	} else {
		head += "Connection: close\r\n"
	}
	if r.key != "" {
		head += "Authorization: Bearer " + r.key + "\r\n"
	}
	go func() {
		// The server may respond and close before it has read everything.
		_, _ = io.WriteString(conn, head+"Content-Length: "+strconv.Itoa(len(r.body))+"\r\n\r\n"+r.body)
	}()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil { // closed, or reset while the rest was still coming
		return
	}
	fields := strings.Fields(line)
	if len(fields) < 2 || fields[1] >= "500" && fields[1] != "501" && fields[1] != "505" { // net/http's own
		t.Errorf("%s %.200q %.200q: %q", r.method, r.target, r.body, line)
	}
}

// sendOdd makes n requests, some of them over sockets, and checks that the
// store still works.
func sendOdd(t testing.TB, h *host, seed uint64, n int) {
	g := newOddGenerator(h, seed)
	routes := h.routes()
	handled, sent := 0, 0
	for i := range n {
		r := g.request()
		// A recorder cannot become a WebSocket.
		opens := r.upgrade && slices.ContainsFunc(g.known, func(id string) bool { return strings.Contains(strings.ToLower(r.target), id) })
		switch {
		case opens, i%socketEvery == 0, !r.throw(t, routes):
			r.send(t, h.Addr().String())
			sent++
		default:
			handled++
		}
		if err := h.store.Err(); err != nil {
			t.Fatalf("%s %.200q (%d bytes) %.200q (%d bytes): %v", r.method, r.target, len(r.target), r.body, len(r.body), err)
		}
		if i%workingEvery == 0 || i == n-1 {
			h.working()
		}
	}
	t.Logf("%d requests: %d to the handlers, %d over sockets", n, handled, sent)
}

// Whatever ids, names and addresses requests contain, and however long they are,
// the embedded store still responds, in memory and on disk.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	n := oddCount(t)
	t.Run("memory", func(t *testing.T) {
		sendOdd(t, serve(t, func(o *setup) { o.TLS.Mode = certificate.Off }), 1, n-n/10)
	})
	t.Run("disk", func(t *testing.T) {
		dir := t.TempDir()
		sendOdd(t, serve(t, func(o *setup) { o.TLS.Mode, o.DataDir = certificate.Off, dir }), 2, n/10)
	})
}
