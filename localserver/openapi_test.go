package localserver

import (
	"bytes"
	"context"
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

	"hubbub/localserver/apikeys"
	"hubbub/localserver/limits"
	"hubbub/localserver/store"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// untested are the responses that a test cannot cause: they need half a minute of
// silence, or a fault between two calls.
var untested = []string{
	"post /v1/live 408", "post /v1/media/input 408", "post /v1/media/output 408", "put /v1/media/objects/{sealed} 408",
	"get /v1/test 500", "post /v1/live 500", "post /v1/media/input 500", "post /v1/media/output 500",
	"get /v1/media 500", "delete /v1/media 500",
	"put /v1/media/objects/{sealed} 500", "get /v1/media/objects/{sealed} 500", "head /v1/media/objects/{sealed} 500",
	"head /v1/media/objects/{sealed} 429",
	"post /v1/diarize 408", "post /v1/voiceprint 408", "post /v1/identify 408",
	"post /v1/diarize 500", "post /v1/voiceprint 500", "post /v1/identify 500",
	"get /v1/jobs/{id} 500", "delete /v1/jobs/{id} 500", "get /v2/jobs 500",
}

// operations are those that need an API key, each with an address.
var operations = []struct{ method, at string }{
	{"GET", "/v1/test"}, {"POST", "/v1/live"}, {"GET", "/v1/live/x"}, {"GET", "/v1/live/x/events"},
	{"POST", "/v1/media/input"}, {"GET", "/v1/media"}, {"DELETE", deletePath("media://x")}, {"POST", "/v1/media/output"},
	{"POST", "/v1/diarize"}, {"POST", "/v1/voiceprint"}, {"POST", "/v1/identify"},
	{"GET", "/v1/jobs/x"}, {"DELETE", "/v1/jobs/x"}, {"GET", "/v2/jobs"},
}

// documented is a server whose responses are compared with its document. Its
// steps build on each other.
type documented struct {
	*host
	*contract
	routes  *http.ServeMux
	none    string // an API key without subscription
	waiting string // the address of a stream that nobody opens
	ended   protocol.LiveStream
	in, out string // addresses of media://x
}

// ask sends a request to an address.
func (d *documented) ask(method, at, key, body string, want int) reply {
	d.host.t.Helper()
	res := d.do(method, at, key, strings.NewReader(body))
	d.responds(method, at, res, want)
	return res
}

// responds compares a response with the document.
func (d *documented) responds(method, at string, res reply, want int) {
	d.host.t.Helper()
	res.hasStatus(d.host.t, method+" "+at, want)
	_, pattern := d.routes.Handler(testkit.Must(http.NewRequest(method, at, nil))(d.host.t))
	_, path, _ := strings.Cut(pattern, " ")
	d.holds(method, path, res)
}

// location is the path of the address in a response.
func (d *documented) location(res reply) string {
	d.host.t.Helper()
	var m protocol.MediaLocation
	_ = json.Unmarshal(res.body, &m)
	u := testkit.Must(url.Parse(m.URL))(d.host.t)
	return u.Path
}

// refusedHandshake compares the response to a handshake that fails.
func (d *documented) refusedHandshake(address, key string, want int) {
	d.host.t.Helper()
	d.responds("GET", address, d.refusal(address, bearerOf(key)), want)
}

// messages compares all messages of a connection, which are of three types.
func (d *documented) messages(conn *clientConn, schema string) {
	d.host.t.Helper()
	types := map[string]int{}
	for {
		_, raw, err := conn.ReadMessage()
		if err != nil {
			break
		}
		value := testkit.Must(jsonschema.UnmarshalJSON(bytes.NewReader(raw)))(d.host.t)
		d.matches("message "+string(raw), value, "components", "schemas", schema)
		types[value.(map[string]any)["type"].(string)]++
	}
	_ = conn.Close()
	if len(types) != 3 {
		d.host.t.Errorf("messages %v", types)
	}
}

// The document is true: every response of every operation that can be caused is
// as documented, and no other response occurs.
func TestResponsesAreAsDocumented(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := serve(t, limitOf(0), func(o *setup) { o.DataDir, o.MaxStreams, o.MaxMedia, o.Jobs = dir, 1, 1<<10, -1 })
	d := &documented{host: h, contract: newContract(t, h.do("GET", "/openapi.json", "", nil).body), routes: http.NewServeMux(),
		none: mustKey(t, dir, "none", apikeys.PlanNone, time.Now())}
	for pattern, handler := range h.patterns() {
		d.routes.Handle(pattern, handler)
	}
	for _, step := range []struct {
		name string
		test func(*documented)
	}{
		{"service", (*documented).service}, {"keys and bodies", (*documented).keysAndBodies}, {"long addresses", (*documented).longAddresses},
		{"stream", (*documented).stream}, {"handshakes", (*documented).handshakes}, {"watching", (*documented).watching},
		{"media", (*documented).mediaResponses}, {"downloads", (*documented).downloads}, {"jobs", (*documented).jobResponses}, {"transfer limits", (*documented).transferLimits},
		{"rate limits", (*documented).rateLimits}, {"without the store", (*documented).withoutStore}, {"complete", (*documented).complete},
	} {
		t.Run(step.name, func(t *testing.T) {
			d.host.t, d.contract.t = t, t
			step.test(d)
		})
	}
	d.host.t, d.contract.t = t, t
}

func (d *documented) service() {
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json"} {
		d.ask("GET", path, "", "", 200)
	}
	d.ask("GET", "/v1/test", testKey, "", 200)
	r, _ := http.NewRequest("GET", d.URL()+"/metrics", nil)
	r.Host = "foreign.example"
	d.responds("GET", "/metrics", d.send(r), 421)
}

