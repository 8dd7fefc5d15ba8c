package protocol

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	maxAnswer     = 1 << 20          // bytes of a body that is read
	maxErrorBody  = 64 << 10         // bytes of an error body that is read
	maxRetryAfter = 60 * time.Second // longest wait that is taken without asking
	maxMessage    = 300              // characters of a service's text in an error
	maxFields     = 8                // field messages kept of a 400
)

const hintWrongService = "something else may be answering at this address: check --server, and whether a proxy or a log-in page stands in between"

// call does one operation and reads its answer into out. An answer 429 or 503
// that names a time to wait is taken at its word once.
func (c *Client) call(ctx context.Context, method, path string, body []byte, out any) error {
	err := c.once(ctx, method, path, body, out)
	var answer *APIError
	if !errors.As(err, &answer) || !answer.mayRetry(ctx) {
		return err
	}
	if c.wait(ctx, answer.RetryAfter) != nil {
		return err // the service's word tells more than the end of the waiting
	}
	return c.once(ctx, method, path, body, out)
}

// mayRetry reports whether the service asked to come back within a time that
// it is reasonable to wait.
func (e *APIError) mayRetry(ctx context.Context) bool {
	if e.Status != http.StatusTooManyRequests && e.Status != http.StatusServiceUnavailable {
		return false
	}
	if e.RetryAfter <= 0 || e.RetryAfter > maxRetryAfter {
		return false
	}
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > e.RetryAfter
}

func (c *Client) once(ctx context.Context, method, path string, body []byte, out any) error {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	traced, look := c.tap.request(ctx, method, c.base.JoinPath(path), body)
	req, err := http.NewRequestWithContext(traced, method, c.base.String()+path, reader)
	if err != nil {
		return errors.New(c.redact(err.Error()))
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.userAgent)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	asked := time.Now()
	resp, err := c.http.Do(req)
	if err != nil {
		err = explain(ctx, c.base, c.timeout, err)
		look.failed(err)
		return err
	}
	defer resp.Body.Close()
	observe(resp, time.Since(asked))
	if resp.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what came of it is good enough
		look.answered(resp, text)
		return c.apiError(resp, text)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	look.answered(resp, text)
	switch {
	case err != nil:
		return explain(ctx, c.base, c.timeout, err)
	case len(text) > maxAnswer:
		return withHint(hintWrongService, "the answer to %s %s is longer than %d bytes", method, path, maxAnswer)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return withHint(hintWrongService, "the answer to %s %s is not the service's JSON: %s",
			method, path, c.redact(excerpt(resp.Header.Get("Content-Type"), text)))
	}
	return nil
}

// apiError reads the error bodies of the specification, and makes the best of
// any other, such as the page of a proxy.
func (c *Client) apiError(resp *http.Response, body []byte) *APIError {
	e := &APIError{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	var spec struct {
		RequestID string            `json:"requestId"`
		Message   string            `json:"message"`
		Errors    []ValidationError `json:"errors"`
	}
	isJSON := json.Unmarshal(body, &spec) == nil
	if isJSON {
		e.Message = c.safe(spec.Message, maxMessage)
		e.RequestID = c.safe(spec.RequestID, 64)
		for _, f := range spec.Errors[:min(len(spec.Errors), maxFields)] {
			e.Fields = append(e.Fields, FieldError{Field: c.safe(f.Field, 64), Message: c.safe(f.Message, maxMessage)})
		}
	}
	if e.RequestID == "" {
		e.RequestID = c.safe(resp.Header.Get("X-Request-Id"), 64)
	}
	if e.Message == "" && !isJSON && len(body) > 0 {
		e.Message = c.safe(excerpt(resp.Header.Get("Content-Type"), body), maxMessage)
	}
	if e.Message == "" {
		e.Message = http.StatusText(e.Status)
	}
	if e.Message == "" {
		e.Message = "no reason given"
	}
	switch {
	case resp.StatusCode/100 == 3:
		if to, err := resp.Location(); err == nil {
			to.User, to.RawQuery, to.Fragment = nil, "", ""
			e.hint = "the service has moved to " + Clean(c.redact(to.String()), 200) + ": give its new address with --server"
		}
	case c.base.Scheme == "http" && bytes.Contains(body, []byte("HTTP request to an HTTPS server")):
		e.hint = "the server expects TLS: write https:// instead of http://"
	case e.Status == http.StatusProxyAuthRequired:
		e.hint = "the proxy (HTTPS_PROXY) wants a user name and password: write them into its address"
	case !isJSON && len(body) > 0 && e.Status < 500:
		e.hint = hintWrongService
	}
	return e
}

// safe makes a service's text fit for a terminal and takes the key out of it.
func (c *Client) safe(s string, maxRunes int) string { return Clean(c.redact(s), maxRunes) }

// redact takes the API key out of a text, for services that repeat it.
func (c *Client) redact(s string) string {
	if len(c.key) < 4 { // too short to be found by anything but chance
		return s
	}
	return strings.ReplaceAll(s, c.key, "[API key]")
}

// excerpt is the beginning of a body that is not the service's JSON; of a web
// page its title.
func excerpt(contentType string, body []byte) string {
	if len(body) == 0 {
		return "it is empty"
	}
	text := string(body)
	lower := strings.ToLower(text)
	if len(lower) == len(text) { // else the positions differ
		if i := strings.Index(lower, "<title"); i >= 0 {
			if _, after, ok := strings.Cut(text[i:], ">"); ok {
				title, _, _ := strings.Cut(after, "<")
				return fmt.Sprintf("a web page, %q", Clean(title, 80))
			}
		}
	}
	if strings.Contains(strings.ToLower(contentType), "html") || strings.Contains(lower, "<html") {
		return "a web page without a title"
	}
	if s := Clean(text, 120); s != "" {
		return s
	}
	return "nothing readable"
}

// retryAfter reads the header of that name: seconds, or an HTTP date. What it
// cannot read counts as not said (0); a time that is over as one second.
func retryAfter(header string, now time.Time) time.Duration {
	header = strings.TrimSpace(header)
	if s, err := strconv.ParseInt(header, 10, 64); err == nil {
		if s > int64(math.MaxInt64/time.Second) {
			return math.MaxInt64
		}
		return max(time.Second, time.Duration(s)*time.Second)
	}
	if t, err := http.ParseTime(header); err == nil {
		return max(time.Second, t.Sub(now))
	}
	return 0
}
