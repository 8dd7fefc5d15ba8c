package localserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// contract holds answers against openapi.json.
type contract struct {
	t       *testing.T
	doc     map[string]any
	schemas *jsonschema.Compiler
	seen    map[string]bool // "METHOD path status"
}

func newContract(t *testing.T, raw []byte) *contract {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := &contract{t: t, doc: doc.(map[string]any), schemas: jsonschema.NewCompiler(), seen: map[string]bool{}}
	c.schemas.DefaultDraft(jsonschema.Draft2020) // that of OpenAPI 3.1
	if err := c.schemas.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	return c
}

// at follows a path of names into the document, and references on the way.
func (c *contract) at(names ...string) (any, bool) {
	var node any = c.doc
	for _, name := range names {
		m, ok := node.(map[string]any)
		if !ok {
			return nil, false
		}
		if node, ok = m[name]; !ok {
			return nil, false
		}
		if ref, ok := node.(map[string]any)["$ref"].(string); ok && name != "schema" {
			if node, ok = c.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...); !ok {
				c.t.Fatalf("%s leads nowhere", ref)
			}
		}
	}
	return node, true
}

// matches holds a value against the schema at a pointer.
func (c *contract) matches(what string, value any, names ...string) {
	c.t.Helper()
	for i, n := range names {
		names[i] = url.PathEscape(strings.ReplaceAll(strings.ReplaceAll(n, "~", "~0"), "/", "~1"))
	}
	schema, err := c.schemas.Compile("openapi.json#/" + strings.Join(names, "/"))
	if err != nil {
		c.t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		c.t.Errorf("%s: %v", what, err)
	}
}

// ownHeaders are those that say something of the service and must be
// documented wherever they come up.
func ownHeader(name string) bool {
	return strings.HasPrefix(name, "X-Request") || strings.HasPrefix(name, "X-Rate") ||
		slices.Contains([]string{"Retry-After", "Www-Authenticate", "Etag", "Accept-Ranges", "Content-Range"}, name)
}

// holds checks one answer: that its status is documented, that it has the
// headers that are, and a body of the shape that is.
func (c *contract) holds(method, path string, res reply) {
	c.t.Helper()
	method = strings.ToLower(method)
	status := fmt.Sprint(res.StatusCode)
	name := fmt.Sprintf("%s %s %s", method, path, status)
	c.seen[name] = true
	at := []string{"paths", path, method, "responses", status}
	if _, ok := c.at(at...); !ok {
		c.t.Errorf("%s is not documented: %s", name, res.body)
		return
	}
	documented := map[string]bool{}
	if headers, ok := c.at(append(at, "headers")...); ok {
		for header, spec := range headers.(map[string]any) {
			documented[http.CanonicalHeaderKey(header)] = true
			pointer := append(slices.Clone(at), "headers", header)
			if ref, ok := spec.(map[string]any)["$ref"].(string); ok {
				pointer = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
			}
			h, _ := c.at(pointer...)
			value := res.Header.Get(header)
			if _, there := res.Header[http.CanonicalHeaderKey(header)]; !there {
				if h.(map[string]any)["required"] == true {
					c.t.Errorf("%s has no %s", name, header)
				}
				continue
			}
			c.matches(name+" "+header, value, append(pointer, "schema")...)
		}
	}
	for header := range res.Header {
		if ownHeader(header) && !documented[header] {
			c.t.Errorf("%s has an undocumented %s", name, header)
		}
	}
	content, ok := c.at(append(at, "content")...)
	if !ok {
		if len(res.body) != 0 {
			c.t.Errorf("%s has an undocumented body %s", name, res.body)
		}
		return
	}
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	spec, ok := content.(map[string]any)[kind].(map[string]any)
	if !ok {
		c.t.Errorf("%s: content type %q is not documented", name, kind)
		return
	}
	if spec["schema"] == nil {
		return
	}
	var value any = string(res.body)
	if kind == "application/json" {
		var err error
		if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(res.body)); err != nil {
			c.t.Errorf("%s: %v", name, err)
			return
		}
	}
	c.matches(name, value, append(slices.Clone(at), "content", kind, "schema")...)
}

