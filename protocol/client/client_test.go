package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// clientOf is a client for a server that handles everything with h.
func clientOf(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	address, ca := protocoltest.ServeTLS(t, h, nil)
	return newTestClient(t, Options{BaseURL: address, CACert: ca})
}

func respond(status int, contentType, body string) http.HandlerFunc {
	return protocoltest.Respond(status, body, "Content-Type", contentType)
}

func TestOperations(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /some/prefix/v1/test", respond(200, "application/json", `{"status":"OK","message":"hello"}`))
	mux.HandleFunc("POST /some/prefix/v1/live", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		testkit.Equal(t, r.Header.Get("Content-Type"), "application/json", "content type")
		_ = json.NewEncoder(w).Encode(protocol.LiveStream{ID: "7", URL: "wss://host/" + string(body)})
	})
	mux.HandleFunc("GET /some/prefix/v1/live/{id}", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(protocol.LiveStatus{ID: r.PathValue("id"), Status: protocol.StatusDone})
	})
	address, ca := protocoltest.ServeTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		testkit.Equal(t, r.Header.Get("Authorization"), "Bearer "+testKey, "Authorization")
		testkit.Equal(t, r.Header.Get("User-Agent"), "hubbub/1", "User-Agent")
		mux.ServeHTTP(w, r)
	}), nil)
	c := newTestClient(t, Options{BaseURL: address + "/some/prefix//", CACert: ca, UserAgent: "hubbub/1", APIKey: " " + testKey + "\n"})
	ctx := context.Background()
	if got, err := c.Test(ctx); err != nil || got != (protocol.TestResponse{Status: protocol.StatusOK, Message: "hello"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := c.CreateStream(ctx, nil); err != nil || got != (protocol.LiveStream{ID: "7", URL: "wss://host/{}"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := c.CreateStream(ctx, map[string]any{"a": 1}); err != nil || got.URL != `wss://host/{"a":1}` {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := c.StreamStatus(ctx, "a b?c"); err != nil || got.ID != "a b?c" || got.Status != protocol.StatusDone {
		t.Errorf("%+v, %v", got, err)
	}
	for _, id := range []string{"", ".", "..", "../test", `a\b`} {
		if _, err := c.StreamStatus(ctx, id); err == nil || !strings.Contains(err.Error(), "is not the id of a stream") {
			t.Errorf("id %q was asked for: %v", id, err)
		}
	}
}

func TestErrorBodies(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, c := range []struct {
		name   string
		status int
		typ    string
		body   string
		says   string
		hint   string
	}{
		{"key", 401, "application/json", `{"requestId":"r-1","message":"unknown key"}`,
			"the service returned 401 Unauthorized: unknown key (request r-1)", "expired or revoked"},
		{"subscription", 402, "application/json", `{"requestId":"r","message":"m"}`, "402 Payment Required: m", "subscription"},
		{"not there", 404, "application/json", `{"requestId":"r","message":"m"}`, "404 Not Found: m", "address"},
		{"too many", 429, "application/json", `{"requestId":"r","message":"m"}`, "429 Too Many Requests: m", "wait"},
		{"broken", 500, "application/json", `{"requestId":"r","message":"m"}`, "500 Internal Server Error: m", "service failed"},
		{"fields", 400, "application/json", `{"message":"Invalid request","errors":[{"field":"url","message":"is required"},{"field":"b","message":"too long"}]}`,
			"400 Bad Request: Invalid request: url is required; b too long", "does not accept"},
		{"echo of the key", 401, "application/json", `{"requestId":"` + testKey + `","message":"no such key ` + testKey + `"}`,
			"no such key [redacted] (request [redacted])", "API key"},
		{"control characters", 500, "application/json", `{"requestId":"r\u001b[1m","message":"a\u001b[2Jb\nc\u202e"}`, "a[2Jb c (request r[1m)", "service failed"},
		{"web page", 403, "text/html", "<!doctype html><html><head><TITLE>\nLog in to the\tWi-Fi</title>", `403 Forbidden: a web page, "Log in to the Wi-Fi"`, "a log-in page"},
		{"proxy", 502, "text/plain", "upstream\x1b[31m is gone", "502 Bad Gateway: upstream[31m is gone", "in front of the service"},
		{"gateway", 504, "text/html", "<title>Time-out</title>", `504 Gateway Timeout: a web page, "Time-out"`, "in front of the service"},
		{"limit in front", 429, "text/html", "<title>Slow down</title>", `429 Too Many Requests: a web page, "Slow down"`, "wait a minute"},
		{"long text", 500, "text/plain", long, "500 Internal Server Error: xxx", "service failed"},
		{"nothing", 500, "", "", "the service returned 500: Internal Server Error", "service failed"},
		{"nothing, unknown status", 599, "", "", "the service returned 599: ", "service failed"},
		{"JSON of another kind", 404, "application/json", `["x"]`, "404 Not Found: ", "address"},
		{"JSON without a message", 404, "application/json", `{"error":"x"}`, `the service returned 404 Not Found: {"error":"x"}`, "Check the address"},
		{"odd types", 404, "application/json", `{"message":7}`, "404 Not Found: ", "address"},
		{"binary", 500, "application/octet-stream", "\x00\x01\xff\xfe", "nothing readable", "service failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := clientOf(t, respond(c.status, c.typ, c.body)).Test(context.Background())
			var e *ResponseError
			if !errors.As(err, &e) || e.Status != c.status {
				t.Fatalf("%v", err)
			}
			explained(t, err, c.says, c.hint)
		})
	}
}

// Without TLS, a proxy responds in place of the service. Its pages are not blamed on the service.
func TestPageOfAProxyWithoutTLS(t *testing.T) {
	for _, status := range []int{401, 403, 407, 502, 503} {
		proxy := protocoltest.Serve(t, respond(status, "text/html", "<title>The URL could not be retrieved</title>"))
		via := testkit.Must(url.Parse(proxy))(t)
		client := newTestClient(t, Options{BaseURL: "http://service.invalid"})
		client.http.Transport.(*http.Transport).Proxy = http.ProxyURL(via)
		_, err := client.Test(t.Context())
		fix := "the proxy " + via.Host + " in HTTP_PROXY"
		if status == http.StatusProxyAuthRequired {
			fix = "The proxy requires a user name and password: check those in its address, in HTTP_PROXY"
		}
		explained(t, err, "could not be retrieved", fix)
	}
}

// TestReady: a page, or a redirection, is of something else, whatever its status.
func TestReady(t *testing.T) {
	for _, c := range []struct {
		status     int
		kind, body string
		says, hint string
	}{
		{200, "", "", "", ""},
		{503, "application/json", `{"message":"No store"}`, "the service is not ready: 503 Service Unavailable", "log"},
		{200, "text/html", "<title>Hotel</title>", `not the service's: a web page, "Hotel"`, "captive portal"},
		{403, "text/html", "<title>No</title>", `403 Forbidden: a web page, "No"`, "web filter"},
		{502, "text/html", "<title>Bad gateway</title>", `502 Bad Gateway: a web page, "Bad gateway"`, "in front of the service"},
		{302, "", "", "the service returned 302", "moved"},
	} {
		err := clientOf(t, respond(c.status, c.kind, c.body)).Ready(t.Context())
		if c.says == "" {
			testkit.NoError(t, err)
			continue
		}
		explained(t, err, c.says, c.hint)
	}
}

// explained checks an error that a user sees: what it says, what its hint says, and that each is one line
// without a secret.
func explained(t *testing.T, err error, says, fix string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(hint.Of(err), fix) {
		t.Errorf("got  %v\n     %s\nwant %s, %s", err, hint.Of(err), says, fix)
		return
	}
	for _, text := range []string{err.Error(), hint.Of(err), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
		for _, secret := range []string{testKey, "tok-123", "hunter2"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s is told: %s", secret, text)
			}
		}
	}
	for _, text := range []string{err.Error(), hint.Of(err)} {
		if text == "" || strings.ContainsAny(text, "\n\r\t\x1b\x00") || len(text) > 800 {
			t.Errorf("not one line for a person: %q", text)
		}
	}
}

func TestErrorKeepsItsParts(t *testing.T) {
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "from-the-header")
		w.Header().Set("Retry-After", "120")
		respond(429, "application/json", `{"message":"m","errors":[{"field":"f","message":"g"}]}`)(w, r)
	})
	_, err := c.Test(context.Background()) // 120 s is too long: no second request, no wait
	var e *ResponseError
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	if e.Status != 429 || e.RequestID != "from-the-header" || e.Message != "m" || e.RetryAfter != 2*time.Minute ||
		!slices.Equal(e.Fields, []protocol.ValidationError{{Field: "f", Message: "g"}}) {
		t.Errorf("%+v", e)
	}
	testkit.Equal(t, e.Hint(), "Too many requests or concurrent streams; wait 2m0s and try again.")
}

