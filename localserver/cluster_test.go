//go:build unix

package localserver

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hubbub/localserver/store"
	"hubbub/localserver/stream/streamtest"
	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"

	"golang.org/x/sync/errgroup"
)

// clusterNode starts a node that knows one NATS server; the client discovers
// the others. It accepts audio faster than real time.
func clusterNode(t *testing.T, n *natsServer) *host {
	t.Helper()
	return serve(t, withEngine(streamtest.ManyTurns), func(o *setup) { o.NATS, o.Unpaced, o.RatePerMinute = n.url, true, -1 })
}

// acknowledged is what the service has acknowledged and a test verifies later.
type acknowledged struct {
	status map[string]string // by stream
	used   []string          // addresses
}

// holds verifies all of it on every node.
func (a *acknowledged) holds(t *testing.T, nodes ...*host) {
	t.Helper()
	for i, h := range nodes {
		for id, want := range a.status {
			// The end of a stream in an outage is delivered after it.
			var st protocol.LiveStatus
			testkit.Eventually(t, "an end", func() bool { st = h.retriedStatus(id); return st.Status != "running" })
			testkit.Equal(t, st.Status, want, "node", i, "stream", id, "reads")
		}
		for _, url := range a.used {
			h.eventuallyRefused(h.here(url))
		}
	}
}

// eventuallyRefused dials a used address until it returns 401; before that,
// only 503 is accepted.
func (h *host) eventuallyRefused(address string) {
	h.t.Helper()
	testkit.Eventually(h.t, "401", func() bool {
		r := h.refusal(address, nil)
		if r.StatusCode == http.StatusServiceUnavailable {
			return false
		}
		r.apiError(h.t, http.StatusUnauthorized)
		return true
	})
}

// retriedStatus is status while the cluster elects its leaders.
func (h *host) retriedStatus(id string) protocol.LiveStatus {
	h.t.Helper()
	return decoded[protocol.LiveStatus](h.t, h.retried("GET", "/v1/live/"+id, ""), 200)
}

// exchange sends two chunks and receives two events.
func (s *testStream) exchange() {
	s.t.Helper()
	s.chunks(2)
	s.next()
	s.next()
}

func TestClusterOfNodes(t *testing.T) {
	nats := natsCluster(t)
	a, b := clusterNode(t, nats[0]), clusterNode(t, nats[1])
	c, killC := nodeProcess(t, nats[2])
	all := []*host{a, b, c}
	promised := &acknowledged{status: map[string]string{}}

	streamsOfAllNodes(t, all, promised)
	oneHandshakeOfAllNodes(t, all, promised)

	// A node is killed. Its stream reads error on every other node, with its
	// turn ended in the stored events; those of the others continue.
	onA, onC := a.openAt(a.create()), c.openAt(c.create())
	onA.exchange()
	onC.chunks(3)
	onC.next()
	for i, h := range all {
		for _, s := range []*testStream{onA, onC} {
			testkit.Equal(t, h.retriedStatus(s.id).Status, "running", "node", i, s.id, "reads")
		}
	}
	// Watchers on every node get the same events, and how the stream ends.
	alive, dying := b.watch(onA.id, ""), a.watch(onC.id, "")
	dying.until(3)
	alive.until(2)
	testkit.Eventually(t, "three events", func() bool { return len(a.stored(onC.id)) == 3 })
	killed := time.Now()
	killC()
	a.becomes(onC.id, "error")
	t.Logf("the dead node's stream read error after %.1f s", time.Since(killed).Seconds())
	b.becomes(onC.id, "error")
	testkit.Equal(t, b.status(onA.id).Status, "running", "the live node's stream reads")
	stored := b.stored(onC.id)
	if len(stored) != 4 || !strings.Contains(stored[2], "speaker_start") || !strings.Contains(stored[3], "speaker_end") {
		t.Errorf("stored of the dead node's stream: %q", stored)
	}
	dying.ends("watcher of the dead node's stream", "error", "error: "+causeNodeDied)
	testkit.EqualSlices(t, dying.events, stored, "watched of the dead node's stream")
	onA.exchange()
	onA.end()
	onA.closes(1000)
	alive.ends("watcher on another node", "done", "done")
	if stored := a.stored(onA.id); !slices.Equal(alive.events, stored) || len(stored) != 4 {
		t.Errorf("watched on another node: %q, stored %q", alive.events, stored)
	}
	promised.status[onA.id], promised.status[onC.id] = "done", "error"
	promised.holds(t, a, b)
}

