//go:build unix

package localserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/engine"
	"hubbub/protocol"
)

// TestCluster runs hubbub nodes on real NATS clusters. Its parts wait most of
// the time, for elections and leases: they do so at once.
func TestCluster(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build nats-server with")
	}
	program := filepath.Join(t.TempDir(), "nats-server")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/nats-io/nats-server/v2").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, part := range map[string]func(*testing.T, []*natsServer){
		"nodes": clusterOfNodes, "stores": clusterOfStores, "media": clusterOfMedia,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(t, natsCluster(t, program))
		})
	}
}

// chatty starts speaker 0 with the first chunk, and then ends and starts a
// turn with every second one: there is always something to say.
func chatty() Diarizer {
	return &fake{push: func(n int, _ []float32) []engine.Event {
		at := time.Duration(n-1) * protocol.ChunkDuration
		switch {
		case n == 1:
			return []engine.Event{{Kind: engine.Start, At: 20 * time.Millisecond}}
		case n%2 == 0:
			return []engine.Event{{Kind: engine.End, At: at}}
		}
		return []engine.Event{{Kind: engine.Start, At: at}}
	}}
}

// clusterNode starts a node that is told of one NATS server; it finds the
// others by itself. A short test sends faster than real time.
func clusterNode(t *testing.T, n *natsServer) *host {
	t.Helper()
	return serve(t, withEngine(chatty), func(o *Options) { o.NATS, o.Unpaced, o.RatePerMinute = n.url, true, -1 })
}

// acknowledged is what a test was promised and looks up again.
type acknowledged struct {
	status map[string]string // by stream
	used   []string          // addresses
}

// holds checks all of it on every node.
func (a *acknowledged) holds(t *testing.T, nodes ...*host) {
	t.Helper()
	for i, h := range nodes {
		for id, want := range a.status {
			// What ended while the store was away is told when it is back.
			var st protocol.LiveStatus
			eventually(t, "an end", func() bool { st = h.patientStatus(id); return st.Status != "running" })
			if st.Status != want {
				t.Errorf("node %d: stream %s reads %s, want %s", i, id, st.Status, want)
			}
		}
		for _, url := range a.used {
			h.refusedAtLast(h.here(url))
		}
	}
}

// refusedAtLast dials a used address until it is answered 401, and takes no
// answer before it but that the store is away.
func (h *host) refusedAtLast(address string) {
	h.t.Helper()
	eventually(h.t, "401", func() bool {
		conn, res, err := h.dial.Dial(address, nil)
		if err == nil {
			_ = conn.Close()
			h.t.Fatalf("%s was opened again", address)
		}
		if res == nil {
			h.t.Fatalf("no answer: %v", err)
		}
		r := read(h.t, res)
		if r.StatusCode == http.StatusServiceUnavailable {
			return false
		}
		r.apiError(h.t, http.StatusUnauthorized)
		return true
	})
}

// patientStatus asks again while the answer is 503, and takes no other error.
func (h *host) patientStatus(id string) (s protocol.LiveStatus) {
	h.t.Helper()
	eventually(h.t, "an answer", func() bool {
		res := h.do("GET", "/v1/live/"+id, testKey, nil)
		if res.StatusCode == http.StatusServiceUnavailable {
			return false
		}
		if err := json.Unmarshal(res.body, &s); err != nil || res.StatusCode != 200 {
			h.t.Fatalf("status: %d %s", res.StatusCode, res.body)
		}
		return true
	})
	return s
}

// patientCreate creates a stream as soon as the store takes one.
func (h *host) patientCreate() (l protocol.LiveStream) {
	h.t.Helper()
	eventually(h.t, "a stream", func() bool {
		res := h.do("POST", "/v1/live", testKey, nil)
		if res.StatusCode == http.StatusServiceUnavailable {
			res.apiError(h.t, http.StatusServiceUnavailable)
			return false
		}
		if err := json.Unmarshal(res.body, &l); err != nil || res.StatusCode != 200 {
			h.t.Fatalf("create: %d %s", res.StatusCode, res.body)
		}
		return true
	})
	return l
}

// here is the address of a stream on this node.
func (h *host) here(address string) string {
	host := strings.TrimPrefix(h.url, "https://")
	scheme, rest, _ := strings.Cut(address, "://")
	_, path, _ := strings.Cut(rest, "/")
	return scheme + "://" + host + "/" + path
}

