package main

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"hubbub/protocol"
)

const (
	// skewWorthSaying is how far two clocks may differ without a word.
	skewWorthSaying = 30 * time.Second
	// daysWorthSaying is how long before its end a certificate is a notice.
	daysWorthSaying = 14
)

// stageTitles are the stages, in order.
var stageTitles = [][2]string{
	{"dns", "name look-up"}, {"tcp", "TCP"}, {"tls", "TLS"}, {"key", "key accepted"},
	{"create", "stream created"}, {"websocket", "WebSocket opened"}, {"audio", "audio accepted"},
	{"event", "first event"}, {"lag", "lag"}, {"close", "clean close"}, {"status", "status read"},
}

// checker goes through the stages. Each returns what it found; the first one
// that fails is the last one that runs.
type checker struct {
	server  *connection
	limit   time.Duration // for one step
	key     string        // of a remote service
	speech  []float32
	secrets secrets
	begun   func(title string)

	proxy  string
	probe  *protocol.Probe
	skew   time.Duration
	live   protocol.LiveStream
	flow   *checkFlow
	stages []checkStage

	noClose   bool          // the service did not end the stream
	closeTook time.Duration // from end_of_stream to the close
}

func newChecker(server *connection, limit time.Duration, key string, speech []float32) *checker {
	c := &checker{server: server, limit: limit, key: key, speech: speech, begun: func(string) {}}
	c.secrets.add(key)
	for _, t := range stageTitles {
		c.stages = append(c.stages, checkStage{Name: t[0], Title: t[1], State: stateSkipped})
	}
	return c
}

// run does the stages up to the first that fails, or to the end of ctx.
func (c *checker) run(ctx context.Context) {
	steps := []func(context.Context, *checkStage) error{
		c.lookUp, c.tcp, c.tls, c.keyAccepted, c.create, c.webSocket, c.audio, c.firstEvent, c.lag, c.close, c.status,
	}
	defer func() {
		if c.probe != nil {
			c.probe.Close()
		}
		if c.flow != nil {
			c.flow.end()
		}
	}()
	for i, step := range steps {
		s := &c.stages[i]
		c.begun(s.Title)
		began := time.Now()
		s.State = stateOK
		err := step(ctx, s)
		if s.Millis == 0 {
			s.Millis = millis(time.Since(began))
		}
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			s.State, s.Seen = stateSkipped, "interrupted"
			return
		}
		s.State, s.Cause = stateFailed, err.Error()
		s.Next = hintOf(err, "Try again; if it goes on, give --report FILE to the service's operator.")
		if i < len(steps)-1 {
			c.stages[i+1].Seen = "not tried: " + s.Title + " failed"
		}
		return
	}
}

func millis(d time.Duration) float64 { return math.Round(d.Seconds()*1e4) / 10 }

func (s *checkStage) notice(cause, next string) {
	s.State = stateNotice
	s.Cause, s.Next = cause, next
}

func (c *checker) lookUp(ctx context.Context, s *checkStage) error {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	probe, err := c.server.Probe()
	if err != nil {
		return err
	}
	c.probe, c.proxy = probe, probe.Proxy
	addresses, err := probe.LookUp(ctx)
	if err != nil {
		return c.ofProxy(err)
	}
	s.Seen = probe.Host() + " is " + strings.Join(addresses[:min(len(addresses), 4)], ", ")
	if len(addresses) == 1 && addresses[0] == probe.Host() {
		s.Seen = probe.Host() + " is an address: nothing to look up"
	}
	s.Details = map[string]any{"addresses": addresses}
	return nil
}

func (c *checker) tcp(ctx context.Context, s *checkStage) error {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	to, err := c.probe.Dial(ctx)
	if err != nil {
		return c.ofProxy(err)
	}
	s.Seen = "connected to " + to
	return nil
}

// ofProxy is an error on the way to the proxy, where there is one: then the
// service has nothing to do with it.
func (c *checker) ofProxy(err error) error {
	if c.proxy == "" {
		return err
	}
	return &failure{fmt.Errorf("the proxy cannot be reached: %w", err),
		"The environment names this proxy in HTTPS_PROXY or HTTP_PROXY: mend its address, or except the service with NO_PROXY."}
}