func (d *documented) keysAndBodies() {
	for _, o := range operations {
		if strings.HasSuffix(o.at, "/events") {
			continue // a handshake
		}
		d.ask(o.method, o.at, "wrong", "", 401)
		unpaid := 402
		if o.at == "/v1/test" {
			unpaid = 200
		}
		d.ask(o.method, o.at, d.none, "", unpaid)
		if o.method == "POST" {
			d.ask(o.method, o.at, testKey, "[", 400)
			d.ask(o.method, o.at, testKey, strings.Repeat(" ", maxLiveBody+1), 413)
		}
	}
}

func (d *documented) longAddresses() {
	long := strings.Repeat("A", maxTarget)
	for _, method := range []string{"GET", "HEAD", "PUT"} {
		d.ask(method, mediaPath+long, "", "", 414)
	}
	d.ask("GET", streamPath+long, "", "", 414)
	for _, o := range operations {
		d.ask(o.method, o.at+"?"+long, testKey, "", 414)
	}
}

// stream follows a stream from its creation to its end.
func (d *documented) stream() {
	t := d.host.t
	d.waiting = d.create().URL
	d.ended = d.create()
	d.ask("GET", "/v1/live/"+d.ended.ID, testKey, "", 200)
	d.ask("GET", "/v1/live/x", testKey, "", 404)
	conn, res, err := d.dial.Dial(d.ended.URL, nil)
	testkit.NoError(t, err)
	d.responds("GET", d.ended.URL, reply{Response: res}, 101)
	d.ask("POST", "/v1/live", testKey, "", 429) // the limit is one stream
	d.refusedHandshake(d.waiting, "", 429)
	s := &testStream{clientConn: newClientConn(t, conn), t: t}
	s.chunks(1)
	_ = s.WriteMessage(websocket.BinaryMessage, quiet[1:])
	s.end()
	d.messages(s.clientConn, "StreamMessage")
	testkit.Eventually(t, "done", func() bool {
		time.Sleep(100 * time.Millisecond) // requests are limited
		return strings.Contains(string(d.ask("GET", "/v1/live/"+d.ended.ID, testKey, "", 200).body), `"done"`)
	})
	d.ask("POST", "/v1/live", testKey, "", 200)
}

func (d *documented) handshakes() {
	d.refusedHandshake(d.ended.URL, "", 401)
	d.ask("GET", "/v1/stream/x?token=y", "", "", 426)
	r, _ := http.NewRequest("GET", d.URL()+"/v1/stream/x?token=y", nil)
	r.Header = upgrade.Clone()
	r.Header.Set("Sec-WebSocket-Key", "short")
	d.responds("GET", "/v1/stream/x", d.send(r), 400)
}

func (d *documented) watching() {
	address := d.watchAddress(d.ended.ID, "")
	conn, res, err := d.dial.Dial(address, bearerOf(testKey))
	testkit.NoError(d.host.t, err)
	d.responds("GET", address, reply{Response: res}, 101)
	d.messages(newClientConn(d.host.t, conn), "WatchMessage")
	d.refusedHandshake(address+"?from=x", testKey, 400)
	d.refusedHandshake(address, "wrong", 401)
	d.refusedHandshake(address, d.none, 402)
	d.refusedHandshake(d.watchAddress("x", ""), testKey, 404)
	d.ask("GET", "/v1/live/x/events", testKey, "", 426)
	open := d.watchers
	d.watchers = limits.NewAdmission(0, 0)
	d.refusedHandshake(address, testKey, 429)
	d.watchers = open
}