// openAt opens a stream on this node. A handshake that is answered 503 is made
// again with the same token: it is not burnt.
func (h *host) openAt(l protocol.LiveStream) *stream {
	h.t.Helper()
	var conn *websocket.Conn
	eventually(h.t, "an open stream", func() bool {
		var res *http.Response
		var err error
		conn, res, err = h.dial.Dial(h.here(l.URL), nil)
		if err != nil && (res == nil || res.StatusCode != http.StatusServiceUnavailable) {
			h.t.Fatalf("dial: %v %v", err, res)
		}
		return err == nil
	})
	h.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(2 * patience))
	return &stream{conn, h.t, l.ID}
}

// goesOn sends two chunks and hears of them.
func (s *stream) goesOn() {
	s.t.Helper()
	s.chunks(2)
	s.next()
	s.next()
}

func clusterOfNodes(t *testing.T, nats []*natsServer) {
	a, b := clusterNode(t, nats[0]), clusterNode(t, nats[1])
	c, killC := nodeProcess(t, nats[2])
	all := []*host{a, b, c}
	promised := &acknowledged{status: map[string]string{}}

	// Any node answers for any stream, at once; the address names the node
	// that was asked.
	for i, h := range all {
		l := h.patientCreate()
		if want := strings.TrimPrefix(h.url, "https://"); !strings.Contains(l.URL, "//"+want+"/") {
			t.Errorf("node %d: the address is %s", i, l.URL)
		}
		for j, other := range all {
			if st := other.patientStatus(l.ID); st.Status != "created" {
				t.Errorf("created on %d, read on %d: %s", i, j, st.Status)
			}
		}
		promised.status[l.ID] = "created"
	}

	// Clients race for a token on all nodes: one gets in.
	for range 5 {
		l := a.create()
		var in sync.WaitGroup
		got := make(chan *stream, 9)
		for i := range cap(got) {
			h := all[i%len(all)]
			in.Go(func() {
				conn, res, err := h.dial.Dial(h.here(l.URL), nil)
				if err == nil {
					got <- &stream{conn, t, l.ID}
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
			_ = s.SetReadDeadline(time.Now().Add(patience))
			s.end()
			if _, code, _ := s.rest(); code != 1000 {
				t.Errorf("code %d", code)
			}
			_ = s.Close()
		}
		promised.status[l.ID] = "done"
		promised.used = append(promised.used, l.URL)
	}

	// A node is killed. Its stream reads error on every other node, with its
	// turn ended in what is kept; those of the others go on.
	onA, onC := a.openAt(a.create()), c.openAt(c.create())
	onA.goesOn()
	onC.chunks(3)
	onC.next()
	for i, h := range all {
		for _, s := range []*stream{onA, onC} {
			if st := h.patientStatus(s.id); st.Status != "running" {
				t.Errorf("node %d: %s reads %s", i, s.id, st.Status)
			}
		}
	}
	// Whoever watches them hears the same on every node, and how it ends.
	alive, dying := b.watch(onA.id, ""), a.watch(onC.id, "")
	ofAlive, ofDying := &seen{}, &seen{}
	dying.until(ofDying, "three events", func() bool { return len(ofDying.events) == 3 })
	alive.until(ofAlive, "two events", func() bool { return len(ofAlive.events) == 2 })
	eventually(t, "three events", func() bool { return len(a.kept(onC.id)) == 3 })
	killed := time.Now()
	killC()
	a.becomes(onC.id, "error")
	t.Logf("the dead node's stream read error after %.1f s", time.Since(killed).Seconds())
	b.becomes(onC.id, "error")
	if st := b.status(onA.id); st.Status != "running" {
		t.Errorf("the living node's stream reads %s", st.Status)
	}
	kept := b.kept(onC.id)
	if len(kept) != 4 || !strings.Contains(kept[2], "speaker_start") || !strings.Contains(kept[3], "speaker_end") {
		t.Errorf("kept of the dead node's stream: %q", kept)
	}
	dying.rest(ofDying).ends(t, "watcher of the dead node's stream", "error", "error: "+deadNode)
	if !slices.Equal(ofDying.events, kept) {
		t.Errorf("watched of the dead node's stream: %q", ofDying.events)
	}
	onA.goesOn()
	onA.end()
	if _, code, _ := onA.rest(); code != 1000 {
		t.Errorf("code %d", code)
	}
	alive.rest(ofAlive).ends(t, "watcher on another node", "done", "done")
	if kept := a.kept(onA.id); !slices.Equal(ofAlive.events, kept) || len(kept) != 4 {
		t.Errorf("watched on another node: %q, kept %q", ofAlive.events, kept)
	}
	promised.status[onA.id], promised.status[onC.id] = "done", "error"
	promised.holds(t, a, b)
}

// nodeProcess starts a node in a process of its own, to be killed.
func nodeProcess(t *testing.T, n *natsServer) (*host, func()) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimDir+"="+dir, victimNATS+"="+n.url)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	t.Cleanup(kill)
	lines := bufio.NewScanner(out)
	url := ""
	if lines.Scan() {
		url, _ = strings.CutPrefix(lines.Text(), "ready ")
	}
	if !strings.HasPrefix(url, "https://") {
		t.Fatalf("the node says %q", lines.Text())
	}
	pair, err := selfSigned(dir, time.Now(), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return clientOf(t, url, pair.caPEM), kill
}

func clusterOfStores(t *testing.T, nats []*natsServer) {
	a, b := clusterNode(t, nats[0]), clusterNode(t, nats[1])
	promised := &acknowledged{status: map[string]string{}}
	promise := func() {
		t.Helper()
		for _, h := range []*host{a, b} {
			l := h.patientCreate()
			promised.status[l.ID] = "created"
		}
		l := b.patientCreate()
		s := a.openAt(l)
		s.goesOn()
		s.end()
		if _, code, _ := s.rest(); code != 1000 {
			t.Errorf("code %d", code)
		}
		promised.status[l.ID] = "done"
		promised.used = append(promised.used, l.URL)
	}
	promise()
	s, short := a.openAt(a.create()), b.openAt(b.create())
	s.goesOn()
	short.goesOn()

	// One server of three is killed, the one that node a talks to.
	began := time.Now()
	nats[0].kill()
	s.goesOn()
	promise()
	t.Logf("NATS server killed: whole again after %.1f s", time.Since(began).Seconds())

	// A second one is cut off: no majority is left. That is said, and nothing
	// is acknowledged; what runs goes on.
	nats[1].cutOff()
	began = time.Now()
	var asked sync.WaitGroup
	late := make(chan string, 100) // acknowledged after all
	for _, h := range []*host{a, b} {
		asked.Go(func() { h.refusesForNow(late) })
	}
	asked.Wait()
	close(late)
	for id := range late {
		promised.status[id] = "created"
	}
	s.goesOn()
	// One ends, and its client hears that all is well: so shall the record say.
	short.goesOn()
	short.end()
	if events, code, _ := short.rest(); code != 1000 || len(events) != 0 {
		t.Errorf("code %d, %q", code, raws(events))
	}
	promised.status[short.id] = "done"
	eventually(t, "no place taken", func() bool { return b.streams.count() == 0 })
	t.Logf("without a majority for %.1f s", time.Since(began).Seconds())
	nats[1].connect()
	eventually(t, "ready again", func() bool { return a.do("GET", "/readyz", "", nil).StatusCode == 200 })
	s.goesOn()
	promise()

	// The killed one comes back, and another one is cut off.
	nats[0].start()
	promise()
	nats[2].cutOff()
	s.goesOn()
	promise()
	nats[2].connect()

	// Nobody was taken for dead meanwhile, and everything was kept.
	if st := b.patientStatus(s.id); st.Status != "running" {
		t.Errorf("the stream reads %s", st.Status)
	}
	s.goesOn()
	s.end()
	if events, code, _ := s.rest(); code != 1000 || len(events) != 0 {
		t.Errorf("code %d, %q", code, raws(events))
	}
	promised.status[s.id] = "done"
	promised.holds(t, a, b)
	for id, want := range map[string]int{s.id: 12, short.id: 4} {
		eventually(t, "the store can be read", func() bool { // an election may still be on
			_, err := b.journal.Messages(context.Background(), id)
			return err == nil
		})
		if kept := b.kept(id); len(kept) != want {
			t.Errorf("%d events are kept, want %d: %q", len(kept), want, kept)
		}
	}
	if a.count.lost.Load()+b.count.lost.Load() != 0 {
		t.Error("events were lost")
	}
}

// refusesForNow waits until a node says that its store is away. What it
// acknowledges until then it tells.
func (h *host) refusesForNow(acknowledged chan<- string) {
	eventually(h.t, "503", func() bool {
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
	eventually(h.t, "not ready", func() bool {
		return h.do("GET", "/readyz", "", nil).StatusCode == http.StatusServiceUnavailable
	})
}

// Somebody who knows the address only learns nothing of credentials in it.
func TestClusterOutOfReach(t *testing.T) {
	o := Options{Addr: "127.0.0.1:0", APIKeys: []string{testKey}, NATS: "nats://user:secret@127.0.0.1:1,nats://127.0.0.1:2"}
	s, err := Start(context.Background(), o)
	if err == nil {
		_ = s.Shutdown(context.Background())
		t.Fatal("it started")
	}
	var h interface{ Hint() string }
	if !strings.Contains(err.Error(), "nats://127.0.0.1:1") || strings.Contains(err.Error(), "secret") || !errors.As(err, &h) {
		t.Errorf("%v", err)
	}
}
