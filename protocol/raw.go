package protocol

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/gorilla/websocket"
)

// Do sends a request as it is: without the API key, without a second try, and
// without following where it is sent on to. It is for programs that look at
// single answers; an error of the network carries a hint.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", c.userAgent)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, explain(req.Context(), req.URL, c.timeout, err)
	}
	return resp, nil
}

// Dial opens the address of a stream and leaves the frames to the caller. The
// answer comes back also when it is no WebSocket; then the error is nil and so
// is the connection.
func (c *Client) Dial(ctx context.Context, address string) (*websocket.Conn, *http.Response, error) {
	u, err := c.streamURL(address)
	if err != nil {
		return nil, nil, err
	}
	conn, resp, err := c.streamDialer().DialContext(ctx, u.String(), http.Header{"User-Agent": {c.userAgent}})
	if resp != nil && errors.Is(err, websocket.ErrBadHandshake) {
		return nil, resp, nil
	}
	if err != nil {
		return nil, nil, explain(ctx, u, c.timeout, err)
	}
	return conn, resp, nil
}

// streamDialer opens streams.
func (c *Client) streamDialer() *websocket.Dialer {
	conf := c.tls.Clone()
	conf.NextProtos = []string{"http/1.1"} // a WebSocket does not begin in HTTP/2 here
	return &websocket.Dialer{
		Proxy:            http.ProxyFromEnvironment,
		NetDialContext:   c.dialer().DialContext,
		TLSClientConfig:  conf,
		HandshakeTimeout: c.timeout,
		WriteBufferSize:  ChunkBytes + 64, // one chunk, one write
	}
}

// Secrets are words that no output may hold: keys, tokens, signed addresses.
// The zero value holds none. It is safe for concurrent use.
type Secrets struct{ words redactor }

// Add takes a word; one that is too short would be found by chance.
func (s *Secrets) Add(word string) { s.words.add(word) }

// AddURL takes every value of an address's query.
func (s *Secrets) AddURL(address string) {
	if u, err := url.Parse(address); err == nil {
		s.words.addQuery(u)
	}
}

// Hide is text without the secrets, and without the query of any address.
func (s *Secrets) Hide(text string) string { return s.words.text(text) }
