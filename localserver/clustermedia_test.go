package localserver

import (
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// clusterOfMedia: what is stored through one node is read through another, its
// addresses work on every node, and all nodes together let through what one
// would.
func clusterOfMedia(t *testing.T, nats []*natsServer) {
	node := func(n *natsServer) *host {
		return serve(t, limitOf(0), func(o *Options) { o.NATS = n.url })
	}
	a, b := node(nats[0]), node(nats[1])
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

	var through, away atomic.Int64
	var all sync.WaitGroup
	for i := range 120 {
		h := []*host{a, b}[i%2]
		all.Go(func() {
			switch res := h.do("GET", "/v1/test", testKey, nil); res.StatusCode {
			case 200:
				through.Add(1)
			case 429:
				away.Add(1)
			default:
				t.Errorf("%d %s", res.StatusCode, res.body)
			}
		})
	}
	all.Wait()
	if through.Load() != 100 || away.Load() != 20 {
		t.Errorf("%d requests got through, %d did not", through.Load(), away.Load())
	}

	// Without one of the servers all of it goes on.
	nats[2].kill()
	eventually(t, "an object again", func() bool {
		return a.at("PUT", a.ask("input", "media://y"), strings.NewReader("later")).StatusCode == 200
	})
	eventually(t, "and its bytes", func() bool {
		res := b.at("GET", b.ask("output", "media://y"), nil)
		return res.StatusCode == 200 && string(res.body) == "later"
	})
	eventually(t, "the earlier one too", func() bool {
		res := b.at("GET", b.ask("output", "media://x"), nil)
		return res.StatusCode == 200 && string(res.body) == body[2:]
	})
}
