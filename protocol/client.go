package protocol

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// DefaultTimeout bounds one HTTP request, from the name look-up to the last
// byte of the answer, and the opening of a stream.
const DefaultTimeout = 15 * time.Second

// ClientOptions say which service to talk to, and how.
type ClientOptions struct {
	// BaseURL is what the paths of the service (/v1/...) are appended to:
	// https://HOST, with a port and a path where there is one. http:// is
	// taken as it is given: without encryption.
	BaseURL string
	// APIKey goes into the header Authorization of HTTP requests to BaseURL
	// and nowhere else.
	APIKey string
	// CAFile names a PEM file, CACert holds PEM: certificates trusted beside
	// the system's authorities.
	CAFile string
	CACert []byte
	// Insecure accepts any certificate.
	Insecure bool
	// Timeout is for one request; 0 means DefaultTimeout.
	Timeout time.Duration
	// UserAgent is the header User-Agent; "" means "hubbub".
	UserAgent string
	// Tap is told of everything on the wire; nil = nobody looks.
	Tap Tap
}

// Client talks to one service. It is safe for concurrent use.
type Client struct {
	base      *url.URL // no slash at the end of its path
	key       string
	userAgent string
	timeout   time.Duration
	tls       *tls.Config
	http      *http.Client
	stream    streamConfig
	watch     watchConfig
	tap       *tapped      // nil = nobody looks
	opened    atomic.Int64 // streams, for the tap

	// wait sleeps between a request and its one repetition.
	wait func(ctx context.Context, d time.Duration) error
}

// NewClient checks the options. It opens no connection.
func NewClient(o ClientOptions) (*Client, error) {
	base, err := parseBase(o.BaseURL)
	if err != nil {
		return nil, err
	}
	key, err := parseKey(o.APIKey)
	if err != nil {
		return nil, err
	}
	conf, err := tlsConfig(o)
	if err != nil {
		return nil, err
	}
	c := &Client{base: base, key: key, tls: conf, userAgent: o.UserAgent, timeout: o.Timeout,
		stream: defaultStreamConfig(), watch: defaultWatchConfig(), wait: sleep}
	if c.userAgent == "" {
		c.userAgent = "hubbub"
	}
	if c.timeout <= 0 {
		c.timeout = DefaultTimeout
	}
	if o.Tap != nil {
		c.tap = &tapped{tap: o.Tap, secret: newRedactor(key)}
	}
	c.http = &http.Client{
		Timeout: c.timeout,
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            c.dialer().DialContext,
			TLSClientConfig:        conf.Clone(), // net/http adds HTTP/2 to it
			TLSHandshakeTimeout:    c.timeout,
			ResponseHeaderTimeout:  c.timeout,
			MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConns:           4,
			IdleConnTimeout:        30 * time.Second,
			ForceAttemptHTTP2:      true,
		},
		// Followed, a redirection could carry the key to where nobody
		// wanted it, or turn a POST into a GET.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

func (c *Client) dialer() *net.Dialer {
	return &net.Dialer{Timeout: c.timeout, KeepAlive: 15 * time.Second}
}

// BaseURL is the address of the service, without a slash at its end.
func (c *Client) BaseURL() string { return c.base.String() }

// Close lets go of idle connections. Streams are closed by themselves.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Test asks whether the service is there and takes the API key.
func (c *Client) Test(ctx context.Context) (TestResponse, error) {
	var out TestResponse
	err := c.call(ctx, http.MethodGet, "/v1/test", nil, &out)
	return out, err
}

// CreateStream creates a stream. A nil input is an empty object.
func (c *Client) CreateStream(ctx context.Context, input map[string]any) (LiveStream, error) {
	return c.createStream(ctx, input, c.call)
}

// createStream does it by call, or by once for who waits by himself.
func (c *Client) createStream(ctx context.Context, input map[string]any,
	call func(ctx context.Context, method, path string, body []byte, out any) error) (LiveStream, error) {
	if input == nil {
		input = map[string]any{}
	}
	body, err := json.Marshal(input)
	if err != nil {
		return LiveStream{}, fmt.Errorf("the input of the stream does not go into JSON: %w", err)
	}
	var out LiveStream
	if err := call(ctx, http.MethodPost, "/v1/live", body, &out); err != nil {
		return LiveStream{}, err
	}
	if out.ID == "" || out.URL == "" {
		return LiveStream{}, withHint(hintWrongService, "the service created a stream but gave no id and url for it")
	}
	return out, nil
}

// StreamStatus asks for the status of a stream of this account.
func (c *Client) StreamStatus(ctx context.Context, id string) (LiveStatus, error) {
	if strings.Trim(id, ".") == "" || strings.ContainsAny(id, "/\\") {
		return LiveStatus{}, fmt.Errorf("%q is not the id of a stream", Clean(id, 64))
	}
	var out LiveStatus
	err := c.call(ctx, http.MethodGet, "/v1/live/"+url.PathEscape(id), nil, &out)
	return out, err
}

// parseBase checks the address of a service.
func parseBase(raw string) (*url.URL, error) {
	const hint = "give it as https://HOST, with :PORT and a path where the service has them"
	shown := Clean(raw, 200)
	raw = strings.TrimSpace(raw)
	if raw == "" {
		return nil, withHint(hint, "the address of the service is empty")
	}
	u, err := url.Parse(raw)
	if !strings.Contains(raw, "://") {
		return nil, withHint("write https://"+strings.TrimLeft(shown, "/"), "the address of the service has no scheme: %s", shown)
	}
	if err != nil { // its text repeats the address, and a password in it
		return nil, withHint(hint, "the address of the service cannot be read")
	}
	switch u.Scheme = strings.ToLower(u.Scheme); u.Scheme {
	case "https", "http":
	case "ws", "wss":
		http := map[string]string{"ws": "http", "wss": "https"}[u.Scheme]
		return nil, withHint("give the address of the HTTP operations, it begins with "+http+"://; the stream's own comes from the service",
			"the address of the service begins with %s://", u.Scheme)
	default:
		return nil, withHint(hint, "the address of the service begins with %s://, which is not https://", Clean(u.Scheme, 20))
	}
	switch {
	case u.User != nil:
		return nil, withHint("take them out and give the API key with --api-key or HUBBUB_API_KEY", "the address of the service holds a user name or password")
	case u.Hostname() == "":
		return nil, withHint(hint, "the address of the service has no host name: %s", shown)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, withHint(hint, "the address of the service may not have a part after ? or #")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = strings.TrimRight(u.RawPath, "/")
	if strings.HasSuffix(u.Path, "/v1") {
		return nil, withHint("give it without /v1 at its end; hubbub adds that itself", "the address of the service ends in /v1")
	}
	return u, nil
}

// parseKey checks that the key can stand in a header. It never tells the key.
func parseKey(key string) (string, error) {
	const hint = "give it with --api-key or HUBBUB_API_KEY"
	key = strings.TrimSpace(key)
	if key == "" {
		return "", withHint(hint, "there is no API key for the service")
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return "", withHint(hint+", as one word without line breaks", "the API key holds a character that keys cannot have")
		}
	}
	return key, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
