package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"hubbub/protocol/client"
	"hubbub/protocol/testkit"
)

// twist is something that a service does wrong with responses: those to a method
// and a path, with a status.
type twist struct {
	method, path string // path: a pattern
	from         int    // 0 = any
	to           int    // 0 = as it was
	body         func(string) string
	header       [2]string           // "" as value removes it
	frames       func(string) string // of a WebSocket: keeps the length
	request      func(*http.Request)
}

// twistedStream is the connection of a WebSocket.
type twistedStream struct {
	io.ReadWriteCloser
	frames func(string) string
}

func (s twistedStream) Read(b []byte) (int, error) {
	n, err := s.ReadWriteCloser.Read(b)
	copy(b[:n], s.frames(string(b[:n])))
	return n, err
}

func always(s string) func(string) string { return func(string) string { return s } }

func swap(pattern, with string) func(string) string {
	re := regexp.MustCompile(pattern)
	return func(s string) string { return re.ReplaceAllString(s, with) }
}

// twisted is a server behind something that gets one thing wrong.
func twisted(t *testing.T, backend string, w twist) string {
	t.Helper()
	to := testkit.Must(url.Parse(backend))(t)
	path := regexp.MustCompile("^" + w.path + "$")
	meant := func(r *http.Request) bool {
		return (w.method == "" || w.method == r.Method) && (w.path == "" || path.MatchString(r.URL.Path))
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(res *http.Response) error {
		if !meant(res.Request) || w.from != 0 && w.from != res.StatusCode {
			return nil
		}
		if res.StatusCode == http.StatusSwitchingProtocols {
			if stream, ok := res.Body.(io.ReadWriteCloser); ok && w.frames != nil {
				res.Body = twistedStream{stream, w.frames}
			}
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

// Paths of operations, as patterns.
const (
	livePath    = "/v1/live"
	statusPath  = "/v1/live/[^/]+"
	streamPath  = "/v1/stream/.*"
	inputPath   = "/v1/media/input"
	outputPath  = "/v1/media/output"
	objectsPath = "/v1/media/objects/.*"
	watchPath   = "/v1/live/[^/]+/events"
	diarizePath = "/v1/diarize"
	jobPath     = "/v1/jobs/[^/]+"
)

// withKey gives a request the key of the server.
func withKey(r *http.Request) { r.Header.Set("Authorization", "Bearer "+checkKey) }

// newStream turns a handshake that should be refused into that of a stream that was
// just made on a server.
func newStream(server string) func(*http.Request) {
	return func(r *http.Request) {
		c, err := client.New(client.Options{BaseURL: server, APIKey: checkKey})
		if err != nil {
			return
		}
		defer c.Close()
		if live, err := c.CreateStream(r.Context(), nil); err == nil {
			if u, err := url.Parse(live.URL); err == nil {
				r.URL.Path, r.URL.RawQuery = u.Path, u.RawQuery
			}
		}
	}
}

// without removes a field of the body of a request.
func without(field string) func(*http.Request) {
	return func(r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		delete(body, field)
		raw, _ := json.Marshal(body)
		newBody(r, string(raw))
	}
}

// cleanNames takes the names of media as if they were paths.
func cleanNames(r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	newBody(r, strings.ReplaceAll(strings.ReplaceAll(string(raw), "//b", "/b"), "/./", "/"))
}

// wrongResponses lists, for each rule about HTTP, something that a service can do
// wrong; after a space in the name there is more. server is the address of a correct
// one.
func wrongResponses(server string) map[string]twist {
	puts := 0
	return map[string]twist{
		"test/body":    {path: "/v1/test", body: always(`{"status":5,"message":"x"}`)},
		"test/success": {path: "/v1/test", to: 202},
		"keys/needed":  {path: livePath, request: withKey},
		"keys/missing": {from: 401, header: [2]string{"WWW-Authenticate", ""}},
		"keys/malformed": {path: "/v1/test", request: func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "Token", "Bearer", 1))
		}},
		"keys/unknown": {path: livePath, from: 401, to: 403},
		"keys/expired": {path: "/v1/test", request: withKey},
		"keys/unpaid":  {},
		"live/create":  {path: livePath, body: swap(`"url"`, `"address"`)},
		"live/success": {method: "POST", path: livePath, to: 201},
		"live/id":      {path: livePath, body: swap(`"id":"[^"]+"`, `"id":"17"`)},
		"live/address": {path: livePath, body: swap(`\?token=`, "?key=")},
		"live/token":   {path: livePath, body: swap(`token=[^"]+`, "token=12345678")},
		"live/empty-body": {method: "POST", path: livePath, request: func(r *http.Request) {
			if raw, _ := io.ReadAll(r.Body); len(raw) == 0 {
				newBody(r, "[]")
			} else {
				newBody(r, string(raw))
			}
		}},
		"live/input":         {path: statusPath, body: swap(`"input":\{.*\},"status"`, `"input":{},"status"`)},
		"live/array":         {method: "POST", path: livePath, request: func(r *http.Request) { newBody(r, "{}") }},
		"live/invalid-json":  {method: "POST", path: livePath, from: 400, body: always(`{"message":"no"}`)},
		"live/words":         {method: "POST", path: livePath, body: swap(`"url"`, `"words":"yes","url"`)},
		"live/voiceprints":   {method: "POST", path: livePath, request: func(r *http.Request) { newBody(r, "{}") }},
		"live/unknown":       {path: statusPath, from: 404, to: 400},
		"live/foreign":       {},
		"status/shape":       {path: statusPath, body: swap(`"input":\{\}`, `"input":"{}"`)},
		"status/success":     {path: statusPath, from: 200, to: 203},
		"status/created":     {path: statusPath, body: swap(`"created"`, `"new"`)},
		"status/null":        {path: statusPath, body: swap(`"startedAt":null,`, ``)},
		"status/running":     {path: statusPath, body: swap(`"running"`, `"open"`)},
		"status/done":        {path: statusPath, body: swap(`"done"`, `"completed"`)},
		"status/closed":      {path: statusPath, body: swap(`"done"`, `"error"`)},
		"status/lost":        {path: statusPath, body: swap(`"error"`, `"done"`)},
		"status/times":       {path: statusPath, body: swap(`(\d\d:\d\d:\d\d)Z`, "$1.5Z")},
		"token/opens":        {path: streamPath, request: func(r *http.Request) { r.URL.RawQuery = "" }},
		"token/once":         {path: streamPath, request: newStream(server)},
		"token/used":         {path: streamPath, from: 401, to: 403},
		"token/wrong":        {path: streamPath, from: 401, body: always("no")},
		"token/other-stream": {path: streamPath, request: newStream(server)},
		"token/race":         {path: streamPath, request: newStream(server)},
		"media/pattern":      {path: outputPath, from: 400, to: 404},
		"media/required":     {path: outputPath, from: 400, body: swap("field", "name")},
		"media/length":       {path: outputPath, request: func(r *http.Request) { newBody(r, `{"url":"media://nothing"}`) }},
		"media/output":       {path: outputPath, from: 201, to: 200},
		"media/not-stored":   {path: outputPath, from: 404, header: [2]string{"Content-Type", "text/plain"}},
		"media/input":        {path: inputPath, from: 201, to: 200},
		"media/input-body":   {path: inputPath, from: 400, to: 422},
		"media/put":          {method: "PUT", to: 403},
		"media/get":          {method: "GET", path: objectsPath, body: swap("^hubbub", "HUBBUB")},
		"media/one-method":   {method: "DELETE", path: objectsPath, to: 204},
		"media/signed":       {path: objectsPath, from: 403, to: 200},
		"jobs/url":           {path: diarizePath, from: 400, body: swap("field", "name")},
		"jobs/created":       {path: diarizePath, from: 200, to: 201},
		"jobs/transcription": {path: diarizePath, body: swap(`"transcription"`, `"words"`)},
		"jobs/failed":        {path: jobPath, body: swap(`"error"`, `"reason"`)},
		"media/list":         {path: "/v1/media", body: swap(`"size":10`, `"size":11`)},
		"media/names":        {path: "/v1/media/(in|out)put", request: cleanNames},
		"media/replace": {method: "PUT", path: objectsPath, request: func(r *http.Request) {
			if puts++; puts == 3 { // the first is that of the rules that this one needs
				newBody(r, "third")
			}
		}},
		"media/foreign":     {},
		"results/turns":     {method: "GET", path: objectsPath, body: always("SPEAKER live 1 0.000 1.000 <NA> <NA> SPEAKER_00 <NA> <NA>\n")},
		"results/json":      {method: "GET", path: objectsPath, body: always("[{}]")},
		"results/not-yet":   {path: outputPath, from: 404, to: 410},
		"errors/api-error":  {path: statusPath, from: 404, body: swap(`"requestId":"[^"]+",`, "")},
		"errors/request-id": {path: statusPath, from: 404, header: [2]string{"X-Request-Id", "17"}},
		"errors/not-found":  {path: "/v1/nothing", body: always("404 page not found")},
		"errors/method":     {from: 405, header: [2]string{"Allow", ""}},
		"errors/too-large":  {path: livePath, from: 413, to: 500},
		"beside/openapi":    {path: "/openapi.json", body: swap(`"/v1/live/\{id\}"`, `"/v1/live/{name}"`)},
		"beside/healthz":    {path: "/healthz", to: 204},
		"beside/readyz":     {path: "/readyz", to: 503},
		"beside/metrics":    {path: "/metrics", body: always("all is well\n")},
		"rate/headers":      {path: livePath, header: [2]string{"X-RateLimit-Remaining", "many"}},
		"rate/limit":        {path: "/v1/test", header: [2]string{"X-RateLimit-Limit", "60"}},

		"keys/needed of a stream":     {path: statusPath, request: withKey},
		"keys/needed of an object":    {path: outputPath, request: withKey},
		"keys/needed-beside":          {path: jobPath, from: 401, to: 200},
		"keys/needed-beside of a job": {path: jobPath, request: withKey},
		"keys/needed-beside to watch": {path: watchPath, request: withKey},
		"media/length not accepted": {path: outputPath, request: func(r *http.Request) {
			if raw, _ := io.ReadAll(r.Body); strings.Contains(string(raw), "xxx") {
				newBody(r, `{"url":"x"}`)
			} else {
				newBody(r, string(raw))
			}
		}},
		"live/enrolled":                    {path: statusPath, body: swap(`"label":"conform"`, `"label":"conform","voiceprint":"x"`)},
		"media/put status":                 {method: "PUT", to: 204, body: always("")},
		"media/headers":                    {path: objectsPath, header: [2]string{"X-Content-Type-Options", ""}},
		"media/headers shown in a browser": {path: objectsPath, header: [2]string{"Content-Disposition", "inline"}},
		"media/headers without ETag":       {path: objectsPath, header: [2]string{"ETag", ""}},
		"media/head":                       {method: "HEAD", path: objectsPath, to: 405},
		"media/range":                      {path: objectsPath, request: func(r *http.Request) { r.Header.Del("Range") }},
		"media/range beyond":               {path: objectsPath, from: 416, to: 200},
		"media/unchanged":                  {path: objectsPath, request: func(r *http.Request) { r.Header.Del("If-None-Match") }},
		"media/one-method twice":           {method: "PUT", from: 403, to: 200},
		"media/list expired":               {path: "/v1/media", body: swap(`"expiresAt":"2`, `"expiresAt":"1`)},
		"watch/messages":                   {path: watchPath, request: func(r *http.Request) { r.URL.RawQuery = "from=1" }},
		"watch/messages text":              {path: watchPath, frames: swap("SPEAKER_00", "SPEAKER_01")},
		"watch/messages end":               {path: watchPath, frames: swap("done$", "over")},
		"watch/state":                      {path: watchPath, frames: swap("stream_state", "stream_start")},
		"watch/from":                       {path: watchPath, request: func(r *http.Request) { r.URL.RawQuery = "" }},
		"watch/handshake":                  {path: watchPath, from: 426, to: 400},
		"watch/handshake from":             {path: watchPath, request: func(r *http.Request) { r.URL.RawQuery = "" }},
		"watch/foreign":                    {},
		"resume/resumed":                   {path: livePath, body: swap(`"resumed":true`, `"resumed":1`)},
		"resume/labels":                    {path: livePath, request: without("resume"), body: swap(`"url"`, `"resumed":true,"url"`)},
		"resume/status":                    {path: statusPath, body: swap(`"resumedBy":"[^"]*"`, `"resumedBy":"x"`)},
		"resume/resumable":                 {path: statusPath, body: swap(`,"resumable":true`, "")},
		"resume/unknown":                   {path: livePath, body: swap(`"url"`, `"resumed":true,"url"`)},
		"resume/foreign":                   {},
		"jobs/fields":                      {path: diarizePath, from: 400, body: swap(`"field":"max`, `"field":"min`)},
		"jobs/fields of identify":          {path: "/v1/identify", from: 400, body: swap(`"field":"voiceprints"`, `"field":"body"`)},
		"jobs/webhook":                     {path: diarizePath, request: without("webhook")},
		"jobs/succeeded":                   {path: jobPath, body: swap(`"start"`, `"begin"`)},
		"jobs/succeeded never":             {path: jobPath, body: swap(`"succeeded"`, `"failed"`)},
		"jobs/exclusive":                   {path: diarizePath, request: without("exclusive")},
		"jobs/confidence":                  {path: diarizePath, request: without("turnLevelConfidence")},
		"jobs/confidence of frames":        {path: jobPath, body: swap(`"resolution":0.02`, `"resolution":20`)},
		"jobs/confidence in fractions":     {path: jobPath, body: swap(`"score":\[\d+`, `"score":[0.5`)},
		"jobs/confidence as text":          {path: jobPath, body: swap(`"SPEAKER_00":\d+`, `"SPEAKER_00":"high"`)},
		"jobs/exclusive as text":           {path: jobPath, body: swap(`"exclusiveDiarization":\[\{"speaker":"SPEAKER_00"`, `"exclusiveDiarization":[{"speaker":0`)},
		"jobs/cancel":                      {method: "DELETE", path: jobPath, from: 409, to: 200},
		"jobs/cancel nothing":              {path: jobPath, body: swap(`"canceled"`, `"succeeded"`)},
		"jobs/list":                        {path: "/v2/jobs", body: swap(`"nextCursor":"[^"]+"`, `"nextCursor":null`)},
		"jobs/list again":                  {path: "/v2/jobs", request: func(r *http.Request) { r.URL.RawQuery = "limit=1" }},
		"jobs/unknown":                     {path: jobPath, from: 404, to: 400},
		"jobs/foreign":                     {},
		"jobs/voiceprint":                  {path: jobPath, body: swap(`"voiceprint":"[^"]+"`, `"voiceprint":""`)},
		"jobs/one-person":                  {path: jobPath, body: swap(`"failed"`, `"succeeded"`)},
		"jobs/identify":                    {path: jobPath, body: swap(`"match":"[^"]+"`, `"match":null`)},
		"jobs/identify without null":       {path: jobPath, body: swap(`,"match":null`, "")},
		"stream/ping":                      {path: streamPath, frames: swap("hubbub conform", "HUBBUB CONFORM")},
		"stream/keep-alive":                {path: streamPath, frames: func(s string) string { return strings.ReplaceAll(s, "\x89", "\x8a") }}, // pongs instead of pings
	}
}