func (c *checker) tls(ctx context.Context, s *checkStage) error {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	info, err := c.probe.TLS(ctx)
	if errors.Is(err, protocol.ErrNoTLS) {
		if strings.HasPrefix(c.server.BaseURL(), "https://") {
			s.notice("the way goes through a proxy that is not plain HTTP", "")
			s.Seen = "not looked at"
			return nil
		}
		s.Seen = "none: the address begins with http://"
		s.notice("key and audio travel unencrypted", "Use https:// unless the service is on this machine.")
		return nil
	}
	if info.Version != "" && !info.NotAfter.IsZero() {
		left := int(math.Floor(time.Until(info.NotAfter).Hours() / 24))
		s.Seen = fmt.Sprintf("%s, %d days left", info, left)
		s.Details = map[string]any{"version": info.Version, "issuer": info.Issuer, "subject": info.Subject,
			"days_left": left, "not_after": info.NotAfter.UTC().Format(time.RFC3339), "name_matches": info.NameMatches, "verified": info.Verified}
		switch {
		case err != nil:
		case !info.Verified:
			s.notice("the certificate would not be accepted without --insecure", "Trust the service's authority with --ca FILE instead.")
		case left < daysWorthSaying:
			s.notice(fmt.Sprintf("the certificate ends in %d days", left), "The service's operator should renew it.")
		}
	}
	var name x509.HostnameError
	if errors.As(err, &name) {
		return &failure{fmt.Errorf("%w, by %s", err, info.Issuer),
			"Use the name that the certificate has in --server. Are all of them unknown to you, something answers in the service's place: a captive portal (open a web page in a browser), or a proxy that opens TLS."}
	}
	if err != nil && strings.Contains(err.Error(), "authority that this machine does not know") {
		return &failure{fmt.Errorf("%w: %s", err, info.Issuer),
			"Your own server: trust its certificate with --ca FILE. In the network of a company or a hotel, that name may be a proxy that opens TLS: ask for its authority's file and give it with --ca."}
	}
	return err
}

func (c *checker) keyAccepted(ctx context.Context, s *checkStage) error {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	out, answer, err := c.server.TestOnce(ctx)
	s.Details = map[string]any{"status": answer.Status, "protocol": answer.Proto, "via": answer.Via}
	skew, known := answer.Skew(time.Now())
	if known {
		s.Details["clock_skew_s"] = math.Round(skew.Seconds())
		c.skew = skew
	}
	if err != nil {
		return c.keyRefused(answer, err)
	}
	s.Seen = fmt.Sprintf("%s over %s", out.Status, answer.Proto)
	if out.Message != "" {
		s.Seen += fmt.Sprintf(", %q", protocol.Clean(out.Message, 80))
	}
	if skew.Abs() > skewWorthSaying {
		s.notice(c.skewed(), "Set this machine's clock (NTP): keys and certificates are judged by it.")
	}
	return nil
}

// skewed says how the clocks differ, or is empty.
func (c *checker) skewed() string {
	if c.skew.Abs() <= skewWorthSaying {
		return ""
	}
	way := "ahead of"
	if c.skew < 0 {
		way = "behind"
	}
	return fmt.Sprintf("this machine's clock is %v %s the service's", c.skew.Abs().Round(time.Second), way)
}

