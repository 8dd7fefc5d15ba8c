package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hubbub/localserver"
	"hubbub/protocol"
	"hubbub/protocol/conform"
)

// playRules plays rules against a server; change adds to the options.
func playRules(t *testing.T, client protocol.ClientOptions, o conform.Options) []conform.Result {
	t.Helper()
	client.APIKey = checkKey
	c, err := protocol.NewClient(client)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	o.Client, o.Key = c, checkKey
	if o.Slack == 0 {
		o.Slack = patience // the machine may be busy
	}
	if o.Speech == nil {
		o.Speech = make([]float32, 10*protocol.ChunkSamples)
	}
	results, err := conform.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// The built-in server holds every rule, and so does one with faults that are
// none of the contract's.
func TestBuiltInConforms(t *testing.T) {
	t.Parallel()
	speech, err := demoSpeech(context.Background(), conformSeconds)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	server, err := localserver.Start(context.Background(), localserver.Options{Addr: "127.0.0.1:0", APIKeys: []string{checkKey}, DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Shutdown(context.Background()) })
	key := func(account, plan string, before, life time.Duration) string { // made a while before
		k, err := localserver.CreateKey(dir, localserver.KeySpec{Account: account, Plan: plan, Expires: life}, time.Now().Add(-before))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	results := playRules(t, protocol.ClientOptions{BaseURL: server.URL(), CACert: server.CAPEM()}, conform.Options{
		Speech: speech, Many: true, OtherKey: key("other", "pro", 0, time.Hour), UnpaidKey: key("poor", "none", 0, time.Hour), ExpiredKey: key("old", "pro", 2*time.Hour, time.Hour),
	})
	for _, r := range results {
		skips := r.Slow || r.Name == "media/retention"
		if want := map[bool]conform.Verdict{true: conform.Skipped, false: conform.Holds}[skips]; r.Verdict != want || r.Seen == "" {
			t.Errorf("%s %s: %s", r.Verdict, r.Name, r.Seen)
		}
	}
}

// What the built-in server does wrong on purpose is seen by the rule about it.
func TestConformSeesFaults(t *testing.T) {
	speech, err := demoSpeech(context.Background(), 7)
	if err != nil {
		t.Fatal(err)
	}
	for faults, want := range map[string][]string{
		"duplicate-events hostile-labels": {"events/labels", "events/one-turn"},
		"drop-events=1 no-close":          {"events/speech", "stream/end"},
		"end-before-start unknown-type":   {"events/length", "events/order", "events/types"},
		"future-events broken-json":       {"events/received", "events/shape"},
		"out-of-order chunk-size=10":      {"events/order", "events/pairs", "stream/chunk"},
		"zero-length event-lag=3s":        {"events/length", "stream/end"},
		"unknown-speaker close=1011@4s":   {"events/pairs", "status/done", "stream/chunk", "stream/end"},
		"extra-fields slow=2s,on=status":  {},
		"refuse-handshake":                {"token/opens"},
		"429":                             {"live/create"},
		"402,on=media-output":             {"media/not-stored"},
		"web-page":                        {"live/create"},
	} {
		t.Run(faults, func(t *testing.T) {
			t.Parallel()
			server := serveFaulty(t, strings.Fields(faults)...)
			only := want // of a fault of requests
			if strings.Contains(strings.Join(want, " "), "events/") || len(want) == 0 {
				only = append([]string{"events", "stream/chunk", "stream/end", "status/done"}, want...)
			}
			o := conform.Options{Only: only, Speech: speech}
			if strings.Contains(faults, "lag") {
				o.Slack = time.Millisecond // late is what it is to be
			}
			results := playRules(t, protocol.ClientOptions{BaseURL: server.URL(), CACert: server.CAPEM()}, o)
			got := []string{}
			for _, r := range results {
				if r.Verdict == conform.Differs {
					got = append(got, r.Name)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("differs: %q, want %q", got, want)
				for _, r := range results {
					t.Logf("%-11s %-24s %s", r.Verdict, r.Name, r.Seen)
				}
			}
		})
	}
}

// twist is something that a service does wrong with answers: those to a method
// and a path, with a status.
type twist struct {
	method, path string // path: a pattern
	from         int    // 0 = any
	to           int    // 0 = as it was
	body         func(string) string
	header       [2]string // "" as value removes it
	request      func(*http.Request)
}

func always(s string) func(string) string { return func(string) string { return s } }

func swap(pattern, with string) func(string) string {
	re := regexp.MustCompile(pattern)
	return func(s string) string { return re.ReplaceAllString(s, with) }
}

// twisted is a server behind something that gets one thing wrong.
func twisted(t *testing.T, backend string, w twist) string {
	t.Helper()
	to, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	path := regexp.MustCompile("^" + w.path + "$")
	meant := func(r *http.Request) bool {
		return (w.method == "" || w.method == r.Method) && (w.path == "" || path.MatchString(r.URL.Path))
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(res *http.Response) error {
		if !meant(res.Request) || w.from != 0 && w.from != res.StatusCode || res.StatusCode == http.StatusSwitchingProtocols {
			return nil
		}
		if w.to != 0 {
			res.StatusCode, res.Status = w.to, ""
		}
		if w.header[0] != "" {
			res.Header.Del(w.header[0])
			if w.header[1] != "" {
				res.Header.Set(w.header[0], w.header[1])
			}
		}
		if w.body != nil {
			raw, err := io.ReadAll(res.Body)
			if err != nil {
				return err
			}
			out := w.body(string(raw))
			res.Body = io.NopCloser(strings.NewReader(out))
			res.ContentLength = int64(len(out))
			res.Header.Set("Content-Length", strconv.Itoa(len(out)))
		}
		return nil
	}
	front := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if w.request != nil && meant(r) {
			w.request(r)
		}
		proxy.ServeHTTP(out, r)
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// newBody gives a request another body.
func newBody(r *http.Request, body string) {
	r.Body = io.NopCloser(strings.NewReader(body))
	r.ContentLength = int64(len(body))
}

// Each thing that the HTTP side of a service can do wrong is seen by its rule.
// That a rule holds where nothing is wrong is TestBuiltInConforms.
func TestConformSeesWhatIsWrong(t *testing.T) {
	server, err := localserver.Start(context.Background(), localserver.Options{Addr: "127.0.0.1:0", APIKeys: []string{checkKey},
		TLS: localserver.TLSConfig{Mode: localserver.TLSOff}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
	})
	withKey := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+checkKey) }
	// A handshake that should be refused opens a stream that was just made.
	anyToken := func(r *http.Request) {
		made, err := http.NewRequest("POST", server.URL()+"/v1/live", nil)
		if err != nil {
			return
		}
		withKey(made)
		res, err := http.DefaultClient.Do(made)
		if err != nil {
			return
		}
		defer res.Body.Close()
		var live protocol.LiveStream
		if json.NewDecoder(res.Body).Decode(&live) == nil {
			if u, err := url.Parse(live.URL); err == nil {
				r.URL.Path, r.URL.RawQuery = u.Path, u.RawQuery
			}
		}
	}
	const live, status, stream, input, output, objects = "/v1/live", "/v1/live/[^/]+", "/v1/stream/.*", "/v1/media/input", "/v1/media/output", "/v1/media/objects/.*"
	plain := func(r *http.Request) { // names as if they were paths
		raw, _ := io.ReadAll(r.Body)
		newBody(r, strings.ReplaceAll(strings.ReplaceAll(string(raw), "//b", "/b"), "/./", "/"))
	}
	puts := 0
	wrong := map[string]twist{
		"test/body":    {path: "/v1/test", body: always(`{"status":5,"message":"x"}`)},
		"test/success": {path: "/v1/test", to: 202},
		"keys/needed":  {path: live, request: withKey},
		"keys/missing": {from: 401, header: [2]string{"WWW-Authenticate", ""}},
		"keys/malformed": {path: "/v1/test", request: func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "Token", "Bearer", 1))
		}},
		"keys/unknown": {path: live, from: 401, to: 403},
		"keys/expired": {path: "/v1/test", request: withKey},
		"keys/unpaid":  {},
		"live/create":  {path: live, body: swap(`"url"`, `"address"`)},
		"live/success": {method: "POST", path: live, to: 201},
		"live/id":      {path: live, body: swap(`"id":"[^"]+"`, `"id":"17"`)},
		"live/address": {path: live, body: swap(`\?token=`, "?key=")},
		"live/token":   {path: live, body: swap(`token=[^"]+`, "token=12345678")},
		"live/empty-body": {method: "POST", path: live, request: func(r *http.Request) {
			if raw, _ := io.ReadAll(r.Body); len(raw) == 0 {
				newBody(r, "[]")
			} else {
				newBody(r, string(raw))
			}
		}},
		"live/input":         {path: status, body: swap(`"input":\{.*\},"status"`, `"input":{},"status"`)},
		"live/array":         {method: "POST", path: live, request: func(r *http.Request) { newBody(r, "{}") }},
		"live/invalid-json":  {method: "POST", path: live, from: 400, body: always(`{"message":"no"}`)},
		"live/unknown":       {path: status, from: 404, to: 400},
		"live/foreign":       {},
		"status/shape":       {path: status, body: swap(`"input":\{\}`, `"input":"{}"`)},
		"status/success":     {path: status, from: 200, to: 203},
		"status/created":     {path: status, body: swap(`"created"`, `"new"`)},
		"status/null":        {path: status, body: swap(`"startedAt":null,`, ``)},
		"status/running":     {path: status, body: swap(`"running"`, `"open"`)},
		"status/done":        {path: status, body: swap(`"done"`, `"completed"`)},
		"status/left":        {path: status, body: swap(`"done"`, `"error"`)},
		"status/lost":        {path: status, body: swap(`"error"`, `"done"`)},
		"status/times":       {path: status, body: swap(`(\d\d:\d\d:\d\d)Z`, "$1+00:00")},
		"token/opens":        {path: stream, request: func(r *http.Request) { r.URL.RawQuery = "" }},
		"token/once":         {path: stream, request: anyToken},
		"token/used":         {path: stream, from: 401, to: 403},
		"token/wrong":        {path: stream, from: 401, body: always("no")},
		"token/other-stream": {path: stream, request: anyToken},
		"token/race":         {path: stream, request: anyToken},
		"media/pattern":      {path: output, from: 400, to: 404},
		"media/required":     {path: output, from: 400, body: swap("field", "name")},
		"media/length":       {path: output, request: func(r *http.Request) { newBody(r, `{"url":"media://nothing"}`) }},
		"media/output":       {path: output, from: 201, to: 200},
		"media/not-stored":   {path: output, from: 404, header: [2]string{"Content-Type", "text/plain"}},
		"media/input":        {path: input, from: 201, to: 200},
		"media/input-body":   {path: input, from: 400, to: 422},
		"media/put":          {method: "PUT", to: 403},
		"media/get":          {method: "GET", path: objects, body: swap("^hubbub", "HUBBUB")},
		"media/one-method":   {method: "DELETE", path: objects, to: 204},
		"media/signed":       {path: objects, from: 403, to: 200},
		"media/names":        {path: "/v1/media/(in|out)put", request: plain},
		"media/replace": {method: "PUT", path: objects, request: func(r *http.Request) {
			if puts++; puts == 2 {
				newBody(r, "third")
			}
		}},
		"media/foreign":     {},
		"results/turns":     {method: "GET", path: objects, body: always("SPEAKER live 1 0.000 1.000 <NA> <NA> SPEAKER_00 <NA> <NA>\n")},
		"results/json":      {method: "GET", path: objects, body: always("[{}]")},
		"results/not-yet":   {path: output, from: 404, to: 410},
		"errors/api-error":  {path: status, from: 404, body: swap(`"requestId":"[^"]+",`, "")},
		"errors/request-id": {path: status, from: 404, header: [2]string{"X-Request-Id", "17"}},
		"errors/not-found":  {path: "/v1/nothing", body: always("404 page not found")},
		"errors/method":     {from: 405, to: 404},
		"errors/too-large":  {path: live, from: 413, to: 500},
		"beside/openapi":    {path: "/openapi.json", body: swap(`"/v1/live/\{id\}"`, `"/v1/live/{name}"`)},
		"beside/healthz":    {path: "/healthz", to: 204},
		"beside/readyz":     {path: "/readyz", to: 503},
		"beside/metrics":    {path: "/metrics", body: always("all is well\n")},
		"rate/headers":      {path: live, header: [2]string{"X-RateLimit-Remaining", "many"}},
		"rate/limit":        {path: "/v1/test", header: [2]string{"X-RateLimit-Limit", "60"}},
	}
	for _, r := range conform.Rules() { // the rest have their tests beside them
		group, _, _ := strings.Cut(r.Name, "/")
		if _, ok := wrong[r.Name]; !ok && group != "stream" && group != "events" && !r.Slow && r.Name != "media/retention" {
			t.Errorf("nothing shows that %s can differ", r.Name)
		}
	}
	for rule, w := range wrong {
		t.Run(rule, func(t *testing.T) {
			results := playRules(t, protocol.ClientOptions{BaseURL: twisted(t, server.URL(), w)},
				conform.Options{Only: []string{rule}, OtherKey: checkKey, UnpaidKey: checkKey, ExpiredKey: "expired-long-ago"})
			if len(results) != 1 || results[0].Verdict != conform.Differs {
				t.Errorf("%+v", results)
			}
		})
	}
	// What need not be offered, and is not.
	for rule, w := range map[string]twist{
		"beside/metrics": {path: "/metrics", to: 404}, "media/put": {path: input, to: 404}, "errors/too-large": {path: live, from: 413, to: 200},
		"rate/headers": {request: func(r *http.Request) { r.URL.Path = "/healthz" }},
	} {
		results := playRules(t, protocol.ClientOptions{BaseURL: twisted(t, server.URL(), w)}, conform.Options{Only: []string{rule}})
		if len(results) != 1 || results[0].Verdict != conform.NotOffered {
			t.Errorf("%s: %+v", rule, results)
		}
	}
}

// Two processes: a server that misbehaves, and the play that sees it.
func TestConformProgram(t *testing.T) {
	t.Parallel()
	server := start(t, "serve", "--listen", "127.0.0.1:0", "--tls", "off", "--api-key", checkKey, "--fault", "404,on=status")
	address := strings.TrimPrefix(server.line("^ready "), "ready ")
	p := start(t, "conform", "--server", address, "--api-key", checkKey, "--only", "test", "--only", "status/created", "--only", "status/shape", "--output", "json")
	if code := p.exit(); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var report conform.Report
	if err := json.Unmarshal(p.stdout.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if report.OK || report.Summary["differs"] != 2 || report.Summary["holds"] != 2 || report.Server != address {
		t.Errorf("%+v", report)
	}
	for _, r := range report.Rules {
		if r.Verdict == conform.Differs && (!strings.Contains(r.Seen, "answered 404") || r.Source == "" || r.Expected == "") {
			t.Errorf("%+v", r)
		}
	}
	if text := p.stderr.String(); !strings.HasPrefix(text, "hubbub: 2 of 4 rules differ\n") || bytes.Contains(p.stdout.Bytes(), []byte(checkKey)) {
		t.Errorf("%s%s", text, fmt.Sprint(report))
	}
}
