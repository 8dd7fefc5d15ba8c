package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/hint"
)

const (
	maxBody       = 1 << 20          // bytes of a body that is read
	maxErrorBody  = 64 << 10         // bytes of an error body that is read
	maxRetryAfter = 60 * time.Second // longest wait before a retry
	maxMessage    = 300              // characters of a service's text in an error
	maxFields     = 8                // field messages kept of a 400
)

// hintPortal is for responses of a network that wants a log-in first.
const hintPortal = "A captive portal may be in between: open a web page in a browser and log in to this network."

const hintWrongService = "Something else may respond at this address: check --server, and whether a proxy, a web filter or a log-in page is in between."

// wantsTLS matches what servers return for plain HTTP on a port for TLS: hubbub, others written
// in Go, nginx, and Apache.
var wantsTLS = regexp.MustCompile(`(?i)server requires TLS|HTTP request (was sent )?to (an )?HTTPS (server|port)|plain HTTP to an SSL-enabled`)

// call does one operation without a body and decodes its response into out.
func (c *Client) call(ctx context.Context, method, path string, out any) error {
	return c.retried(ctx, func() error {
		_, err := c.once(ctx, method, path, nil, out)
		return err
	})
}

// retried does an operation. A response 429 or 503 with a time to wait is obeyed once.
func (c *Client) retried(ctx context.Context, do func() error) error {
	err := do()
	response, ok := errors.AsType[*ResponseError](err)
	if !ok || !response.mayRetry(ctx) {
		return err
	}
	if c.waiting != nil {
		c.waiting(response, response.RetryAfter)
	}
	if c.wait(ctx, response.RetryAfter) != nil {
		return err // it says more than the end of the wait
	}
	return do()
}

// mayRetry reports whether the service asked to retry after a reasonable time.
func (e *ResponseError) mayRetry(ctx context.Context) bool {
	if e.Status != http.StatusTooManyRequests && e.Status != http.StatusServiceUnavailable {
		return false
	}
	if e.RetryAfter <= 0 || e.RetryAfter > maxRetryAfter {
		return false
	}
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > e.RetryAfter
}

// Do sends a request as it is: without the API key, without a retry, and without
// following redirections. It is for programs that examine single responses; an
// error of the network has a hint.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", c.userAgent)
	}
	var reached progress
	resp, err := c.http.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), reached.trace())))
	if err != nil {
		via, _ := c.proxy(req.URL)
		return nil, c.explain(req.Context(), req.URL, reached.untunnelled(reached.timedOut(err), req.URL, via))
	}
	return resp, nil
}

// progress is how far a request got, which a timeout of net/http does not say.
type progress struct {
	lookingUp  atomic.Pointer[string] // the name; nil = not now
	connected  atomic.Bool            // also to a proxy
	handshakes atomic.Int32           // of TLS that began
	ready      atomic.Bool            // the connection, for the request
}

func (p *progress) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		DNSStart: func(i httptrace.DNSStartInfo) { p.lookingUp.Store(&i.Host) },
		DNSDone:  func(httptrace.DNSDoneInfo) { p.lookingUp.Store(nil) },
		ConnectDone: func(_, _ string, err error) {
			if err == nil {
				p.connected.Store(true)
			}
		},
		TLSHandshakeStart: func() { p.handshakes.Add(1) },
		GotConn: func(httptrace.GotConnInfo) {
			p.connected.Store(true)
			p.ready.Store(true)
		},
	}
}

// untunnelled marks an error that comes after the connection to the proxy and before the TLS handshake with
// the service as tunnel does.
func (p *progress) untunnelled(err error, u, via *url.URL) error {
	if via == nil || u.Scheme != "https" || !p.connected.Load() || p.ready.Load() {
		return err
	}
	before := int32(0)
	if via.Scheme == "https" {
		before = 1
	}
	var op *net.OpError
	if p.handshakes.Load() > before || errors.As(err, &op) && (op.Op == "proxyconnect" || op.Op == socksConnect) {
		return err
	}
	return tunnelError(err)
}

// timedOut marks a timeout before there was a connection as package net does.
func (p *progress) timedOut(err error) error {
	var op *net.OpError
	if !isTimeout(err) || p.connected.Load() || errors.As(err, &op) {
		return err
	}
	if name := p.lookingUp.Load(); name != nil {
		err = &net.DNSError{Name: *name, Err: "timeout", IsTimeout: true, UnwrapErr: err}
	}
	return &net.OpError{Op: "dial", Net: "tcp", Err: err}
}