// streamsOfAllNodes: every node knows every stream, at once; the address names the
// node that created it.
func streamsOfAllNodes(t *testing.T, all []*host, promised *acknowledged) {
	t.Helper()
	for i, h := range all {
		l := h.retriedCreate()
		if want := strings.TrimPrefix(h.url, "https://"); !strings.Contains(l.URL, "//"+want+"/") {
			t.Errorf("node %d: the address is %s", i, l.URL)
		}
		for j, other := range all {
			testkit.Equal(t, other.retriedStatus(l.ID).Status, "created", "created on", i, "read on", j)
		}
		promised.status[l.ID] = "created"
	}
}

// oneHandshakeOfAllNodes: of concurrent clients with one token on all nodes, one
// succeeds.
func oneHandshakeOfAllNodes(t *testing.T, all []*host, promised *acknowledged) {
	t.Helper()
	for range 5 {
		l := all[0].create()
		var in sync.WaitGroup
		got := make(chan *testStream, 9)
		for i := range cap(got) {
			h := all[i%len(all)]
			in.Go(func() {
				conn, res, err := h.dial.Dial(h.here(l.URL), nil)
				if err == nil {
					got <- &testStream{newClientConn(t, conn), t, l.ID}
				} else if res == nil || res.StatusCode != http.StatusUnauthorized {
					t.Errorf("refused with %v %v", res, err)
				}
			})
		}
		in.Wait()
		close(got)
		if len(got) != 1 {
			t.Errorf("the token worked %d times", len(got))
		}
		for s := range got {
			s.end()
			s.closes(1000)
			_ = s.Close()
		}
		promised.status[l.ID] = "done"
		promised.used = append(promised.used, l.URL)
	}
}

// nodeProcess starts a node in a process of its own, to be killed.
func nodeProcess(t *testing.T, n *natsServer) (*host, func()) {
	t.Helper()
	dir := t.TempDir()
	line, kill := process(t, dir, childNATS+"="+n.url)
	return clientOfProcess(t, dir, line), kill
}

// add has the service acknowledge two streams that are created, and one that ends.
func (a *acknowledged) add(t *testing.T, first, second *host) {
	t.Helper()
	for _, h := range []*host{first, second} {
		a.status[h.retriedCreate().ID] = "created"
	}
	l := second.retriedCreate()
	s := first.openAt(l)
	s.exchange()
	s.completes()
	a.status[l.ID] = "done"
	a.used = append(a.used, l.URL)
}

// completes ends a stream all of whose events were received.
func (s *testStream) completes() {
	s.t.Helper()
	s.end()
	if events := s.closes(1000); len(events) != 0 {
		s.t.Errorf("%q", raws(events))
	}
}