func (d *documented) mediaResponses() {
	const x = `{"url":"media://x"}`
	d.ask("DELETE", deletePath("media://x"), testKey, "", 404)
	d.ask("DELETE", deletePath("x"), testKey, "", 400)
	d.ask("GET", "/v1/media?after=x", testKey, "", 400)
	d.in = d.location(d.ask("POST", "/v1/media/input", testKey, x, 201))
	d.ask("POST", "/v1/media/output", testKey, x, 404)
	d.ask("PUT", d.in, "", "deleted", 200)
	d.ask("DELETE", deletePath("media://x"), testKey, "", 204)
	d.in = d.location(d.ask("POST", "/v1/media/input", testKey, x, 201))
	d.ask("PUT", d.in, "", "0123456789", 200)
	d.ask("GET", "/v1/media", testKey, "", 200)
	d.ask("PUT", d.in, "", "again", 403)
	d.in = d.location(d.ask("POST", "/v1/media/input", testKey, x, 201))
	d.ask("PUT", d.in, "", strings.Repeat("x", 2<<10), 413)
	d.out = d.location(d.ask("POST", "/v1/media/output", testKey, x, 201))
	d.ask("PUT", d.out, "", "", 403)
	for _, file := range []string{"turns.rttm", "turns.json"} {
		body := fmt.Sprintf(`{"url":"media://live/%s/%s"}`, d.ended.ID, file)
		d.ask("GET", d.location(d.ask("POST", "/v1/media/output", testKey, body, 201)), "", "", 200)
	}
	broken, _ := url.Parse(d.URL() + d.in)
	d.responds("PUT", d.in, d.abortedUpload(broken), 400)
}

func (d *documented) downloads() {
	gone := mediaPath + d.signer.sign("GET", apikeys.DefaultAccount, "gone", time.Now().Add(time.Hour))
	get := func(method, at, header, value string, want int) reply {
		r, _ := http.NewRequest(method, d.URL()+at, nil)
		if header != "" {
			r.Header.Set(header, value)
		}
		res := d.send(r)
		d.responds(method, at, res, want)
		return res
	}
	for _, method := range []string{"GET", "HEAD"} {
		tag := get(method, d.out, "", "", 200).Header.Get("ETag")
		get(method, d.out, "If-None-Match", tag, 304)
		get(method, d.out, "Range", "bytes=2-4", 206)
		get(method, d.out, "Range", "bytes=10-", 416)
		get(method, d.out, "If-Match", `"other"`, 412)
		get(method, d.in, "", "", 403)
		get(method, gone, "", "", 404)
	}
	get("GET", d.out, "Range", "bytes=1-2,4-5", 206)
}

// jobResponses are those of a server whose jobs other nodes run.
func (d *documented) jobResponses() {
	const x = `{"url":"media://x"}`
	d.ask("POST", "/v1/voiceprint", testKey, x, 200)
	people, err := json.Marshal(map[string]any{"url": "media://x", "voiceprints": []any{map[string]any{"label": "Sam", "voiceprint": demoVoiceprint(d.host.t)}}})
	testkit.NoError(d.host.t, err)
	d.ask("POST", "/v1/identify", testKey, string(people), 200)
	var job protocol.JobAccepted
	testkit.NoError(d.host.t, json.Unmarshal(d.ask("POST", "/v1/diarize", testKey, x, 200).body, &job))
	d.ask("GET", "/v2/jobs?limit=1&progress=true", testKey, "", 200)
	d.ask("GET", "/v2/jobs?limit=101", testKey, "", 400)
	d.ask("GET", "/v1/jobs/"+job.JobID, testKey, "", 200)
	d.ask("GET", "/v1/jobs/"+unknownID, testKey, "", 404)
	d.ask("DELETE", "/v1/jobs/"+unknownID, testKey, "", 404)
	d.ask("DELETE", "/v1/jobs/"+job.JobID, testKey, "", 200)
	rec, revision, err := d.store.Job(context.Background(), apikeys.DefaultAccount, job.JobID, time.Now())
	testkit.NoError(d.host.t, err)
	rec.Status, rec.Error = store.JobFailed, "for the test"
	if _, err := d.store.UpdateJob(context.Background(), rec, revision); err != nil {
		d.host.t.Fatal(err)
	}
	d.ask("DELETE", "/v1/jobs/"+job.JobID, testKey, "", 409)
	d.ask("GET", "/v1/jobs/"+job.JobID, testKey, "", 200)
}

