package conform

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hubbub/protocol"
)

var tokenRules = []Rule{
	{Name: "token/opens", Expected: "the address of a stream opens as a WebSocket, without an API key", Section: "Stream token", check: tokenOpens},
	{Name: "token/once", Expected: "a token opens its stream once: a second handshake is refused", Section: "Stream token", check: tokenOnce},
	{Name: "token/used", Expected: "a handshake with a used token fails with 401, an ApiError", Section: "Stream token", Chosen: true, check: tokenUsed},
	{Name: "token/wrong", Expected: "a handshake with a wrong, missing or empty token fails with 401, an ApiError", Section: "Stream token", Chosen: true, check: tokenWrong},
	{Name: "token/other-stream", Expected: "a token opens no other stream", Section: "Stream token", check: tokenOther},
	{Name: "token/race", Expected: "of six concurrent handshakes with one token exactly one succeeds", Section: "Stream token", Chosen: true, check: tokenRace},
	{Name: "token/lifetime", Expected: "an unused token is not valid after 10 minutes", Section: "Stream token", Chosen: true, Slow: true, check: tokenLifetime},
}

// handshake opens an address and returns the response; a connection that was
// opened is closed again.
func (p *prober) handshake(ctx context.Context, address string) (*response, error) {
	conn, resp, err := p.Client.Dial(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("the handshake: %w", err)
	}
	r := &response{request: "the handshake", status: resp.StatusCode, header: resp.Header}
	if conn != nil {
		_ = conn.Close()
		return r, nil
	}
	defer resp.Body.Close()
	body := make([]byte, 4096)
	n, _ := resp.Body.Read(body) // gorilla has read it with the header
	r.body = body[:n]
	return r, nil
}

func tokenOpens(ctx context.Context, p *prober) (string, error) {
	made, err := p.create(ctx)
	if err != nil {
		return "", err
	}
	r, err := p.handshake(ctx, made.URL)
	if err != nil {
		return "", err
	}
	return "101", r.is(http.StatusSwitchingProtocols)
}

// openTwice opens one address a second time while its stream is open.
func (p *prober) openTwice(ctx context.Context) (*response, error) {
	made, err := p.create(ctx)
	if err != nil {
		return nil, err
	}
	s, err := p.dial(ctx, made)
	if err != nil {
		return nil, err
	}
	defer s.close()
	return p.handshake(ctx, made.URL)
}

func tokenOnce(ctx context.Context, p *prober) (string, error) {
	r, err := p.openTwice(ctx)
	if err != nil {
		return "", err
	}
	if r.status < 400 {
		return "", differs("the second handshake returned %d", r.status)
	}
	return fmt.Sprintf("the second handshake returned %d", r.status), nil
}

func tokenUsed(ctx context.Context, p *prober) (string, error) {
	r, err := p.openTwice(ctx)
	if err != nil {
		return "", err
	}
	return "401", r.apiError(http.StatusUnauthorized)
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

func tokenWrong(ctx context.Context, p *prober) (string, error) {
	made, err := p.create(ctx)
	if err != nil {
		return "", err
	}
	for what, address := range map[string]string{
		"a wrong token": withToken(made.URL, strings.Repeat("A", 43)),
		"an empty one":  withToken(made.URL, ""),
		"none":          withToken(made.URL),
	} {
		r, err := p.handshake(ctx, address)
		if err != nil {
			return "", err
		}
		if err := r.apiError(http.StatusUnauthorized); err != nil {
			return "", differs("with %s: %v", what, err)
		}
	}
	return "401", nil
}

func tokenOther(ctx context.Context, p *prober) (string, error) {
	mine, err := p.create(ctx)
	if err != nil {
		return "", err
	}
	other, err := p.create(ctx)
	if err != nil {
		return "", err
	}
	m, err1 := url.Parse(mine.URL)
	o, err2 := url.Parse(other.URL)
	if err1 != nil || err2 != nil {
		return "", differs("the url is not an address")
	}
	if m.Host+m.Path == o.Host+o.Path {
		return "", skipped("all streams have one address, and only the token differs")
	}
	r, err := p.handshake(ctx, withToken(other.URL, m.Query().Get("token")))
	if err != nil {
		return "", err
	}
	if r.status < 400 {
		return "", differs("the token of one stream opened another: %d", r.status)
	}
	return fmt.Sprintf("it returned %d", r.status), nil
}

func tokenRace(ctx context.Context, p *prober) (string, error) {
	made, err := p.create(ctx)
	if err != nil {
		return "", err
	}
	const clients = 6
	type outcome struct {
		r   *response
		err error
	}
	out := make(chan outcome, clients)
	for range clients {
		go func() {
			r, err := p.handshake(ctx, made.URL)
			out <- outcome{r, err}
		}()
	}
	opened, refused := 0, 0
	for range clients {
		o := <-out
		if o.err != nil {
			err = o.err
			continue
		}
		switch o.r.status {
		case http.StatusSwitchingProtocols:
			opened++
		case http.StatusUnauthorized:
			refused++
		}
	}
	if err != nil {
		return "", err
	}
	if opened != 1 || refused != clients-1 {
		return "", differs("of %d, %d succeeded and %d failed with 401", clients, opened, refused)
	}
	return "one succeeded, five failed with 401", nil
}

// oldToken uses a token after its lifetime.
func (p *prober) oldToken(ctx context.Context) (*response, error) {
	return p.oldTokenOnce.get(func() (*response, error) {
		made, err := p.create(ctx)
		if err != nil {
			return nil, err
		}
		if err := protocol.Sleep(ctx, 10*time.Minute+5*time.Second); err != nil {
			return nil, err
		}
		return p.handshake(ctx, made.URL)
	})
}

func tokenLifetime(ctx context.Context, p *prober) (string, error) {
	r, err := p.oldToken(ctx)
	if err != nil {
		return "", err
	}
	return "401 after 10 minutes and 5 s", r.apiError(http.StatusUnauthorized)
}
