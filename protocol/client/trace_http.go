package client

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/trace"
)

// exchangeTracer records a request, the steps of its connection, and its
// response. A nil one does nothing.
type exchangeTracer struct {
	*tracer
	what   string // method and address
	begun  time.Time
	out    trace.Kind // of the request
	in     trace.Kind // of the response
	stream int

	mu    sync.Mutex           // guards what follows: several addresses are dialed at once
	steps map[string]time.Time // when a step began
}

// exchange begins to record a request, which opens a stream unless that is 0. The returned context is for the request.
func (t *tracer) exchange(ctx context.Context, method string, u *url.URL, body []byte, stream int) (context.Context, *exchangeTracer) {
	if t == nil {
		return ctx, nil
	}
	x := &exchangeTracer{tracer: t, what: method + " " + address(u), begun: time.Now(), out: trace.KindRequest, in: trace.KindResponse,
		stream: stream, steps: map[string]time.Time{}}
	if stream > 0 {
		x.out, x.in = trace.KindHandshake, trace.KindHandshake
	}
	x.record(trace.Record{Dir: trace.Outgoing, Kind: x.out, Stream: x.stream, Text: x.what, Size: len(body), Raw: body})
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart: func(i httptrace.DNSStartInfo) { x.begin("lookup") },
		DNSDone: func(i httptrace.DNSDoneInfo) {
			var found []string
			for _, a := range i.Addrs[:min(len(i.Addrs), 4)] {
				found = append(found, a.String())
			}
			x.step("lookup", trace.KindLookup, strings.Join(found, ", "), i.Err)
		},
		ConnectStart: func(_, addr string) { x.begin(addr) },
		ConnectDone:  func(_, addr string, err error) { x.step(addr, trace.KindConnect, addr, err) },

		TLSHandshakeStart: func() { x.begin("tls") },
		TLSHandshakeDone: func(state tls.ConnectionState, err error) {
			x.step("tls", trace.KindTLS, describeTLS(state), err)
		},
	}), x
}

// address is a URL without the parts that may be secret.
func address(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

func describeTLS(state tls.ConnectionState) string {
	text := tls.VersionName(state.Version)
	if state.NegotiatedProtocol != "" {
		text += ", " + state.NegotiatedProtocol
	}
	if len(state.PeerCertificates) > 0 {
		leaf := state.PeerCertificates[0]
		text += fmt.Sprintf(", certificate for %s by %s", certificateNames(leaf), issuerName(leaf))
	}
	return text
}

func (t *exchangeTracer) begin(step string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps[step] = time.Now()
}

func (t *exchangeTracer) step(step string, kind trace.Kind, text string, err error) {
	t.mu.Lock()
	begun, known := t.steps[step]
	t.mu.Unlock()
	r := trace.Record{Kind: kind, Stream: t.stream, Text: text}
	if known {
		r.Took = time.Since(begun)
	}
	if err != nil {
		r.Fault, r.Text = true, lastCause(err)
		if kind == trace.KindConnect {
			r.Text = text + ": " + r.Text
		}
	}
	t.record(r)
}

// responded records a response, and its body if that is JSON.
func (t *exchangeTracer) responded(resp *http.Response, body []byte) {
	if t == nil {
		return
	}
	r := trace.Record{Dir: trace.Incoming, Kind: t.in, Stream: t.stream, Code: resp.StatusCode, Size: len(body), Took: time.Since(t.begun)}
	if r.Fault = resp.StatusCode/100 != 2; t.in == trace.KindHandshake {
		r.Fault = resp.StatusCode != http.StatusSwitchingProtocols
	}
	parts := []string{resp.Proto}
	for _, name := range []string{"Retry-After", "X-Request-Id", "Via", "Location"} {
		if v := resp.Header.Get(name); v != "" {
			parts = append(parts, name+" "+v)
		}
	}
	r.Text = strings.Join(parts, ", ")
	var v any
	switch {
	case len(body) == 0:
	case json.Unmarshal(body, &v) == nil:
		t.redactor.Learn(v)
		r.Raw = protocol.OneLine(body)
	default:
		r.Text += ", " + excerpt(resp.Header.Get("Content-Type"), body)
	}
	t.record(r)
}

// failed records that no response came, with the error and its hint.
func (t *exchangeTracer) failed(err error) {
	if t == nil {
		return
	}
	r := trace.Record{Kind: trace.KindFailure, Stream: t.stream, Took: time.Since(t.begun), Fault: true, Text: t.what + ": " + err.Error()}
	if next := hint.Of(err); next != "" {
		r.Text += ": " + next
	}
	t.record(r)
}
