package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/hint"
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
	body         string // sent, with a content type, unless the method is GET or DELETE
	auth         string // the header Authorization; "" = the key's, "-" = none
	address      string // instead of base address and path; without credential and content type
	limited      bool   // a 429 is expected
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
func (p *prober) do(ctx context.Context, a request) (*response, error) {
	for {
		r, err := p.attempt(ctx, a)
		if err != nil || a.limited || r.status != http.StatusTooManyRequests || p.waits.Add(1) > maxWaits {
			return r, err
		}
		wait := protocol.RetryAfter(r.header.Get("Retry-After"), time.Now())
		if wait == 0 || wait > maxWait {
			return r, nil
		}
		if err := protocol.Sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

func (p *prober) attempt(ctx context.Context, a request) (*response, error) {
	address := a.address
	if address == "" {
		address = p.Client.BaseURL() + a.path
	}
	var body io.Reader
	if a.method != http.MethodGet && a.method != http.MethodDelete {
		body = strings.NewReader(a.body)
	}
	req, err := http.NewRequestWithContext(ctx, a.method, address, body)
	if err != nil {
		return nil, differs("the service returned an address that cannot be parsed")
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
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return nil, differs("%s returned %d with an incomplete body", what, resp.StatusCode)
	}
	r := &response{request: what, status: resp.StatusCode, header: resp.Header, body: raw}
	p.learnSecrets(raw)
	return r, nil
}

// learnSecrets adds the secrets in the url of a response.
func (p *prober) learnSecrets(body []byte) {
	var made protocol.LiveStream
	if json.Unmarshal(body, &made) != nil || made.URL == "" {
		return
	}
	p.secrets.AddURL(made.URL)
	if u, err := url.Parse(made.URL); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		for _, part := range strings.Split(u.Path, "/") {
			if len(part) > 24 { // a signature, not a name
				p.secrets.Add(part)
			}
		}
	}
}

// is requires a status.
func (r *response) is(status int) error {
	if r.status != status {
		return differs("%s", r)
	}
	return nil
}

// ok requires any success.
func (r *response) ok() error {
	if r.status/100 != 2 {
		return differs("%s", r)
	}
	return nil
}

// isJSON requires a JSON object with that content type.
func (r *response) isJSON() (map[string]json.RawMessage, error) {
	kind, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return nil, differs("%s; its Content-Type is %q", r, r.header.Get("Content-Type"))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(r.body, &fields); err != nil || fields == nil {
		return nil, differs("%s, which is not a JSON object", r)
	}
	return fields, nil
}

// text requires string fields that are not empty.
func (r *response) text(names ...string) (map[string]string, error) {
	fields, err := r.isJSON()
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, name := range names {
		var s *string
		if raw, ok := fields[name]; !ok || json.Unmarshal(raw, &s) != nil || s == nil || *s == "" {
			return nil, differs("%s, without %q as a string", r, name)
		}
		out[name] = *s
	}
	return out, nil
}

// uuid is the form of RFC 9562, 4.
var uuid = regexp.MustCompile(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// apiError requires an error body with a status.
func (r *response) apiError(status int) error {
	if err := r.is(status); err != nil {
		return err
	}
	_, err := r.text("requestId", "message")
	return err
}

// refused sends a request that must get an error body with a status.
func (p *prober) refused(ctx context.Context, a request, status int) error {
	r, err := p.do(ctx, a)
	if err != nil {
		return err
	}
	return r.apiError(status)
}

// invalid requires a 400 with the fields that are invalid.
func (r *response) invalid() error {
	if err := r.is(http.StatusBadRequest); err != nil {
		return err
	}
	fields, err := r.isJSON()
	if err != nil {
		return err
	}
	if _, err := r.text("message"); err != nil {
		return err
	}
	var list []map[string]any
	if json.Unmarshal(fields["errors"], &list) != nil || list == nil {
		return differs(`%s, without "errors" as an array of objects`, r)
	}
	for _, e := range list {
		field, isText := e["field"].(string)
		message, hasMessage := e["message"].(string)
		if !isText || field == "" || !hasMessage || message == "" {
			return differs(`%s: an entry of "errors" has no field and message`, r)
		}
	}
	return nil
}

// reachable returns an error unless there is a service that accepts the key.
func (p *prober) reachable(ctx context.Context) error {
	const fix = "Check --server, and whether a proxy or a log-in page is in between; 'hubbub check' tests each step of the connection."
	r, err := p.attempt(ctx, request{method: "GET", path: "/v1/test"})
	var v *verdict
	switch {
	case errors.As(err, &v):
		return hint.Errorf(fix, "%s", v.seen)
	case err != nil:
		return err
	case r.status == http.StatusUnauthorized || r.status == http.StatusForbidden:
		return hint.Errorf("Check the API key (--api-key or HUBBUB_API_KEY).", "the service rejects the API key: GET /v1/test returned %d", r.status)
	case bytes.Contains(bytes.ToLower(r.body), []byte("<html")):
		return hint.Errorf(fix, "GET /v1/test returned %d with a web page: this is not the service", r.status)
	}
	return nil
}