// keyRefused finds more in a failure of the first request than its status says.
func (c *checker) keyRefused(answer protocol.Answer, err error) error {
	switch {
	case answer.Status == http.StatusUnauthorized:
		if end, ok := keyExpiry(c.key); ok && end.Before(time.Now()) {
			return &failure{fmt.Errorf("%w; the key expired on %s", err, end.UTC().Format(time.RFC3339)), "Get a new API key; this one's time is over."}
		}
		if skewed := c.skewed(); skewed != "" {
			return &failure{fmt.Errorf("%w; %s", err, skewed), "Set this machine's clock (NTP), then check the API key: it is wrong or expired."}
		}
	case answer.Status == http.StatusNetworkAuthenticationRequired,
		answer.Status/100 == 3 && answer.Location != "" && !strings.Contains(c.server.BaseURL(), "://"+answer.Location):
		return &failure{fmt.Errorf("%w; it sends us to %s", err, orElse(answer.Location, "a log-in page")),
			"A captive portal may be in between: open a web page in a browser and log in to this network. Or the service has moved: give its new address with --server."}
	case answer.Status/100 == 2 && strings.Contains(strings.ToLower(answer.Type), "html"):
		return &failure{fmt.Errorf("a web page came instead of the service's answer: %w", err),
			"A captive portal may be in between: open a web page in a browser and log in to this network. Else check --server."}
	case answer.Status == 0 && timedOut(err):
		return &failure{err, "The port takes connections, but nothing answers behind it: check that --server is the HTTP service, or wait until it is less busy; --timeout gives it longer."}
	}
	return err
}

func timedOut(err error) bool {
	var timed net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timed) && timed.Timeout()
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// keyExpiry reads the end of a key that is a JWT (RFC 7519, 4.1.4).
func keyExpiry(key string) (time.Time, bool) {
	parts := strings.Split(key, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil || claims.Exp <= 0 || claims.Exp > 1e11 {
		return time.Time{}, false
	}
	return time.Unix(int64(claims.Exp), 0), true
}

func (c *checker) create(ctx context.Context, s *checkStage) error {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	live, err := c.server.CreateOnce(ctx)
	if err != nil {
		return err
	}
	c.live = live
	c.secrets.addURL(live.URL)
	at := "an address that cannot be read"
	if u, err := url.Parse(live.URL); err == nil {
		at = u.Scheme + "://" + u.Host
	}
	s.Seen = fmt.Sprintf("id %s at %s", protocol.Clean(live.ID, 64), protocol.Clean(at, 200))
	s.Details = map[string]any{"id": protocol.Clean(live.ID, 64)}
	return nil
}

// webSocketHint is for a handshake that something on the way has spoilt.
const webSocketHint = "A proxy or load balancer in between may not let WebSockets through: it must pass on the headers Upgrade and Connection over HTTP/1.1. Ask its operator, or except the service with NO_PROXY."

func (c *checker) webSocket(ctx context.Context, s *checkStage) error {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	wire, err := c.server.OpenStream(ctx, c.live.URL)
	if err == nil {
		s.Seen = "open"
		c.flow = follow(wire)
		return nil
	}
	var answer *protocol.APIError
	if errors.As(err, &answer) {
		switch answer.Status {
		case http.StatusBadRequest, http.StatusUpgradeRequired, http.StatusMethodNotAllowed, http.StatusNotImplemented, http.StatusBadGateway:
			return &failure{err, webSocketHint}
		case http.StatusUnauthorized:
			return &failure{err, "The stream's token, made a moment ago, is not taken: it is used up (something on the way opened the address first), or another server answers there (serve: --public-url)."}
		}
		if answer.Status/100 == 2 {
			return &failure{err, webSocketHint}
		}
		return err
	}
	if c.proxy != "" {
		return &failure{fmt.Errorf("through the proxy %s: %w", c.proxy, err), webSocketHint}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || timedOut(err) {
		return &failure{err, webSocketHint}
	}
	return err
}

func (c *checker) status(ctx context.Context, s *checkStage) error {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	status, err := c.server.StreamStatus(ctx, c.live.ID)
	if err != nil {
		return err
	}
	s.Seen = fmt.Sprintf("the service says %q", protocol.Clean(status.Status, 40))
	s.Details = map[string]any{"status": protocol.Clean(status.Status, 40)}
	if status.Status != protocol.StatusDone {
		s.notice(fmt.Sprintf("after a close in order, %q was expected", protocol.StatusDone), "Other services may have other words; with hubbub serve, see the server's log.")
	}
	return nil
}
