package localserver

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/apikeys"
	"hubbub/localserver/store"
	"hubbub/localserver/stream"
	"hubbub/protocol/testkit"
)

// refusal dials and returns the response, which does not open a WebSocket.
func (h *host) refusal(address string, head http.Header) reply {
	h.t.Helper()
	conn, res, err := h.dial.Dial(address, head)
	if err == nil {
		_ = conn.Close()
		h.t.Fatalf("%s was opened", address)
	}
	if res == nil {
		h.t.Fatalf("no response: %v", err)
	}
	return read(h.t, res)
}

// refused dials and expects an error response.
func (h *host) refused(address string, status int) {
	h.t.Helper()
	h.refusal(address, nil).apiError(h.t, status)
}

// Of many concurrent clients with one token, exactly one gets the stream. The others are
// told that the token is used, also if this stream fills the server.
func TestTokenWorksOnceInARace(t *testing.T) {
	t.Parallel()
	h := serve(t, func(o *setup) { o.MaxStreams = 1 })
	l := h.create()
	const racers = 50
	var won, refused atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range racers {
		wg.Go(func() {
			<-start
			conn, res, err := h.dial.Dial(l.URL, nil)
			switch {
			case err == nil:
				won.Add(1)
				_ = conn.Close()
			case res != nil && res.StatusCode == 401:
				refused.Add(1)
			default:
				t.Errorf("neither: %v", err)
			}
		})
	}
	close(start)
	wg.Wait()
	if won.Load() != 1 || refused.Load() != racers-1 {
		t.Errorf("%d won, %d refused", won.Load(), refused.Load())
	}
	testkit.Equal(t, h.counters.Opened.Load(), 1, "streams were opened")
}

func TestTokenExpires(t *testing.T) {
	t.Parallel()
	c := newClock()
	h := serve(t, c.use)
	early, late := h.create(), h.create()
	c.move(store.TokenTTL - time.Second)
	_ = h.openNow(early).Close()
	testkit.Equal(t, h.status(late.ID).Status, "created", "before")
	c.move(time.Second)
	h.refused(late.URL, 401)
	if s := h.status(late.ID); s.Status != "error" || s.StartedAt != nil || s.CompletedAt == nil {
		t.Errorf("after: %+v", s)
	}
}

// A request that is not a valid handshake must not use up its token.
func TestInvalidHandshakeKeepsTheToken(t *testing.T) {
	t.Parallel()
	h := serve(t)
	l := h.create()
	address := strings.Replace(l.URL, "wss", "https", 1)
	for name, c := range map[string]struct {
		change func(http.Header)
		status int
	}{
		"plain":       {func(h http.Header) { clear(h) }, 426},
		"no upgrade":  {func(h http.Header) { h.Del("Upgrade") }, 426},
		"other":       {func(h http.Header) { h.Set("Upgrade", "h2c") }, 426},
		"old version": {func(h http.Header) { h.Set("Sec-Websocket-Version", "8") }, 426},
		"no version":  {func(h http.Header) { h.Del("Sec-Websocket-Version") }, 426},
		"no key":      {func(h http.Header) { h.Del("Sec-Websocket-Key") }, 400},
		"short key":   {func(h http.Header) { h.Set("Sec-Websocket-Key", "AAAA") }, 400},
		"bad key":     {func(h http.Header) { h.Set("Sec-Websocket-Key", "&&&&") }, 400},
	} {
		r, _ := http.NewRequest("GET", address, nil)
		r.Header = upgrade.Clone()
		c.change(r.Header)
		t.Run(name, func(t *testing.T) {
			res := h.send(r)
			res.apiError(t, c.status)
			testkit.Equal(t, res.Header.Get("Upgrade") == "websocket", c.status == 426, "Upgrade", res.Header.Get("Upgrade"))
		})
	}
	r, _ := http.NewRequest("HEAD", address, nil)
	r.Header = upgrade.Clone()
	h.send(r).hasStatus(t, "HEAD", 400)
	// A page of another origin may open it: the token is what counts.
	conn, _, err := h.dial.Dial(l.URL, http.Header{"Origin": {"https://elsewhere.example"}})
	if err != nil {
		t.Fatalf("the token is used up: %v", err)
	}
	_ = conn.Close()
}

// HTTP/1.0 has no upgrades.
func TestHandshakeOverHTTP10(t *testing.T) {
	t.Parallel()
	h := serve(t, plain)
	u := testkit.Must(url.Parse(h.create().URL))(t)
	res, _ := h.raw("GET "+u.RequestURI()+" HTTP/1.0\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", false)
	res.apiError(t, 400)
}

// Streams are limited, on the node and for each account.
func TestStreamsHaveALimit(t *testing.T) {
	t.Parallel()
	limitStreams(t, func(o *setup) { o.MaxStreams = 2 }, 429)
	limitStreams(t, func(o *setup) { o.MaxAccountStreams = 2 }, 200)
}

// limitStreams tests a limit of two streams; others is the response to another account
// that creates one.
func limitStreams(t *testing.T, limit func(*setup), others int) {
	t.Helper()
	dir := t.TempDir()
	h := serve(t, limit, func(o *setup) { o.DataDir = dir })
	waiting := h.create()
	first, second := h.open(), h.open()
	res := h.do("POST", "/v1/live", testKey, nil)
	res.apiError(t, 429)
	if res.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	other := mustKey(t, dir, "other", apikeys.PlanPro, time.Now())
	h.do("POST", "/v1/live", other, nil).hasStatus(t, "another account", others)
	h.refused(waiting.URL, 429)
	h.refused(waiting.URL+"x", 401) // trying again would not help its client
	first.end()
	first.closes(websocket.CloseNormalClosure)
	_ = first.Close()
	// There is room again, and the token is still valid.
	testkit.Eventually(t, "room", func() bool { return h.streams.Count() == 1 })
	_ = h.openNow(waiting).Close()
	_ = second.Close()
}

// A handshake that fails because no engine can be started does not use up the token.
func TestEngineThatCannotStart(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func() (stream.Diarizer, error){
		"error": func() (stream.Diarizer, error) { return nil, http.ErrNotSupported },
		"panic": func() (stream.Diarizer, error) { panic("no weights") },
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t, func(o *setup) { o.NewDiarizer = make })
			l := h.create()
			h.refused(l.URL, 500)
			if s := h.status(l.ID); s.Status != "created" {
				t.Errorf("%+v", s)
			}
			testkit.Equal(t, h.streams.Count(), 0, "streams are open")
		})
	}
}
