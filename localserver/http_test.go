package localserver

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"hubbub/protocol/testkit"
)

// A client that prefers HTTP/2 uses HTTP/1.1.
func TestClientWithHTTP2(t *testing.T) {
	t.Parallel()
	h := serve(t)
	h.http.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	if res := h.do("GET", "/v1/test", testKey, nil); res.StatusCode != 200 || res.ProtoMajor != 1 {
		t.Errorf("%d over %s", res.StatusCode, res.Proto)
	}
}

// The form of the credential; contract rules test which one opens.
func TestBearer(t *testing.T) {
	for text, want := range map[string]string{"Bearer k": "k", "bearer k": "k", "BEARER   k": "k", "Bearer a b": "a b",
		"": "", "Bearer": "", "Bearer ": "", "Basic k": "", "k": "", "Bearer\tk": ""} {
		if key, ok := bearer(http.Header{"Authorization": {text}}); ok != (want != "") || ok && key != want {
			t.Errorf("%q: %q, %v", text, key, ok)
		}
	}
	for _, several := range [][]string{nil, {"Bearer k", "Bearer k"}} {
		if _, ok := bearer(http.Header{"Authorization": several}); ok {
			t.Errorf("%q is accepted", several)
		}
	}
}

func TestUnknownPathsAndMethodsFailInJSON(t *testing.T) {
	t.Parallel()
	h := serve(t)
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/tests", "/v1/test/", "/v1/live/", "/v1/live/a/b", "/v1/media/",
		"/v1/media/objects", "/v1/media/objects/", "/v2/test", "/favicon.ico", "/v1//test", "//v1/test", "/v1/./test", "/x/../v1/test", "/v1/stream/", "/%2e%2e", "/v1/test%00"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			r := testkit.Must(http.NewRequest(method, h.URL(), nil))(t)
			r.URL.Opaque = "//" + r.URL.Host + path // as it is, not in its shortest form
			h.send(r).apiError(t, 404)
		}
	}
	for _, c := range []struct{ method, path, allow string }{
		{"POST", "/v1/test", "GET, HEAD"},
		{"DELETE", "/v1/live", "POST"},
		{"GET", "/v1/live", "POST"},
		{"GET", "/v1/media/input", "POST"},
		{"PUT", "/v1/media/output", "POST"},
		{"POST", "/v1/media/objects/x", "GET, HEAD, PUT"},
		{"PUT", "/v1/live/3", "GET, HEAD"},
		{"PATCH", "/v1/stream/3", "GET, HEAD"},
		{"OPTIONS", "/healthz", "GET, HEAD"},
		{"MADEUPMETHODOFGREATLENGTH", "/v1/test", "GET, HEAD"},
		{"get", "/v1/test", "GET, HEAD"}, // methods are case-sensitive
	} {
		res := h.do(c.method, c.path, "", nil)
		if message := res.apiError(t, 405).Message; !strings.HasSuffix(message, " "+c.method[:min(len(c.method), 16)]) {
			t.Errorf("%s %s: %q", c.method, c.path, message)
		}
		testkit.Equal(t, res.Header.Get("Allow"), c.allow, c.method, c.path, "Allow")
	}
	if res := h.do("HEAD", "/v1/nothing", "", nil); res.StatusCode != 404 || len(res.body) != 0 {
		t.Errorf("HEAD: %d %q", res.StatusCode, res.body)
	}
}

func TestCreateEchoesAnyObject(t *testing.T) {
	t.Parallel()
	h := serve(t)
	// Its record is nested deeper: one that cannot be read ends the next start of the server.
	nested := func(levels int) string { return strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels) }
	for body, want := range map[string]string{
		nested(9_999):                nested(9_999),
		`{"a": [1, 2.50, null]}`:     `{"a":[1,2.50,null]}`,
		`{"n":12345678901234567890}`: `{"n":12345678901234567890}`,
		` {"title":"é \u0000 x"} `:   `{"title":"é \u0000 x"}`,
	} {
		l := h.createWith(body)
		status := h.do("GET", "/v1/live/"+l.ID, testKey, nil)
		var fields map[string]json.RawMessage
		testkit.NoError(t, json.Unmarshal(status.body, &fields))
		for field, want := range map[string]string{"id": `"` + l.ID + `"`, "startedAt": "null", "completedAt": "null",
			"input": want, "status": `"created"`} {
			testkit.Equal(t, string(fields[field]), want, body, field, "is")
		}
		testkit.Equal(t, len(fields), 5, "fields", status.body)
	}
	h.do("POST", "/v1/live", testKey, strings.NewReader(nested(10_000))).invalid(t, "10,000 levels", "body")
}

func TestBodyHasALimit(t *testing.T) {
	t.Parallel()
	h := serve(t)
	fits := `{"a":"` + strings.Repeat("x", maxBody-8) + `"}`
	if res := h.do("POST", "/v1/live", testKey, strings.NewReader(fits)); res.StatusCode != 200 {
		t.Errorf("%d bytes: %d %s", len(fits), res.StatusCode, res.body)
	}
	for name, body := range map[string]io.Reader{
		"with a length": strings.NewReader(fits + " "),
		"chunked":       io.MultiReader(strings.NewReader(fits), strings.NewReader(" ")),
		"as stored":     strings.NewReader(strings.ReplaceAll(fits, "x", "<")), // which has six bytes in the store
	} {
		t.Run(name, func(t *testing.T) { h.do("POST", "/v1/live", testKey, body).apiError(t, 413) })
	}
}

func TestPanicOfAHandler(t *testing.T) {
	t.Parallel()
	var log logBuffer
	h := serve(t, log.use)
	h.Server.records = nil // a call on it panics
	h.do("GET", "/v1/live/"+unknownID, testKey, nil).apiError(t, 500)
	testkit.Contains(t, log.String(), "panic in a handler", "not in the log")
	h.do("GET", "/v1/test", testKey, nil).hasStatus(t, "afterwards", 200)
}

func TestCompressedBody(t *testing.T) {
	t.Parallel()
	h := serve(t)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write([]byte(`{"a":1}`))
	_ = w.Close()
	for body, want := range map[string]string{zipped.String(): "has the Content-Encoding gzip; send it without one", `{"a":1}`: "", "": ""} {
		r, _ := http.NewRequest("POST", h.URL()+"/v1/live", strings.NewReader(body))
		r.Header = bearerOf(testKey)
		r.Header.Set("Content-Encoding", "gzip")
		res := h.send(r)
		if want == "" && res.StatusCode != 200 || want != "" && (res.StatusCode != 400 || !strings.Contains(string(res.body), want)) {
			t.Errorf("%q: %d %s", body, res.StatusCode, res.body)
		}
	}
}

// A body that ends early is refused, also if what has arrived is an object.
func TestIncompleteBody(t *testing.T) {
	t.Parallel()
	res, _ := serve(t, plain).raw("POST /v1/live HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+testKey+"\r\nContent-Length: 3\r\n\r\n{}", true)
	if res.StatusCode != 400 || !strings.Contains(string(res.body), "could not be read") {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
}

// A parameter that is given twice has no value that its client can have meant.
func TestRepeatedParameters(t *testing.T) {
	t.Parallel()
	h := serve(t)
	for path, field := range map[string]string{
		"/v2/jobs?limit=5&limit=6":                               "limit",
		"/v2/jobs?status=failed&status=":                         "status",
		"/v1/media?after=media://a&after=media://b":              "after",
		"/v1/live/" + uuid.NewString() + "/events?from=1&from=2": "from",
	} {
		h.do("GET", path, testKey, nil).invalid(t, path, field)
	}
}
