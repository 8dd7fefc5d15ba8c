// Package client talks to a diarization service: HTTP operations, streams over
// WebSocket, streams that reconnect and resume, watching of other clients'
// streams, and a probe of the connection. Errors name what happened and carry a
// method Hint that says what to do.
//
// Where to look: request.go has the HTTP operations, dial.go and stream.go one stream,
// resilient.go one that outlives its connections, with sendbuffer.go and sender.go for its
// audio and merger.go for its events, tracks.go several at once, watcher.go and follow.go
// watching. streamsession.go is what these have in common, reconnect.go the policy of
// reconnecting; errors.go explains errors.
package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/trace"
)

// DefaultTimeout bounds one HTTP request, from the name lookup to the last byte
// of the response, and the opening of a stream.
const DefaultTimeout = 15 * time.Second

// Options configure a Client.
type Options struct {
	// BaseURL is the address that the paths of the service (/v1/...) are
	// appended to: https://HOST, with a port and a path if needed. http:// is
	// accepted and unencrypted.
	BaseURL string
	// APIKey is sent in the header Authorization of requests to BaseURL, and
	// nowhere else.
	APIKey string
	// CAFile is a PEM file with certificates that are trusted in addition to the
	// system's authorities.
	CAFile string
	// CACert is PEM. Its certificates are trusted, and with them only those of
	// CAFile.
	CACert []byte
	// Now is the time for which certificates must be valid; nil = now.
	Now func() time.Time
	// Insecure accepts any certificate.
	Insecure bool
	// Timeout bounds one request; 0 = DefaultTimeout.
	Timeout time.Duration
	// Patience is how much longer than usual a stream waits for a slow service.
	Patience time.Duration
	// UserAgent is the header User-Agent; "" = "hubbub".
	UserAgent string
	// Tracer receives a record of everything that goes over the connection; nil =
	// no records.
	Tracer trace.Tracer
	// Waiting, unless nil, is called when a request is refused and will be repeated after a
	// time that the service asks for.
	Waiting func(refusal error, wait time.Duration)
}

// Client talks to one service. It is safe for concurrent use.
type Client struct {
	base      *url.URL // no slash at the end of its path
	key       string
	userAgent string
	timeout   time.Duration
	tls       *tls.Config
	http      *http.Client
	config    config
	redactor  *trace.Redactor // for what a service repeats
	tracer    *tracer         // nil = not traced
	streams   atomic.Int64    // opened so far, for the records
	waiting   func(refusal error, wait time.Duration)

	// wait sleeps between a request and its one retry.
	wait func(ctx context.Context, d time.Duration) error
}