func TestRetryAfterIsHonouredOnce(t *testing.T) {
	for _, c := range []struct {
		name    string
		header  string
		status  int
		fails   int64 // so many responses, then success
		timeout time.Duration
		wait    time.Duration // 0: none
		ok      bool
	}{
		{name: "seconds", header: "7", status: 429, fails: 1, wait: 7 * time.Second, ok: true},
		{name: "unavailable", header: "7", status: 503, fails: 1, wait: 7 * time.Second, ok: true},
		{name: "now", header: "0", status: 429, fails: 1, wait: time.Second, ok: true},
		{name: "date that is over", header: "Mon, 02 Jan 2006 15:04:05 GMT", status: 429, fails: 1, wait: time.Second, ok: true},
		{name: "again", header: "7", status: 429, fails: 2, wait: 7 * time.Second},
		{name: "not said", status: 429, fails: 1},
		{name: "unreadable", header: "soon", status: 429, fails: 1},
		{name: "too long", header: "61", status: 429, fails: 1},
		{name: "absurd", header: "9223372036854775807", status: 429, fails: 1},
		{name: "negative", header: "-10000000000", status: 429, fails: 1},
		{name: "longer than the context", header: "50", status: 429, fails: 1, timeout: 30 * time.Second},
		{name: "another status", header: "7", status: 500, fails: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked atomic.Int64
			client := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
				if body, _ := io.ReadAll(r.Body); string(body) != "{}" {
					t.Errorf("body %q", body) // also the second time
				}
				if asked.Add(1) > c.fails {
					respond(200, "application/json", `{"id":"1","url":"wss://x"}`)(w, r)
					return
				}
				if c.header != "" {
					w.Header().Set("Retry-After", c.header)
				}
				respond(c.status, "application/json", `{"requestId":"r","message":"m"}`)(w, r)
			})
			var waits, announced []time.Duration
			client.waiting = func(err error, d time.Duration) {
				testkit.Contains(t, err.Error(), ": m (request r)", err)
				announced = append(announced, d)
			}
			client.wait = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
			ctx := context.Background()
			if c.timeout > 0 {
				var cancel func()
				ctx, cancel = context.WithTimeout(ctx, c.timeout)
				defer cancel()
			}
			_, err := client.CreateStream(ctx, nil)
			if (err == nil) != c.ok {
				t.Errorf("%v", err)
			}
			if c.wait == 0 && len(waits) > 0 || c.wait > 0 && !slices.Equal(waits, []time.Duration{c.wait}) {
				t.Errorf("waits: %v, want %v", waits, c.wait)
			}
			if !slices.Equal(announced, waits) {
				t.Errorf("announced: %v, waits: %v", announced, waits)
			}
		})
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "60")
		respond(429, "application/json", `{"requestId":"r","message":"slow down"}`)(w, r)
	})
	c.wait = func(ctx context.Context, d time.Duration) error { cancel(); return protocol.Sleep(ctx, d) }
	_, err := c.Test(ctx)
	explained(t, err, "slow down", "")
}

