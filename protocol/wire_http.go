package protocol

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
)

// exchange records a request, the connection that is made for it, and what
// comes of it. A nil one does nothing.
type exchange struct {
	*tapped
	what   string // method and address
	begun  time.Time
	out    WireKind
	in     WireKind
	stream int

	mu    sync.Mutex           // guards what follows: connections are tried at once
	steps map[string]time.Time // when a step began
}

// request begins to record a request. The context that it returns is for the
// request.
func (t *tapped) request(ctx context.Context, method string, u *url.URL, body []byte) (context.Context, *exchange) {
	return t.exchange(ctx, &exchange{what: method + " " + address(u), out: WireRequest, in: WireAnswer}, body)
}

// handshake is the same for the opening of a stream.
func (t *tapped) handshake(ctx context.Context, u *url.URL, stream int) (context.Context, *exchange) {
	if t != nil {
		t.secret.addQuery(u)
	}
	return t.exchange(ctx, &exchange{what: "GET " + address(u), out: WireHandshake, in: WireHandshake, stream: stream}, nil)
}

func (t *tapped) exchange(ctx context.Context, x *exchange, body []byte) (context.Context, *exchange) {
	if t == nil {
		return ctx, nil
	}
	x.tapped, x.begun, x.steps = t, time.Now(), map[string]time.Time{}
	x.record(WireRecord{Dir: Outgoing, Kind: x.out, Stream: x.stream, Text: x.what, Size: len(body), Raw: body})
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart: func(i httptrace.DNSStartInfo) { x.begin("lookup") },
		DNSDone: func(i httptrace.DNSDoneInfo) {
			var found []string
			for _, a := range i.Addrs[:min(len(i.Addrs), 4)] {
				found = append(found, a.String())
			}
			x.step("lookup", WireLookUp, strings.Join(found, ", "), i.Err)
		},
		ConnectStart: func(_, addr string) { x.begin(addr) },
		ConnectDone:  func(_, addr string, err error) { x.step(addr, WireConnect, addr, err) },

		TLSHandshakeStart: func() { x.begin("tls") },
		TLSHandshakeDone: func(state tls.ConnectionState, err error) {
			x.step("tls", WireTLS, describeTLS(state), err)
		},
	}), x
}

// address is a URL without what may be secret in it.
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
		text += fmt.Sprintf(", certificate for %s by %s", madeOutTo(leaf), issuer(leaf))
	}
	return text
}

func (x *exchange) begin(step string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.steps[step] = time.Now()
}

func (x *exchange) step(step string, kind WireKind, text string, err error) {
	x.mu.Lock()
	begun, known := x.steps[step]
	x.mu.Unlock()
	r := WireRecord{Kind: kind, Stream: x.stream, Text: text}
	if known {
		r.Took = time.Since(begun)
	}
	if err != nil {
		r.Fault, r.Text = true, lastCause(err)
		if kind == WireConnect {
			r.Text = text + ": " + r.Text
		}
	}
	x.record(r)
}

// answered records an answer and its body, as far as that is JSON.
func (x *exchange) answered(resp *http.Response, body []byte) {
	if x == nil {
		return
	}
	r := WireRecord{Dir: Incoming, Kind: x.in, Stream: x.stream, Code: resp.StatusCode, Size: len(body), Took: time.Since(x.begun),
		Fault: resp.StatusCode/100 != 2 && resp.StatusCode != http.StatusSwitchingProtocols}
	said := []string{resp.Proto}
	for _, name := range []string{"Retry-After", "X-Request-Id", "Via", "Location"} {
		if v := resp.Header.Get(name); v != "" {
			said = append(said, name+" "+v)
		}
	}
	r.Text = strings.Join(said, ", ")
	var v any
	switch {
	case len(body) == 0:
	case json.Unmarshal(body, &v) == nil:
		x.secret.learn(v)
		r.Raw = oneLine(body)
	default:
		r.Text += ", " + excerpt(resp.Header.Get("Content-Type"), body)
	}
	x.record(r)
}

// failed records that no answer came, with the error that people get.
func (x *exchange) failed(err error) {
	if x == nil {
		return
	}
	r := WireRecord{Kind: WireFailure, Stream: x.stream, Took: time.Since(x.begun), Fault: true, Text: x.what + ": " + err.Error()}
	if hint := hintOf(err); hint != "" {
		r.Text += ": " + hint
	}
	x.record(r)
}
