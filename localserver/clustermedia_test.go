//go:build unix

package localserver

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubbub/localserver/apikeys"
	"hubbub/localserver/certificate"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// TestClusterOfMedia: what is stored through one node can be read through another,
// addresses are valid on every node, and limits apply to all nodes together.
func TestClusterOfMedia(t *testing.T) {
	nats := natsCluster(t)
	dir := t.TempDir()
	node := func(n *natsServer, dir string) *host {
		return serve(t, limitOf(0), func(o *setup) {
			o.NATS, o.DataDir, o.MaxAccountStreams = n.url, dir, 2
			o.TLS.Mode = certificate.Off // a burst of TLS handshakes takes its time on a busy machine
		})
	}
	a, b := node(nats[0], dir), node(nats[1], "")
	stored := objectsOfBothNodes(t, a, b)
	limitOfBothNodes(t, a, b)
	replacedOnOtherNode(t, a, b)
	keysOfAllNodes(t, a, b, dir)
	streamsOfAnAccount(t, a, b)

	// Without one of the servers everything continues, and during the election no
	// request passes uncounted.
	nats[2].kill()
	var passed atomic.Int64
	burst(a, b, 144, func(h *host) {
		switch res := h.do("GET", "/v1/live/x", testKey, nil); res.StatusCode {
		case 404:
			passed.Add(1)
		case 429, 503:
		default:
			t.Errorf("%d %s", res.StatusCode, res.body)
		}
	})
	if passed.Load() > 100 {
		t.Errorf("during an election %d requests passed", passed.Load())
	}
	put := a.retriedAsk("input", "media://y")
	testkit.Eventually(t, "an object again", func() bool { return a.at("PUT", put, strings.NewReader("later")).StatusCode == 200 })
	for location, want := range map[string]string{"media://y": "later", "media://x": stored} {
		get := b.retriedAsk("output", location)
		testkit.Eventually(t, "its bytes", func() bool {
			res := b.at("GET", get, nil)
			return res.StatusCode == 200 && string(res.body) == want
		})
	}
}

// objectsOfBothNodes stores media://x through either node, by addresses that the
// other one has given, and returns its last content.
func objectsOfBothNodes(t *testing.T, a, b *host) (content string) {
	t.Helper()
	elsewhere := func(address string, h *host) string {
		u := testkit.Must(url.Parse(address))(t)
		return h.url + u.Path
	}
	body := strings.Repeat("0123456789abcdef", 1<<16)
	testkit.Eventually(t, "a first object", func() bool { // leaders are still being elected
		return a.at("PUT", a.ask("input", "media://x"), strings.NewReader("first")).StatusCode == 200
	})
	for i := range 3 {
		from, to := a, b
		if i%2 == 1 {
			from, to = b, a
		}
		content = body[i:]
		if res := to.at("PUT", elsewhere(from.ask("input", "media://x"), to), strings.NewReader(content)); res.StatusCode != 200 {
			t.Fatalf("put through the other node: %d %s", res.StatusCode, res.body)
		}
		// It can be read at once on every node.
		for _, h := range []*host{a, b} {
			if res := h.at("GET", elsewhere(from.ask("output", "media://x"), h), nil); res.StatusCode != 200 || string(res.body) != content {
				t.Errorf("get: %d, %d bytes", res.StatusCode, len(res.body))
			}
		}
	}
	return content
}

