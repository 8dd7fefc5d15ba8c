package conform

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

var tokenRules = []Rule{
	{Name: "token/opens", Expected: "the address of a stream opens as a WebSocket, without an API key", Section: "Stream token", check: func(p *prober) string {
		p.handshake(p.create().URL).expect(http.StatusSwitchingProtocols)
		return "101"
	}},
	{Name: "token/once", Expected: "a token opens its stream once: a second handshake is refused", Section: "Stream token", check: func(p *prober) string {
		r := p.openTwice()
		if r.status < 400 {
			differs("the second handshake returned %d", r.status)
		}
		return fmt.Sprintf("the second handshake returned %d", r.status)
	}},
	{Name: "token/used", Expected: "a handshake with a used token fails with 401, an ApiError", Section: "Stream token", Chosen: true, check: func(p *prober) string {
		p.openTwice().expectAPIError(http.StatusUnauthorized)
		return "401"
	}},
	{Name: "token/wrong", Expected: "a handshake with a wrong, missing or empty token fails with 401, an ApiError", Section: "Stream token", Chosen: true, check: func(p *prober) string {
		made := p.create()
		for _, wrong := range []struct{ what, address string }{
			{"a wrong token", withToken(made.URL, strings.Repeat("A", 43))},
			{"an empty one", withToken(made.URL, "")},
			{"none", withToken(made.URL)},
		} {
			r := p.handshake(wrong.address)
			if err := try(func() { r.expectAPIError(http.StatusUnauthorized) }); err != nil {
				differs("with %s: %v", wrong.what, err)
			}
		}
		return "401"
	}},
	{Name: "token/other-stream", Expected: "a token opens no other stream", Section: "Stream token", check: func(p *prober) string {
		mine, other := p.create(), p.create()
		m, err1 := url.Parse(mine.URL)
		o, err2 := url.Parse(other.URL)
		if err1 != nil || err2 != nil {
			differs("the url is not an address")
		}
		if m.Host+m.Path == o.Host+o.Path {
			skipped("all streams have one address, and only the token differs")
		}
		r := p.handshake(withToken(other.URL, m.Query().Get("token")))
		if r.status < 400 {
			differs("the token of one stream opened another: %d", r.status)
		}
		return fmt.Sprintf("it returned %d", r.status)
	}},
	{Name: "token/race", Expected: "of six concurrent handshakes with one token exactly one succeeds", Section: "Stream token", Chosen: true, check: func(p *prober) string {
		p.open().close() // if none can be opened, this is no race
		made := p.create()
		const clients = 6
		var statuses [clients]int
		var errs [clients]*failure
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() { errs[i] = try(func() { statuses[i] = p.handshake(made.URL).status }) })
		}
		all.Wait()
		opened, refused := 0, 0
		for i, status := range statuses {
			if errs[i] != nil {
				panic(errs[i])
			}
			switch status {
			case http.StatusSwitchingProtocols:
				opened++
			case http.StatusUnauthorized:
				refused++
			}
		}
		if opened != 1 || refused != clients-1 {
			differs("of %d, %d succeeded and %d failed with 401", clients, opened, refused)
		}
		return "one succeeded, five failed with 401"
	}},
	{Name: "token/lifetime", Expected: "an unused token is not valid after 10 minutes", Section: "Stream token", Chosen: true, Slow: true, step: oldToken, check: func(p *prober) string {
		oldToken.of(p).expectAPIError(http.StatusUnauthorized)
		return "401 after 10 minutes and 5 s"
	}},
}

// handshake opens an address and returns the response; a connection that was
// opened is closed again.
func (p *prober) handshake(address string) *response {
	conn, r := p.upgrade(address, http.Header{})
	if conn != nil {
		_ = conn.Close()
	}
	return r
}

// upgrade opens an address and returns the response; without a connection it was
// refused.
func (p *prober) upgrade(address string, head http.Header) (*websocket.Conn, *response) {
	conn, resp, err := p.Client.Dial(p.ctx, address, head)
	if err != nil {
		differs("the handshake: %v", err)
	}
	r := &response{request: "the handshake", status: resp.StatusCode, header: resp.Header}
	if conn != nil {
		return conn, r
	}
	defer resp.Body.Close()
	body := make([]byte, 4096)
	n, _ := resp.Body.Read(body) // gorilla has read it with the header
	r.body = body[:n]
	return nil, r
}

// openTwice opens one address a second time while its stream is open.
func (p *prober) openTwice() *response {
	made := p.create()
	s := p.dial(made)
	defer s.close()
	return p.handshake(made.URL)
}

// withToken is an address with another token, or with none.
func withToken(address string, token ...string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	q := u.Query()
	q["token"] = token
	u.RawQuery = q.Encode()
	return u.String()
}

// oldToken is a handshake with a token after its lifetime.
var oldToken = share(func(p *prober) *response {
	made := p.create()
	p.sleep(10*time.Minute + 5*time.Second)
	return p.handshake(made.URL)
})
