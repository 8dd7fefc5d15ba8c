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
	"strconv"
	"strings"
	"time"

	"hubbub/protocol"
)

const (
	// maxBody bounds what is read of an answer.
	maxBody = 1 << 20
	// maxWait is the longest Retry-After that is waited for, maxWaits how
	// often in all.
	maxWait  = 61 * time.Second
	maxWaits = 4
)

// ask is one request.
type ask struct {
	method, path string
	body         string
	none         bool   // no body, not even an empty one with a content type
	auth         string // the header Authorization; "" is the key's, none is "-"
	address      string // in place of base address and path
	plain        bool   // without credential and content type
	limited      bool   // a 429 is what is asked for
}

// reply is an answer, its body read.
type reply struct {
	what   string // the request, for people
	status int
	header http.Header
	body   []byte
}

// String is the answer in a line.
func (r *reply) String() string {
	return fmt.Sprintf("%s answered %d %s", r.what, r.status, r.excerpt())
}

func (r *reply) excerpt() string {
	if len(r.body) == 0 {
		return "without a body"
	}
	return protocol.Clean(string(r.body), 160)
}

// do sends a request. Where the service asks to come back later, it does, if
// that is soon.
func (p *play) do(ctx context.Context, a ask) (*reply, error) {
	for {
		r, err := p.once(ctx, a)
		if err != nil || a.limited || r.status != http.StatusTooManyRequests || p.waits.Add(1) > maxWaits {
			return r, err
		}
		seconds, err := strconv.Atoi(r.header.Get("Retry-After"))
		if err != nil || seconds < 1 || time.Duration(seconds)*time.Second > maxWait {
			return r, nil
		}
		if err := pause(ctx, time.Duration(seconds)*time.Second); err != nil {
			return nil, err
		}
	}
}

func (p *play) once(ctx context.Context, a ask) (*reply, error) {
	address := a.address
	if address == "" {
		address = p.Client.BaseURL() + a.path
	}
	var body io.Reader
	if !a.none && a.method != http.MethodGet {
		body = strings.NewReader(a.body)
	}
	req, err := http.NewRequestWithContext(ctx, a.method, address, body)
	if err != nil {
		return nil, differs("the service gave an address that cannot be used")
	}
	if !a.plain {
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
	if a.address != "" { // signed: what it opens stands in it
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
		return nil, differs("%s answered %d and broke off", what, resp.StatusCode)
	}
	r := &reply{what: what, status: resp.StatusCode, header: resp.Header, body: raw}
	p.learn(raw)
	return r, nil
}

// learn takes what stands in an answer's url for a secret.
func (p *play) learn(body []byte) {
	var made protocol.LiveStream
	if json.Unmarshal(body, &made) != nil || made.URL == "" {
		return
	}
	p.secrets.AddURL(made.URL)
	if u, err := url.Parse(made.URL); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		for _, part := range strings.Split(u.Path, "/") {
			if len(part) > 24 { // a seal, and no name
				p.secrets.Add(part)
			}
		}
	}
}

// is demands a status.
func (r *reply) is(status int) error {
	if r.status != status {
		return differs("%s", r)
	}
	return nil
}

// ok demands a success of any kind.
func (r *reply) ok() error {
	if r.status/100 != 2 {
		return differs("%s", r)
	}
	return nil
}

// isJSON demands a JSON object of that content type.
func (r *reply) isJSON() (map[string]json.RawMessage, error) {
	kind, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return nil, differs("%s; its Content-Type is %q", r, r.header.Get("Content-Type"))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(r.body, &fields); err != nil || fields == nil {
		return nil, differs("%s, which is no JSON object", r)
	}
	return fields, nil
}

// text demands string fields that are not empty.
func (r *reply) text(names ...string) (map[string]string, error) {
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

// apiError demands an ApiError of a status.
func (r *reply) apiError(status int) error {
	if err := r.is(status); err != nil {
		return err
	}
	_, err := r.text("requestId", "message")
	return err
}

// invalid demands a ValidationErrorResponse.
func (r *reply) invalid() error {
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
		message, said := e["message"].(string)
		if !isText || field == "" || !said || message == "" {
			return differs(`%s: an entry of "errors" has no field and message`, r)
		}
	}
	return nil
}

// knock finds out whether there is a service that takes the key.
func (p *play) knock(ctx context.Context) error {
	r, err := p.once(ctx, ask{method: "GET", path: "/v1/test"})
	var v *verdict
	switch {
	case errors.As(err, &v):
		return &unplayable{v.seen, "Check --server; 'hubbub check' looks at each step of the way."}
	case err != nil:
		return err
	case r.status == http.StatusUnauthorized || r.status == http.StatusForbidden:
		return &unplayable{fmt.Sprintf("the service does not take the API key: GET /v1/test answered %d", r.status),
			"Check the API key (--api-key or HUBBUB_API_KEY)."}
	case bytes.Contains(bytes.ToLower(r.body), []byte("<html")):
		return &unplayable{fmt.Sprintf("GET /v1/test answered %d with a web page: this is not the service", r.status),
			"Check --server, and whether a proxy or a log-in page stands in between; 'hubbub check' looks at each step of the way."}
	}
	return nil
}

// unplayable is an error with what to do about it.
type unplayable struct{ msg, hint string }

func (e *unplayable) Error() string { return e.msg }
func (e *unplayable) Hint() string  { return e.hint }

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
