//go:build unix

package localserver

import (
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/apikeys"
	"hubbub/protocol/testkit"
)

// TestClusterOfKeys revokes a key in the data folder of another node than the one
// that it was signed for: it is refused by all, and its stream ends.
func TestClusterOfKeys(t *testing.T) {
	nats := natsCluster(t)
	node := func(n *natsServer, dir string) *host {
		return serve(t, func(o *setup) { o.NATS, o.DataDir = n.url, dir })
	}
	dirs := []string{t.TempDir(), t.TempDir()}
	nodes := []*host{node(nats[0], dirs[0]), node(nats[1], dirs[1]), node(nats[2], "")}
	key := mustKey(t, dirs[0], "a", apikeys.PlanPro, time.Now())
	status := func(h *host) int { return h.do("GET", "/v1/test", key, nil).StatusCode }
	for i, h := range nodes {
		testkit.Eventually(t, "the key to be accepted", func() bool { return status(h) == 200 })
		t.Logf("node %d accepts the key", i)
	}
	s := nodes[0].openWithKey(key)
	revoked := time.Now()
	if _, _, err := apikeys.Revoke(dirs[1], key, revoked); err != nil {
		t.Fatal(err)
	}
	if _, code, text := s.rest(); code != websocket.ClosePolicyViolation || text != "the API key was revoked" {
		t.Errorf("the stream: %d %q", code, text)
	}
	for i, h := range nodes {
		testkit.Eventually(t, "the key to be refused", func() bool { return status(h) == 401 })
		t.Logf("node %d refused the key after %.1f s", i, time.Since(revoked).Seconds())
	}
}
