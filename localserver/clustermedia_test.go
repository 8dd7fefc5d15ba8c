package localserver

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubbub/protocol"
)

// clusterOfMedia: what is stored through one node is read through another, its
// addresses work on every node, and all nodes together let through what one
// would.
func clusterOfMedia(t *testing.T, nats []*natsServer) {
	dir := t.TempDir()
	node := func(n *natsServer, dir string) *host {
		return serve(t, limitOf(0), func(o *Options) {
			o.NATS, o.DataDir, o.MaxAccountStreams = n.url, dir, 2
			o.headTimeout = patience // a burst of TLS handshakes takes its time on a busy machine
		})
	}
	a, b := node(nats[0], dir), node(nats[1], "")
	elsewhere := func(address string, h *host) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return h.url + u.Path
	}
	body := strings.Repeat("0123456789abcdef", 1<<16)
	eventually(t, "a first object", func() bool { // leaders are still being elected
		return a.at("PUT", a.ask("input", "media://x"), strings.NewReader("first")).StatusCode == 200
	})
	for i := range 3 {
		from, to := a, b
		if i%2 == 1 {
			from, to = b, a
		}
		now := body[i:]
		if res := to.at("PUT", elsewhere(from.ask("input", "media://x"), to), strings.NewReader(now)); res.StatusCode != 200 {
			t.Fatalf("put through the other node: %d %s", res.StatusCode, res.body)
		}
		// Read at once, and everywhere.
		for _, h := range []*host{a, b} {
			if res := h.at("GET", elsewhere(from.ask("output", "media://x"), h), nil); res.StatusCode != 200 || string(res.body) != now {
				t.Errorf("get: %d, %d bytes", res.StatusCode, len(res.body))
			}
		}
	}

	// A request that the nodes cannot count in time is answered 503 and may have
	// been counted; nothing else takes from the hundred, or adds to it.
	var through, away, lost atomic.Int64
	var all sync.WaitGroup
	at := func(requests int, ask func(h *host)) {
		const clients = 24 // at once, on both nodes
		for i := range clients {
			h := []*host{a, b}[i%2]
			all.Go(func() {
				for range requests / clients {
					ask(h)
				}
			})
		}
		all.Wait()
	}
	at(120, func(h *host) {
		eventually(t, "an answer", func() bool {
			res := h.do("GET", "/v1/test", testKey, nil)
			switch res.StatusCode {
			case 200:
				through.Add(1)
			case 429:
				away.Add(1)
			case 503:
				lost.Add(1)
				return false
			default:
				t.Errorf("%d %s", res.StatusCode, res.body)
			}
			return true
		})
	})
	if n := through.Load(); n > 100 || n+lost.Load() < 100 || n+away.Load() != 120 {
		t.Errorf("%d requests got through, %d did not, %d were not counted in time", n, away.Load(), lost.Load())
	}

	keysOfAllNodes(t, a, b, dir)
	streamsOfAnAccount(t, a, b)

	// Without one of the servers all of it goes on; nor does an election let
	// anything through that is not counted.
	nats[2].kill()
	through.Store(0)
	at(144, func(h *host) {
		switch res := h.do("GET", "/v1/live/x", testKey, nil); res.StatusCode {
		case 404:
			through.Add(1)
		case 429, 503:
		default:
			t.Errorf("%d %s", res.StatusCode, res.body)
		}
	})
	if through.Load() > 100 {
		t.Errorf("during an election %d requests got through", through.Load())
	}
	patientAsk := func(h *host, op, location string) (address string) {
		eventually(t, "an address", func() bool {
			res := h.do("POST", "/v1/media/"+op, testKey, strings.NewReader(fmt.Sprintf(`{"url":%q}`, location)))
			if res.StatusCode == 503 {
				return false
			}
			var m protocol.MediaLocation
			if err := json.Unmarshal(res.body, &m); err != nil || res.StatusCode != 201 {
				t.Fatalf("%s %s: %d %s", op, location, res.StatusCode, res.body)
			}
			address = m.URL
			return true
		})
		return address
	}
	put := patientAsk(a, "input", "media://y")
	eventually(t, "an object again", func() bool { return a.at("PUT", put, strings.NewReader("later")).StatusCode == 200 })
	for location, want := range map[string]string{"media://y": "later", "media://x": body[2:]} {
		get := patientAsk(b, "output", location)
		eventually(t, "its bytes", func() bool {
			res := b.at("GET", get, nil)
			return res.StatusCode == 200 && string(res.body) == want
		})
	}
}

// keysOfAllNodes: an API key of one node's data folder is good on all of them,
// as long as its signing key lies there.
func keysOfAllNodes(t *testing.T, a, b *host, dir string) {
	t.Helper()
	now := time.Now()
	answers := func(what, key string, want int) {
		t.Helper()
		for _, h := range []*host{a, b} {
			eventually(t, what, func() bool {
				got := h.do("GET", "/v1/live/x", key, nil).StatusCode
				return got == want
			})
		}
	}
	first := mustKey(t, dir, "one", PlanPro, time.Hour, now)
	answers("a key", first, 404)
	id, err := MakeSigningKey(dir, HS256, now.Add(time.Second)) // rotation
	if err != nil {
		t.Fatal(err)
	}
	second := mustKey(t, dir, "two", PlanPro, time.Hour, now)
	answers("a key after the rotation", second, 404)
	answers("the one before", first, 404)
	answers("another plan", mustKey(t, dir, "three", PlanNone, time.Hour, now), 402)
	if err := os.Remove(filepath.Join(dir, keysFolder, id+keyEnding)); err != nil {
		t.Fatal(err)
	}
	answers("a key whose signing key was taken away", second, 401)
	answers("another one", first, 404)
}

// streamsOfAnAccount: both nodes together have as many as an account may.
func streamsOfAnAccount(t *testing.T, a, b *host) {
	t.Helper()
	full := func(waiting ...protocol.LiveStream) {
		t.Helper()
		for _, h := range []*host{a, b} {
			h.do("POST", "/v1/live", testKey, nil).apiError(t, 429)
			for _, l := range waiting {
				h.refused(h.here(l.URL), 429)
			}
		}
	}
	x, y, waiting := a.patientCreate(), b.patientCreate(), a.patientCreate()
	onA, onB := a.openAt(x), b.openAt(y)
	full(waiting)
	onA.end()
	if _, code, _ := onA.rest(); code != 1000 {
		t.Errorf("code %d", code)
	}
	eventually(t, "a place", func() bool { return a.streams.count() == 0 })
	onB2 := b.openAt(waiting) // its token is as good as before
	full()
	for _, s := range []*stream{onB, onB2} {
		s.end()
		s.rest()
	}
}