// once does one operation without a retry.
func (c *Client) once(ctx context.Context, method, path string, body []byte, out any) (info ResponseInfo, err error) {
	traced, exchange := c.tracer.exchange(ctx, method, c.base.JoinPath(path), body, 0)
	req, err := http.NewRequestWithContext(traced, method, c.base.String()+path, bytes.NewReader(body))
	if err != nil {
		return info, errors.New(c.redactor.Text(err.Error()))
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	// net/http repeats a request on a new connection when an idle one ends just then, but a POST only with this
	// header, which is not sent without a value: a stream that was created in vain expires.
	req.Header["Idempotency-Key"] = nil
	begun := time.Now()
	resp, err := c.Do(req)
	if err != nil {
		exchange.failed(err)
		return info, err
	}
	defer resp.Body.Close()
	info = responseInfo(resp, time.Since(begun))
	if resp.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a part is good enough
		exchange.responded(resp, text)
		return info, c.responseError(resp, text)
	}
	limit := maxBody
	if _, ok := out.(*protocol.JobStatus); ok {
		limit = maxJob
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	exchange.responded(resp, text)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), isTimeout(err):
		return info, hint.Add(&networkError{fmt.Sprintf("the response to %s %s did not arrive completely", method, path), err},
			"Try again; if it happens again, the service, or a proxy in between, is slow or ends connections: tell its operator.")
	case err != nil:
		return info, c.explain(ctx, c.base, err)
	case len(text) > limit:
		return info, hint.Errorf(hintWrongService, "the response to %s %s is longer than %d bytes", method, path, limit)
	}
	if err := json.Unmarshal(text, out); err != nil {
		shown := c.redactor.Text(excerpt(info.Type, text)) // it may have the token of a stream
		fix := hintWrongService
		if isPage(info.Type, text) {
			fix = hintPortal + " Otherwise check --server."
		}
		return info, hint.Errorf(fix, "the response to %s %s is not the service's JSON: %s", method, path, shown)
	}
	return info, nil
}

// responseError reads the specified error bodies, and an excerpt of any other,
// such as the page of a proxy.
func (c *Client) responseError(resp *http.Response, body []byte) *ResponseError {
	e := &ResponseError{Status: resp.StatusCode, RetryAfter: protocol.RetryAfter(resp.Header)}
	var spec struct {
		protocol.APIError
		Errors []protocol.ValidationError `json:"errors"`
	}
	e.own = json.Unmarshal(body, &spec) == nil
	e.page = !e.own && isPage(resp.Header.Get("Content-Type"), body)
	if e.own {
		e.Message = c.clean(spec.Message, maxMessage)
		e.RequestID = c.clean(spec.RequestID, 64)
		for _, f := range spec.Errors[:min(len(spec.Errors), maxFields)] {
			e.Fields = append(e.Fields, protocol.ValidationError{Field: c.clean(f.Field, 64), Message: c.clean(f.Message, maxMessage)})
		}
	}
	e.RequestID = cmp.Or(e.RequestID, c.clean(resp.Header.Get("X-Request-Id"), 64))
	if e.Message == "" && len(body) > 0 {
		e.Message = c.clean(excerpt(resp.Header.Get("Content-Type"), body), maxMessage)
	}
	e.Message = cmp.Or(e.Message, http.StatusText(e.Status), "no reason given")
	switch {
	case resp.StatusCode/100 == 3:
		if to, err := resp.Location(); err == nil {
			to.User, to.RawQuery, to.Fragment = nil, "", ""
			address := c.clean(to.String(), 200)
			e.Message, e.hint = "it redirects to "+address, hintPortal+" Or the service has moved: give its new address with --server."
			if base, ok := strings.CutSuffix(address, strings.TrimPrefix(resp.Request.URL.Path, c.base.Path)); ok {
				e.hint = "The service has moved: write --server " + base
			}
		}
	case c.base.Scheme == "http" && wantsTLS.Match(body):
		e.hint = "The server expects TLS: write https:// instead of http://"
	case e.Status == http.StatusProxyAuthRequired:
		e.hint = "The proxy requires a user name and password: check those in its address, in " + strings.ToUpper(c.base.Scheme) + "_PROXY."
	case !e.own && len(body) > 0:
		e.hint = c.hintPage(e)
	}
	return e
}

// hintPage is for a response that is not the service's, such as a page; "" = by the status.
func (c *Client) hintPage(e *ResponseError) string {
	proxy, _ := c.proxy(c.base)
	switch {
	case proxy != nil && c.base.Scheme == "http" && strings.HasPrefix(proxy.Scheme, "http"): // there is no tunnel
		return fmt.Sprintf("The response may be that of the proxy %s in HTTP_PROXY, which may not reach the service, not permit it, or want another user name and password: check both addresses, or exclude the service with NO_PROXY.", hostPort(proxy))
	case e.Status == http.StatusTooManyRequests, e.RetryAfter > 0, e.Status == http.StatusInternalServerError, e.Status == http.StatusNotImplemented:
		return ""
	case e.Status >= 500:
		return "Something in front of the service responds, such as a load balancer: the service does not run, is overloaded, or cannot be reached from there. Try again later, and tell its operator."
	}
	return hintWrongService
}

// clean makes a service's text fit for a terminal, without secrets.
func (c *Client) clean(s string, maxRunes int) string {
	return protocol.Clean(c.redactor.Text(s), maxRunes)
}

// isPage reports whether a body is a web page.
func isPage(contentType string, body []byte) bool {
	return strings.Contains(strings.ToLower(contentType), "html") || bytes.Contains(bytes.ToLower(body), []byte("<html"))
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
				return fmt.Sprintf("a web page, %q", protocol.Clean(title, 80))
			}
		}
	}
	if isPage(contentType, body) {
		return "a web page without a title"
	}
	if s := protocol.Clean(text, 120); s != "" {
		return s
	}
	return "nothing readable"
}
