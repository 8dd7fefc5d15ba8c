package conform

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"hubbub/protocol"
)

const (
	// maxBody bounds what is read of a response, in bytes.
	maxBody = 1 << 20
	// maxWait is the longest Retry-After that is obeyed, maxWaits the number of
	// times in a run.
	maxWait  = 61 * time.Second
	maxWaits = 4
)

// request is one HTTP request.
type request struct {
	method, path string
	body         string    // sent, with a content type, unless the method is GET or DELETE
	auth         string    // the header Authorization; "" = the key's, "-" = none
	address      string    // instead of base address and path; without credential and content type
	header       [2]string // one more header: name and value
	limited      bool      // a 429 is expected
}

func get(path string) request { return request{method: "GET", path: path} }

func post(path, body string) request { return request{method: "POST", path: path, body: body} }

func remove(path string) request { return request{method: "DELETE", path: path} }

// with is the request with another credential.
func (a request) with(auth string) request {
	a.auth = auth
	return a
}

// bearer is the header for a key of the options; without it the rule is skipped.
func bearer(key, needed string) string {
	if key == "" {
		skipped("it needs %s", needed)
	}
	return "Bearer " + key
}

// other is the header for the key of another account.
func (p *prober) other() string {
	return bearer(p.OtherKey, "a key of another account: --other-key KEY")
}

// response is the response to a request, with its body.
type response struct {
	request string // method and path, for messages
	status  int
	header  http.Header
	body    []byte
}

// String describes the response in one line.
func (r *response) String() string {
	return fmt.Sprintf("%s returned %d %s", r.request, r.status, r.excerpt())
}

func (r *response) excerpt() string {
	if len(r.body) == 0 {
		return "without a body"
	}
	return protocol.Clean(string(r.body), 160)
}

// do sends a request. It obeys a Retry-After that is not too long.
func (p *prober) do(a request) *response {
	for {
		r := p.attempt(a)
		if a.limited || r.status != http.StatusTooManyRequests || p.waits.Add(1) > maxWaits {
			return r
		}
		wait := protocol.RetryAfter(r.header)
		if wait == 0 || wait > maxWait {
			return r
		}
		p.Waiting(wait)
		p.sleep(wait)
	}
}

func (p *prober) attempt(a request) *response {
	address := a.address
	if address == "" {
		address = p.Client.BaseURL() + a.path
	}
	var body io.Reader
	if a.method != http.MethodGet && a.method != http.MethodDelete {
		body = strings.NewReader(a.body)
	}
	req, err := http.NewRequestWithContext(p.ctx, a.method, address, body)
	if err != nil {
		differs("the service returned an address that cannot be parsed")
	}
	if a.address == "" {
		switch a.auth {
		case "":
			req.Header.Set("Authorization", "Bearer "+p.Key)
		case "-":
		default:
			req.Header.Set("Authorization", a.auth)
		}
		req.Header.Set("Accept", "application/json")
		if body != nil {
			req.Header.Set("Content-Type", "application/json")
		}
	}
	if a.header[0] != "" {
		req.Header.Set(a.header[0], a.header[1])
	}
	what := a.method + " " + req.URL.Path
	if a.address != "" { // signed: it contains what it gives access to
		what = a.method + " on the address of a media location"
	} else if a.body != "" {
		what += " with the body " + protocol.Clean(a.body, 60)
	}
	if a.path == "/v1/test" && a.method == http.MethodGet && a.auth == "" && !a.limited {
		p.tests.Add(1)
	}
	resp, err := p.Client.Do(req)
	if err != nil {
		differs("%s: %v", what, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		differs("%s returned %d with an incomplete body", what, resp.StatusCode)
	}
	r := &response{request: what, status: resp.StatusCode, header: resp.Header, body: raw}
	p.learnSecrets(raw)
	return r
}

// learnSecrets adds the secrets in the url of a response.
func (p *prober) learnSecrets(body []byte) {
	var made protocol.LiveStream
	if json.Unmarshal(body, &made) != nil || made.URL == "" {
		return
	}
	p.secrets.Learn(made.URL)
	if u, err := url.Parse(made.URL); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		for part := range strings.SplitSeq(u.Path, "/") {
			if len(part) > 24 { // a signature, not a name
				p.secrets.Add(part)
			}
		}
	}
}

// missing reports whether a service does not have an operation.
func (r *response) missing() bool {
	return r.status == http.StatusNotFound || r.status == http.StatusMethodNotAllowed || r.status == http.StatusNotImplemented
}

// expect requires a status.
func (r *response) expect(status int) {
	if r.status != status {
		differs("%s", r)
	}
}

// expectSuccess requires any success.
func (r *response) expectSuccess() {
	if r.status/100 != 2 {
		differs("%s", r)
	}
}

// object requires a JSON object with that content type.
func (r *response) object() map[string]json.RawMessage {
	kind, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		differs("%s; its Content-Type is %q", r, r.header.Get("Content-Type"))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(r.body, &fields); err != nil || fields == nil {
		differs("%s, which is not a JSON object", r)
	}
	return fields
}

// text requires string fields that are not empty.
func (r *response) text(names ...string) map[string]string {
	fields := r.object()
	out := map[string]string{}
	for _, name := range names {
		var s *string
		if raw, ok := fields[name]; !ok || json.Unmarshal(raw, &s) != nil || s == nil || *s == "" {
			differs("%s, without %q as a string", r, name)
		}
		out[name] = *s
	}
	return out
}

// live is the stream that a response creates; rules test what is missing.
func (r *response) live() (made protocol.LiveStream) {
	_ = json.Unmarshal(r.body, &made)
	return made
}

// uuid is the form of RFC 9562, 4.
var uuid = regexp.MustCompile(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// expectAPIError requires an error body with a status.
func (r *response) expectAPIError(status int) {
	r.expect(status)
	r.text("requestId", "message")
}

// expectError sends requests that must get an error body with a status.
func (p *prober) expectError(status int, all ...request) string {
	for _, a := range all {
		p.do(a).expectAPIError(status)
	}
	return fmt.Sprint(status)
}

// expectInvalid requires a 400 with the fields that are invalid, these among them.
func (r *response) expectInvalid(names ...string) {
	r.expect(http.StatusBadRequest)
	fields := r.object()
	r.text("message")
	var list []map[string]any
	if json.Unmarshal(fields["errors"], &list) != nil || list == nil {
		differs(`%s, without "errors" as an array of objects`, r)
	}
	for _, e := range list {
		field, isText := e["field"].(string)
		message, hasMessage := e["message"].(string)
		if !isText || field == "" || !hasMessage || message == "" {
			differs(`%s: an entry of "errors" has no field and message`, r)
		}
		names = slices.DeleteFunc(names, func(name string) bool { return name == field })
	}
	if len(names) > 0 {
		differs("%s, without the field %s", r, names[0])
	}
}

// reachable is the error if nothing can be tested: the service does not respond, something
// else does, or it rejects the key.
func (p *prober) reachable() error {
	p.tests.Add(1)
	_, info, err := p.Client.TestOnce(p.ctx)
	var network net.Error
	switch s := info.Status; {
	case s == 0, s/100 == 3, s == http.StatusBadRequest, s == http.StatusUnauthorized, s == http.StatusForbidden,
		strings.Contains(strings.ToLower(info.Type), "html"),
		errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF): // the body is incomplete
		return err
	}
	return nil
}