func (d *documented) transferLimits() {
	for range maxTransfers {
		_ = d.transfers.Acquire(apikeys.DefaultAccount)
	}
	d.ask("GET", d.out, "", "", 429)
	d.ask("PUT", d.in, "", "", 429)
	for range maxTransfers {
		d.transfers.Release(apikeys.DefaultAccount)
	}
}

func (d *documented) rateLimits() {
	for _, o := range operations {
		for range jobStatusFactor * DefaultRatePerMinute {
			if d.do(o.method, o.at, d.none, nil).StatusCode == 429 {
				break
			}
		}
		d.ask(o.method, o.at, d.none, "", 429)
	}
	d.refusedHandshake(d.watchAddress("x", ""), d.none, 429)
}

// withoutStore closes the store, and then lets its calls panic.
func (d *documented) withoutStore() {
	testkit.NoError(d.host.t, d.store.Close())
	watched := d.watchAddress(d.ended.ID, "")
	d.ask("GET", "/readyz", "", "", 503)
	d.ask("GET", "/healthz", "", "", 503)
	d.ask("POST", "/v1/live", testKey, "", 503)
	d.ask("GET", "/v1/live/"+unknownID, testKey, "", 503)
	d.ask("POST", "/v1/media/output", testKey, `{"url":"media://x"}`, 503)
	d.ask("GET", "/v1/media", testKey, "", 503)
	d.ask("DELETE", deletePath("media://x"), testKey, "", 503)
	d.ask("GET", d.out, "", "", 503)
	d.ask("HEAD", d.out, "", "", 503)
	d.ask("PUT", d.in, "", "x", 503)
	for _, path := range []string{"/v1/diarize", "/v1/voiceprint"} {
		d.ask("POST", path, testKey, `{"url":"media://x"}`, 503)
	}
	people := fmt.Sprintf(`{"url":"media://x","voiceprints":[{"label":"Sam","voiceprint":%q}]}`, demoVoiceprint(d.host.t))
	d.ask("POST", "/v1/identify", testKey, people, 503)
	d.ask("GET", "/v1/jobs/"+unknownID, testKey, "", 503)
	d.ask("DELETE", "/v1/jobs/"+unknownID, testKey, "", 503)
	d.ask("GET", "/v2/jobs", testKey, "", 503)
	d.refusedHandshake(watched, testKey, 503)
	d.refusedHandshake(d.waiting, "", 503)

	d.Server.records = nil
	d.ask("GET", "/v1/live/"+unknownID, testKey, "", 500)
	d.refusedHandshake(d.waiting, "", 500)
	d.refusedHandshake(watched, testKey, 500)

	d.rate = limits.NewRate(d.Server.store, time.Now, d.log) // as on a cluster
	d.ask("GET", "/v1/test", testKey, "", 503)
	d.ask("POST", "/v1/media/input", testKey, `{"url":"media://x"}`, 503)
}

// complete checks that every documented response was seen.
func (d *documented) complete() {
	for path, item := range d.doc["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			if method == "parameters" {
				continue
			}
			for status := range operation.(map[string]any)["responses"].(map[string]any) {
				if name := method + " " + path + " " + status; !d.seen[name] && !slices.Contains(untested, name) {
					d.host.t.Errorf("%s is documented and was not seen", name)
				}
			}
		}
	}
}

// Every pattern of the router is in the document. That nothing else is, is the last step of
// TestResponsesAreAsDocumented.
func TestDocumentNamesEveryRoute(t *testing.T) {
	t.Parallel()
	h := serve(t)
	c := newContract(t, openAPI)
	if v, _ := c.doc["openapi"].(string); v != "3.1.0" {
		t.Errorf("OpenAPI %q", v)
	}
	for pattern := range h.patterns() {
		method, path, _ := strings.Cut(pattern, " ")
		if _, ok := c.at("paths", path, strings.ToLower(method)); !ok {
			t.Errorf("%s is not documented", pattern)
		}
	}
}

// Turns with all that they can have are as documented.
func TestDocumentedTurns(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	testkit.NoError(t, writeTurns(&out, "", []protocol.Turn{{Speaker: "SPEAKER_00", Start: 1, End: 2, Match: "Anna", Text: "Good morning."}, {Speaker: "SPEAKER_01", Start: 2, End: 3}}))
	var turns any
	testkit.NoError(t, json.Unmarshal(out.Bytes(), &turns))
	newContract(t, openAPI).matches("turns.json", turns, "components", "schemas", "Turns")
}