// unseen are the answers that a test cannot come by: they need half a minute
// of silence, or a fault between two calls.
var unseen = []string{
	"post /v1/live 408", "post /v1/media/input 408", "post /v1/media/output 408", "put /v1/media/objects/{sealed} 408",
	"get /v1/test 500", "post /v1/live 500", "post /v1/media/input 500", "post /v1/media/output 500",
	"put /v1/media/objects/{sealed} 500", "get /v1/media/objects/{sealed} 500", "head /v1/media/objects/{sealed} 500",
	"head /v1/media/objects/{sealed} 429",
}

// The document is true: of every operation every answer that can be brought
// about is as it says, and nothing comes that it does not know of.
func TestAnswersAreAsDocumented(t *testing.T) {
	dir := t.TempDir()
	h := serve(t, limitOf(0), func(o *Options) { o.DataDir, o.MaxStreams, o.MaxMedia = dir, 1, 1<<10 })
	c := newContract(t, h.do("GET", "/openapi.json", "", nil).body)
	none := mustKey(t, dir, "none", PlanNone, time.Hour, time.Now())
	do := func(method, path, at, key, body string, want int) reply {
		t.Helper()
		if at == "" {
			at = path
		}
		res := h.do(method, at, key, strings.NewReader(body))
		if res.StatusCode != want {
			t.Errorf("%s %s: %d, want %d: %s", method, at, res.StatusCode, want, res.body)
		}
		c.holds(method, path, res)
		return res
	}
	const objects, status, opened, watched = "/v1/media/objects/{sealed}", "/v1/live/{id}", "/v1/stream/{id}", "/v1/live/{id}/events"
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json"} {
		do("GET", path, "", "", "", 200)
	}
	do("GET", "/v1/test", "", testKey, "", 200)
	for _, o := range []struct{ method, path, at string }{{"GET", "/v1/test", ""}, {"POST", "/v1/live", ""}, {"GET", status, "/v1/live/x"}, {"POST", "/v1/media/input", ""}, {"POST", "/v1/media/output", ""}} {
		do(o.method, o.path, o.at, "wrong", "", 401)
		if o.path != "/v1/test" {
			do(o.method, o.path, o.at, none, "", 402)
		}
		if o.method == "POST" {
			do(o.method, o.path, o.at, testKey, "[", 400)
			do(o.method, o.path, o.at, testKey, strings.Repeat(" ", maxBody+1), 413)
		}
	}

	// A stream, from its creation to its results.
	waiting := h.create()
	l := h.create()
	c.holds("GET", status, h.do("GET", "/v1/live/"+l.ID, testKey, nil))
	do("GET", status, "/v1/live/x", testKey, "", 404)
	conn, res, err := h.dial.Dial(l.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.holds("GET", opened, reply{Response: res})
	do("POST", "/v1/live", "", testKey, "", 429) // one stream is all there may be
	_, res, _ = h.dial.Dial(waiting.URL, nil)
	c.holds("GET", opened, read(t, res))
	s := &stream{Conn: conn, t: t}
	s.chunks(1)
	_ = s.WriteMessage(websocket.BinaryMessage, quiet[1:])
	s.end()
	kinds := map[string]int{}
	for {
		_, raw, err := conn.ReadMessage()
		if err != nil {
			break
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		c.matches("message "+string(raw), value, "components", "schemas", "StreamMessage")
		kinds[value.(map[string]any)["type"].(string)]++
	}
	_ = conn.Close()
	if len(kinds) != 3 {
		t.Errorf("messages %v", kinds)
	}
	eventually(t, "done", func() bool {
		time.Sleep(100 * time.Millisecond) // there is a limit
		return strings.Contains(string(do("GET", status, "/v1/live/"+l.ID, testKey, "", 200).body), `"done"`)
	})
	c.holds("POST", "/v1/live", h.do("POST", "/v1/live", testKey, nil))
	_, res, _ = h.dial.Dial(l.URL, nil)
	c.holds("GET", opened, read(t, res)) // 401
	do("GET", opened, "/v1/stream/x?token=y", "", "", 426)
	r, _ := http.NewRequest("GET", h.URL()+"/v1/stream/x?token=y", nil)
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "short"} {
		r.Header.Set(name, value)
	}
	c.holds("GET", opened, h.send(r)) // 400

	// Following a stream.
	watch, res, err := h.dial.Dial(h.watchAddress(l.ID, ""), bearerOf(testKey))
	if err != nil {
		t.Fatal(err)
	}
	c.holds("GET", watched, reply{Response: res})
	kinds = map[string]int{}
	for {
		_, raw, err := watch.ReadMessage()
		if err != nil {
			break
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		c.matches("message "+string(raw), value, "components", "schemas", "WatchMessage")
		kinds[value.(map[string]any)["type"].(string)]++
	}
	_ = watch.Close()
	if len(kinds) != 3 {
		t.Errorf("messages to a watcher %v", kinds)
	}
	watchRefused := func(id, query, key string, want int) {
		t.Helper()
		_, res, _ := h.dial.Dial(h.watchAddress(id, query), bearerOf(key))
		if res == nil || res.StatusCode != want {
			t.Errorf("watching %s%s: %v, want %d", id, query, res, want)
			return
		}
		c.holds("GET", watched, read(t, res))
	}
	watchRefused(l.ID, "?from=x", testKey, 400)
	watchRefused(l.ID, "", "wrong", 401)
	watchRefused(l.ID, "", none, 402)
	watchRefused("x", "", testKey, 404)
	do("GET", watched, "/v1/live/x/events", testKey, "", 426)
	h.watchers.limit = 0
	watchRefused(l.ID, "", testKey, 429)
	h.watchers.limit = 1

	// Media.
	location := func(res reply) string {
		var m struct{ URL string }
		_ = json.Unmarshal(res.body, &m)
		u, err := url.Parse(m.URL)
		if err != nil {
			t.Fatal(err)
		}
		return u.Path
	}
	in := location(do("POST", "/v1/media/input", "", testKey, `{"url":"media://x"}`, 201))
	do("POST", "/v1/media/output", "", testKey, `{"url":"media://x"}`, 404)
	do("PUT", objects, in, "", "0123456789", 200)
	do("PUT", objects, in, "", strings.Repeat("x", 2<<10), 413)
	out := location(do("POST", "/v1/media/output", "", testKey, `{"url":"media://x"}`, 201))
	gone := mediaPath + h.signer.seal(grant{method: "GET", account: DefaultAccount, name: "gone", expires: time.Now().Add(time.Hour)})
	for _, method := range []string{"GET", "HEAD"} {
		for _, o := range []struct {
			at, header, value string
			want              int
		}{{out, "", "", 200}, {out, "Range", "bytes=2-4", 206}, {out, "Range", "bytes=10-", 416}, {in, "", "", 403}, {gone, "", "", 404}} {
			r, _ := http.NewRequest(method, h.URL()+o.at, nil)
			if o.header != "" {
				r.Header.Set(o.header, o.value)
			}
			res := h.send(r)
			if res.StatusCode != o.want {
				t.Errorf("%s %s: %d, want %d", method, o.value, res.StatusCode, o.want)
			}
			c.holds(method, objects, res)
			if o.want == 200 {
				r.Header.Set("If-None-Match", res.Header.Get("ETag"))
				c.holds(method, objects, h.send(r)) // 304
			}
		}
	}
	r, _ = http.NewRequest("GET", h.URL()+out, nil)
	r.Header.Set("Range", "bytes=1-2,4-5")
	c.holds("GET", objects, h.send(r))
	do("PUT", objects, out, "", "", 403)
	for _, file := range []string{"turns.rttm", "turns.json"} {
		do("GET", objects, location(do("POST", "/v1/media/output", "", testKey, `{"url":"media://live/`+l.ID+`/`+file+`"}`, 201)), "", "", 200)
	}
	broken, _ := http.NewRequest("PUT", h.URL()+in, nil)
	c.holds("PUT", objects, h.brokenOff(broken.URL)) // 400
	for range maxTransfers {
		h.transfers.enter(DefaultAccount)
	}
	do("GET", objects, out, "", "", 429)
	do("PUT", objects, in, "", "", 429)
	for range maxTransfers {
		h.transfers.leave(DefaultAccount)
	}

	// Too many requests, of every operation.
	for _, o := range []struct{ method, path, at string }{{"GET", "/v1/test", ""}, {"POST", "/v1/live", ""}, {"GET", status, "/v1/live/x"}, {"GET", watched, "/v1/live/x/events"}, {"POST", "/v1/media/input", ""}, {"POST", "/v1/media/output", ""}} {
		at := o.at
		if at == "" {
			at = o.path
		}
		for range DefaultRatePerMinute {
			if h.do(o.method, at, none, nil).StatusCode == 429 {
				break
			}
		}
		do(o.method, o.path, o.at, none, "", 429)
	}

	// Without the store, and while the server stops.
	if err := h.store.Close(); err != nil {
		t.Fatal(err)
	}
	do("GET", "/readyz", "", "", "", 503)
	do("POST", "/v1/live", "", testKey, "", 503)
	do("GET", status, "/v1/live/x", testKey, "", 503)
	do("POST", "/v1/media/output", "", testKey, `{"url":"media://x"}`, 503)
	do("GET", objects, out, "", "", 503)
	do("HEAD", objects, out, "", "", 503)
	do("PUT", objects, in, "", "x", 503)
	watchRefused(l.ID, "", testKey, 503)
	_, res, _ = h.dial.Dial(waiting.URL, nil)
	c.holds("GET", opened, read(t, res))
	h.Server.sessions = nil // a call on it panics
	do("GET", status, "/v1/live/x", testKey, "", 500)
	_, res, _ = h.dial.Dial(waiting.URL, nil)
	c.holds("GET", opened, read(t, res))
	watchRefused(l.ID, "", testKey, 500)

	h.limiter.shared = true // as on a cluster
	do("GET", "/v1/test", "", testKey, "", 503)
	do("POST", "/v1/media/input", "", testKey, `{"url":"media://x"}`, 503)

	for path, item := range c.doc["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			if method == "parameters" {
				continue
			}
			for status := range operation.(map[string]any)["responses"].(map[string]any) {
				if name := method + " " + path + " " + status; !c.seen[name] && !slices.Contains(unseen, name) {
					t.Errorf("%s is documented and was not seen", name)
				}
			}
		}
	}
}

// Every pattern of the router is in the document, and nothing else is.
func TestDocumentNamesEveryRoute(t *testing.T) {
	h := serve(t)
	c := newContract(t, openAPI)
	if v, _ := c.doc["openapi"].(string); v != "3.1.0" {
		t.Errorf("OpenAPI %q", v)
	}
	for path, item := range c.doc["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			if method == "parameters" {
				continue
			}
			at := strings.NewReplacer("{id}", "x", "{sealed}", "x").Replace(path)
			if res := h.do(strings.ToUpper(method), at, "", nil); res.StatusCode == 405 || res.StatusCode == 404 {
				t.Errorf("%s %s is documented and answers %d", method, path, res.StatusCode)
			}
		}
	}
	for pattern := range h.patterns() {
		method, path, _ := strings.Cut(pattern, " ")
		if _, ok := c.at("paths", path, strings.ToLower(method)); !ok {
			t.Errorf("%s is not documented", pattern)
		}
	}
}