// New checks the options. It opens no connection.
func New(o Options) (*Client, error) {
	base, err := ParseAddress(o.BaseURL)
	if err != nil {
		return nil, err
	}
	key := strings.TrimSpace(o.APIKey)
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	conf, err := tlsConfig(o)
	if err != nil {
		return nil, err
	}
	c := &Client{base: base, key: key, tls: conf, userAgent: cmp.Or(o.UserAgent, "hubbub"), timeout: cmp.Or(o.Timeout, DefaultTimeout),
		config: defaultConfig(), redactor: trace.NewRedactor(key), waiting: o.Waiting, wait: protocol.Sleep}
	c.config.patience = o.Patience
	if o.Tracer != nil {
		c.tracer = &tracer{sink: o.Tracer, redactor: c.redactor}
	}
	c.http = &http.Client{
		Timeout: c.timeout,
		Transport: &http.Transport{
			Proxy:                  proxyOfEnvironment,
			DialContext:            c.dialer().DialContext,
			TLSClientConfig:        conf.Clone(), // net/http adds HTTP/2 to it
			TLSHandshakeTimeout:    c.timeout,
			ResponseHeaderTimeout:  c.timeout,
			MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConns:           4,
			IdleConnTimeout:        30 * time.Second,
			ForceAttemptHTTP2:      true,
			OnProxyConnectResponse: func(_ context.Context, proxy *url.URL, req *http.Request, resp *http.Response) error {
				return tunnelRefused(proxy, req.Host, resp)
			},
		},
		// A redirection could send the key to another host, or turn a POST into
		// a GET.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

func (c *Client) dialer() *net.Dialer {
	return &net.Dialer{Timeout: c.timeout, KeepAlive: 15 * time.Second}
}

// BaseURL is the address of the service, without a slash at its end.
func (c *Client) BaseURL() string { return c.base.String() }

// Close closes idle connections. Streams are closed separately.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Ready asks the service once whether it accepts streams, without its API key.
func (c *Client) Ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath("readyz").String(), nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a part is good enough
	kind := resp.Header.Get("Content-Type")
	switch page := isPage(kind, body); { // a page is of something else
	case page && resp.StatusCode == http.StatusOK:
		return hint.Errorf(hintPortal+" Otherwise check --server.", "the response to GET /readyz is not the service's: %s", c.clean(excerpt(kind, body), maxMessage))
	case page, resp.StatusCode/100 == 3:
		return c.responseError(resp, body)
	case resp.StatusCode != http.StatusOK:
		return hint.Errorf("Its log says why.", "the service is not ready: %s", protocol.Clean(resp.Status, 60))
	}
	return nil
}

// CreateStream creates a stream. A nil input is an empty object.
func (c *Client) CreateStream(ctx context.Context, input map[string]any) (live protocol.LiveStream, err error) {
	err = c.retried(ctx, func() error {
		live, err = c.CreateOnce(ctx, input)
		return err
	})
	return live, err
}

// CreateOnce is CreateStream for callers that retry by themselves.
func (c *Client) CreateOnce(ctx context.Context, input map[string]any) (protocol.LiveStream, error) {
	if input == nil {
		input = map[string]any{}
	}
	body, err := json.Marshal(input)
	if err != nil {
		return protocol.LiveStream{}, fmt.Errorf("the input of the stream cannot be encoded as JSON: %w", err)
	}
	var out protocol.LiveStream
	if _, err := c.once(ctx, http.MethodPost, "/v1/live", body, &out); err != nil {
		return protocol.LiveStream{}, err
	}
	if out.ID == "" || out.URL == "" {
		return protocol.LiveStream{}, hint.Errorf(hintWrongService, "the service created a stream but returned no id and url")
	}
	return out, nil
}

// StreamStatus returns the status of a stream of this account.
func (c *Client) StreamStatus(ctx context.Context, id string) (protocol.LiveStatus, error) {
	if !validID(id) {
		return protocol.LiveStatus{}, fmt.Errorf("%q is not the id of a stream", protocol.Clean(id, 64))
	}
	var out protocol.LiveStatus
	err := c.call(ctx, http.MethodGet, "/v1/live/"+url.PathEscape(id), &out)
	return out, err
}

// ParseAddress checks and normalises the address of a service. Its errors have a
// hint.
func ParseAddress(raw string) (*url.URL, error) {
	const fix = "Give it as https://HOST, with :PORT and a path if the service has them."
	raw = strings.TrimSpace(raw)
	shown := protocol.Clean(protocol.ShownAddress(raw), 200)
	if raw == "" {
		return nil, hint.Errorf(fix, "the address of the service is empty")
	}
	u, err := url.Parse(raw)
	if !strings.Contains(raw, "://") {
		scheme := "Write https://" + strings.TrimLeft(shown, "/")
		if shown == protocol.HiddenAddress {
			scheme = fix
		}
		return nil, hint.Errorf(scheme, "the address of the service has no scheme: %s", shown)
	}
	if err != nil { // its text repeats the address, which may contain a password
		return nil, hint.Errorf(fix, "the address of the service cannot be parsed")
	}
	switch u.Scheme = strings.ToLower(u.Scheme); u.Scheme {
	case "https", "http":
	case "ws", "wss":
		http := map[string]string{"ws": "http", "wss": "https"}[u.Scheme]
		return nil, hint.Errorf("Give the address of the HTTP operations, it begins with "+http+"://; the service returns the address of the stream.",
			"the address of the service begins with %s://", u.Scheme)
	default:
		return nil, hint.Errorf(fix, "the address of the service begins with %s://, which is not https://", protocol.Clean(u.Scheme, 20))
	}
	switch {
	case u.User != nil:
		return nil, hint.Errorf("Remove them and give the API key with --api-key or HUBBUB_API_KEY.", "the address of the service contains a user name or password")
	case u.Hostname() == "":
		return nil, hint.Errorf(fix, "the address of the service has no host name: %s", shown)
	case !protocol.ValidPort(u):
		return nil, hint.Errorf(fix, "the address of the service has no port from 1 to 65535: %s", shown)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, hint.Errorf(fix, "the address of the service may not have a part after ? or #")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = strings.TrimRight(u.RawPath, "/")
	if strings.HasSuffix(u.Path, "/v1") {
		return nil, hint.Errorf("Remove /v1 from its end; hubbub adds it.", "the address of the service ends in /v1")
	}
	return u, nil
}

// CheckKey checks that an API key can be sent in a header. Its errors do not show
// the key.
func CheckKey(key string) error {
	if key == "" {
		return hint.Errorf("Give it with --api-key or HUBBUB_API_KEY.", "there is no API key for the service")
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return hint.Errorf("Give it with --api-key or HUBBUB_API_KEY, as one word without line breaks.", "the API key contains a character that keys cannot have")
		}
	}
	return nil
}