func TestClusterOfStores(t *testing.T) {
	nats := natsCluster(t)
	a, b := clusterNode(t, nats[0]), clusterNode(t, nats[1])
	promised := &acknowledged{status: map[string]string{}}
	promised.add(t, a, b)
	s, short := a.openAt(a.create()), b.openAt(b.create())
	s.exchange()
	short.exchange()

	// One server of three is killed, the one that node a is connected to.
	began := time.Now()
	nats[0].kill()
	s.exchange()
	promised.add(t, a, b)
	t.Logf("NATS server killed: available again after %.1f s", time.Since(began).Seconds())

	withoutMajority(t, nats[1], a, b, s, short, promised)
	s.exchange()
	promised.add(t, a, b)

	// The killed one comes back, and another one is stopped.
	nats[0].start()
	promised.add(t, a, b)
	nats[2].pause()
	s.exchange()
	promised.add(t, a, b)
	nats[2].unpause()

	// No node was considered dead meanwhile, and everything was stored.
	testkit.Equal(t, b.retriedStatus(s.id).Status, "running", "the stream reads")
	s.exchange()
	s.completes()
	promised.status[s.id] = "done"
	promised.holds(t, a, b)
	for id, want := range map[string]int{s.id: 12, short.id: 4} {
		testkit.Eventually(t, "the store can be read", func() bool { // an election may still be in progress
			_, err := b.store.Messages(context.Background(), id)
			return err == nil
		})
		if stored := b.stored(id); len(stored) != want {
			t.Errorf("%d events are stored, want %d: %q", len(stored), want, stored)
		}
	}
	testkit.Equal(t, a.counters.Lost.Load()+b.counters.Lost.Load(), 0, "events were lost")
}

// withoutMajority stops a second NATS server: no majority is left. Nothing is
// acknowledged, and requests fail with 503. The running streams continue, and short
// ends.
func withoutMajority(t *testing.T, second *natsServer, a, b *host, s, short *testStream, promised *acknowledged) {
	t.Helper()
	second.pause()
	began := time.Now()
	var asked sync.WaitGroup
	late := make(chan string, 100) // acknowledged all the same
	for _, h := range []*host{a, b} {
		asked.Go(func() { h.eventuallyUnavailable(late) })
	}
	asked.Wait()
	close(late)
	for id := range late {
		promised.status[id] = "created"
	}
	s.exchange()
	// One stream ends normally for its client, so its record has to read done.
	short.exchange()
	short.completes()
	promised.status[short.id] = "done"
	testkit.Eventually(t, "no open stream", func() bool { return b.streams.Count() == 0 })
	t.Logf("without a majority for %.1f s", time.Since(began).Seconds())
	second.unpause()
	testkit.Eventually(t, "ready again", func() bool { return a.do("GET", "/readyz", "", nil).StatusCode == 200 })
}

// eventuallyUnavailable waits until a node returns 503. It reports what the node
// acknowledges until then.
func (h *host) eventuallyUnavailable(acknowledged chan<- string) {
	testkit.Eventually(h.t, "503", func() bool {
		res := h.do("POST", "/v1/live", testKey, nil)
		if res.StatusCode == http.StatusServiceUnavailable {
			return true
		}
		var l protocol.LiveStream
		if err := json.Unmarshal(res.body, &l); err != nil || res.StatusCode != 200 {
			h.t.Errorf("create: %d %s", res.StatusCode, res.body)
			return true
		}
		acknowledged <- l.ID
		return false
	})
	testkit.Eventually(h.t, "not ready", func() bool {
		return h.do("GET", "/readyz", "", nil).StatusCode == http.StatusServiceUnavailable
	})
}

// Nodes that are started at once on new NATS servers race for each part of the store,
// and NATS does not respond to all that create the same part.
func TestClusterIsNew(t *testing.T) {
	nats := newNATSCluster(t)
	var nodes errgroup.Group
	for _, n := range nats {
		nodes.Go(func() error {
			s, err := store.Open(t.Context(), store.Options{URL: n.url})
			if err != nil {
				return err
			}
			return s.Close()
		})
	}
	testkit.NoError(t, nodes.Wait())
}

// The error about an unreachable cluster does not contain its credentials.
func TestClusterOutOfReach(t *testing.T) {
	t.Parallel()
	o := Options{Addr: "127.0.0.1:0", APIKeys: []string{testKey}, NATS: "nats://user:secret@127.0.0.1:1,nats://127.0.0.1:2"}
	s, err := Start(context.Background(), o)
	if err == nil {
		_ = s.Shutdown(context.Background())
		t.Fatal("it started")
	}
	if !strings.Contains(err.Error(), "nats://127.0.0.1:1") || strings.Contains(err.Error(), "secret") || hint.Of(err) == "" {
		t.Errorf("%v", err)
	}
}