func TestResponsesThatAreNotTheServices(t *testing.T) {
	for _, c := range []struct {
		name, body, says string
	}{
		{"web page", "<HTML><title>Welcome</title>", `is not the service's JSON: a web page, "Welcome"`},
		{"text", "hello\x1b[0m " + testKey, "is not the service's JSON: hello[0m [redacted]"},
		{"nothing", "", "not the service's JSON: it is empty"},
		{"other JSON", `{}`, "returned no id and url"},
		{"too much", `{"id":"` + strings.Repeat("x", 2<<20), "longer than 1048576 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := clientOf(t, respond(200, "text/plain", c.body)).CreateStream(context.Background(), nil)
			explained(t, err, c.says, "")
		})
	}
}

// A response that ends early, or of which no more comes.
func TestIncompleteResponses(t *testing.T) {
	t.Parallel()
	// Connecting and the header must come within the time, also on a busy machine.
	for hangs, timeout := range map[bool]time.Duration{false: testkit.Timeout, true: 5 * time.Second} {
		address, ca := protocoltest.ServeTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"sta`)
			_ = http.NewResponseController(w).Flush()
			if hangs {
				<-r.Context().Done()
			}
		}), nil)
		_, err := newTestClient(t, Options{BaseURL: address, CACert: ca, Timeout: timeout}).Test(t.Context())
		testkit.Equal(t, fmt.Sprint(err), "the response to GET /v1/test did not arrive completely", "hangs", hangs)
		explained(t, err, "", "Try again")
	}
}