// burst makes requests from 24 clients at once, half of them on each node.
func burst(a, b *host, requests int, ask func(h *host)) {
	const clients = 24
	var all sync.WaitGroup
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

// limitOfBothNodes: a request that the nodes cannot count in time fails with 503
// and may have been counted; otherwise exactly 100 pass.
func limitOfBothNodes(t *testing.T, a, b *host) {
	t.Helper()
	var passed, refused, lost atomic.Int64
	burst(a, b, 120, func(h *host) {
		testkit.Eventually(t, "a response", func() bool {
			res := h.do("GET", "/v1/test", testKey, nil)
			switch res.StatusCode {
			case 200:
				passed.Add(1)
			case 429:
				refused.Add(1)
			case 503:
				lost.Add(1)
				return false
			default:
				t.Errorf("%d %s", res.StatusCode, res.body)
			}
			return true
		})
	})
	if n := passed.Load(); n > 100 || n+lost.Load() < 100 || n+refused.Load() != 120 {
		t.Errorf("%d requests passed, %d were refused, %d were not counted in time", n, refused.Load(), lost.Load())
	}
}

// retriedAsk is ask while the cluster elects its leaders.
func (h *host) retriedAsk(op, location string) string {
	h.t.Helper()
	return decoded[protocol.MediaLocation](h.t, h.retried("POST", "/v1/media/"+op, fmt.Sprintf(`{"url":%q}`, location)), 201).URL
}

// keysOfAllNodes: an API key of one node's data folder is valid on all nodes, as
// long as its signing key is there.
func keysOfAllNodes(t *testing.T, a, b *host, dir string) {
	t.Helper()
	now := time.Now()
	returns := func(what, key string, want int) {
		t.Helper()
		for _, h := range []*host{a, b} {
			testkit.Eventually(t, what, func() bool {
				got := h.do("GET", "/v1/live/x", key, nil).StatusCode
				return got == want
			})
		}
	}
	first := mustKey(t, dir, "one", apikeys.PlanPro, now)
	returns("a key", first, 404)
	id, err := apikeys.CreateSigningKey(dir, apikeys.HS256, now.Add(time.Second)) // rotation
	testkit.NoError(t, err)
	second := mustKey(t, dir, "two", apikeys.PlanPro, now)
	returns("a key after the rotation", second, 404)
	returns("the one before", first, 404)
	returns("another plan", mustKey(t, dir, "three", apikeys.PlanNone, now), 402)
	testkit.NoError(t, os.Remove(filepath.Join(dir, "keys", id+".pem")))
	returns("a key whose signing key was removed", second, 401)
	returns("another one", first, 404)
}

// streamsOfAnAccount: the quota of an account applies to both nodes together.
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
	x, y, waiting := a.retriedCreate(), b.retriedCreate(), a.retriedCreate()
	onA, onB := a.openAt(x), b.openAt(y)
	full(waiting)
	onA.end()
	onA.closes(1000)
	testkit.Eventually(t, "quota", func() bool { return a.streams.Count() == 0 })
	onB2 := b.openAt(waiting) // its token is still valid
	full()
	for _, s := range []*testStream{onB, onB2} {
		s.end()
		s.rest()
	}
}

// replacedOnOtherNode: an object that is replaced or deleted through one node
// while it is read through another one can be read to its end, and is removed
// afterwards.
func replacedOnOtherNode(t *testing.T, a, b *host) {
	t.Helper()
	ctx := t.Context()
	used := func() int64 {
		_, used, err := b.Server.store.ListMedia(ctx, "default", time.Now())
		testkit.NoError(t, err)
		return used
	}
	put := func(name, body string) {
		t.Helper()
		w := testkit.Must(b.Server.store.CreateMedia(ctx, "default", name, time.Now))(t)
		defer w.Abort()
		testkit.Must(w.Write([]byte(body)))(t)
		testkit.Must(w.Commit(nil))(t)
	}
	testkit.Eventually(t, "nothing but x", func() bool {
		objects, _, _ := b.Server.store.ListMedia(ctx, "default", time.Now())
		return len(objects) == 1
	})
	before := used()
	put("read", "0123456789")
	r := testkit.Must(a.Server.store.OpenMedia(ctx, "default", "read", time.Now()))(t)
	put("read", "new")
	testkit.Eventually(t, "both objects", func() bool { return used() == before+13 })
	if raw, err := io.ReadAll(r); string(raw) != "0123456789" || err != nil {
		t.Errorf("read %q, %v", raw, err)
	}
	testkit.NoError(t, r.Close())
	testkit.Eventually(t, "the new object alone", func() bool { return used() == before+3 })
	put("read", "x") // nobody reads it
	testkit.Eventually(t, "the newest object alone", func() bool { return used() == before+1 })
	testkit.NoError(t, a.Server.store.DeleteMedia(ctx, "default", "read", time.Now()))
	testkit.Eventually(t, "no object", func() bool { return used() == before })
}