func TestErrorBodyIsBounded(t *testing.T) {
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(500)
		block := bytes.Repeat([]byte("a "), 1<<15)
		for {
			if _, err := w.Write(block); err != nil {
				return // the client has gone
			}
		}
	})
	_, err := c.Test(context.Background())
	explained(t, err, "500", "")
}

func TestNewClientRefuses(t *testing.T) {
	for _, c := range []struct {
		base, key, says, hint string
	}{
		{"", "k", "is empty", "https://HOST"},
		{"  ", "k", "is empty", "https://HOST"},
		{"example.org", "k", "no scheme: example.org", "Write https://example.org"},
		{"example.org:8580/x", "k", "no scheme", "Write https://example.org:8580/x"},
		{"localhost:8580", "k", "no scheme", "Write https://localhost:8580"},
		{"127.0.0.1:8580", "k", "no scheme", "Write https://127.0.0.1:8580"},
		{"//example.org", "k", "no scheme", "Write https://example.org"},
		{"ftp://example.org", "k", "begins with ftp://", "https://HOST"},
		{"wss://example.org", "k", "begins with wss://", "https://"},
		{"ws://example.org", "k", "begins with ws://", "begins with http://"},
		{"https://", "k", "no host name", "https://HOST"},
		{"https:///v1", "k", "no host name", "https://HOST"},
		{"https://user:" + testKey + "@example.org", "k", "user name or password", "--api-key"},
		{"http://127.0.0.1:99999", "k", "no port from 1 to 65535", "https://HOST"},
		{"http://127.0.0.1:0", "k", "no port from 1 to 65535", "https://HOST"},
		{"https://example.org:" + testKey, "k", "cannot be parsed", "https://HOST"},
		{"https://example.org?x=1", "k", "after ? or #", "https://HOST"},
		{"https://example.org#x", "k", "after ? or #", "https://HOST"},
		{"https://example.org/v1/", "k", "ends in /v1", "Remove /v1"},
		{"https://example.org", "", "no API key", "--api-key"},
		{"https://example.org", " \n", "no API key", "HUBBUB_API_KEY"},
		{"https://example.org", testKey + "\nX-Evil: 1", "character that keys cannot have", "one word"},
		{"https://example.org", testKey + "ü", "character that keys cannot have", "one word"},
	} {
		_, err := New(Options{BaseURL: c.base, APIKey: c.key})
		explained(t, err, c.says, c.hint)
	}
	for in, want := range map[string]string{
		"https://example.org/":          "https://example.org",
		" HTTPS://example.org:1/a/b// ": "https://example.org:1/a/b",
		"http://127.0.0.1:8580":         "http://127.0.0.1:8580",
		"https://[::1]:8580":            "https://[::1]:8580",
	} {
		c, err := New(Options{BaseURL: in, APIKey: "k"})
		if err != nil || c.BaseURL() != want {
			t.Errorf("%q: %v, %v", in, c, err)
		}
	}
}

// What may be a password or a key is in no error about an address.
func TestAddressesShowNoSecret(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"user:hunter2@host", "hunter2@host:8443", "//user:hunter2@host", "user:hunter2/x@host", "user:hunter2?x@host",
		"host?key=hunter2", "host#hunter2", "https://user:hunter2@host", "https://user:hunter2@", "https://host?key=hunter2",
		"https:///path?key=hunter2", "https://user:%hunter2@host", "ftp://user:hunter2@host", "wss://user:hunter2@host",
	} {
		_, err := ParseAddress(address)
		explained(t, err, "the address of the service ", "")
	}
}
