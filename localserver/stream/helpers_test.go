package stream

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/store"
	"hubbub/protocol"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// testID is the id of most streams in these tests.
const testID = "0b7c1a2e-0000-4000-8000-000000000001"

var discard = slog.New(slog.DiscardHandler)

// memory is a store in memory whose calls can fail.
type memory struct {
	fail func(call string) error // nil = never; called with the lock held

	mu         sync.Mutex
	calls      map[string]int
	records    map[string]store.Stream
	events     map[string][][]byte
	snapshots  map[string][]byte
	snapshotAt time.Duration // audio received before the newest snapshot
	progress   []store.Progress
	listeners  map[int]func(store.Progress)
}

var errUnavailable = errors.New("the store is unavailable")

func newMemory() *memory {
	return &memory{calls: map[string]int{}, records: map[string]store.Stream{}, events: map[string][][]byte{},
		snapshots: map[string][]byte{}, listeners: map[int]func(store.Progress){}}
}

// setFail makes the named calls fail, "" all of them, or none without names.
func (m *memory) setFail(calls ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = func(call string) error {
		if slices.Contains(calls, call) || slices.Contains(calls, "") {
			return errUnavailable
		}
		return nil
	}
}

// enter locks the store and counts a call.
func (m *memory) enter(call string) error {
	m.mu.Lock()
	m.calls[call]++
	if m.fail != nil {
		return m.fail(call)
	}
	return nil
}

func (m *memory) count(call string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls[call]
}

// begin adds a running stream.
func (m *memory) begin(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records[id] = store.Stream{ID: id, Status: store.Running}
}

func (m *memory) Get(_ context.Context, id string) (store.Stream, error) {
	defer m.mu.Unlock()
	if err := m.enter("get"); err != nil {
		return store.Stream{}, err
	}
	rec, ok := m.records[id]
	if !ok {
		return rec, store.ErrNotFound
	}
	return rec, nil
}

func (m *memory) Finish(_ context.Context, id string, outcome store.Status, at time.Time, cause string) error {
	defer m.mu.Unlock()
	if err := m.enter("finish"); err != nil {
		return err
	}
	rec, ok := m.records[id]
	switch {
	case !ok:
		return store.ErrNotFound
	case rec.Status.Over():
		return store.ErrConflict
	}
	rec.Status, rec.Cause, rec.Completed = outcome, cause, &at
	m.records[id] = rec
	return nil
}

func (m *memory) Renew(context.Context, string) error {
	defer m.mu.Unlock()
	return m.enter("renew")
}

// Append stores the messages even if its response is lost, and like the store it
// accepts them again.
func (m *memory) Append(_ context.Context, id string, first int, messages [][]byte) error {
	defer m.mu.Unlock()
	failed := m.enter("append")
	stored := m.events[id]
	known := min(len(stored)-first, len(messages))
	switch {
	case known < 0:
		return errors.New("a batch is missing")
	case !slices.EqualFunc(stored[first:first+known], messages[:known], bytes.Equal):
		return store.ErrConflict
	}
	for _, raw := range messages[known:] {
		stored = append(stored, bytes.Clone(raw))
	}
	m.events[id] = stored
	return failed
}

func (m *memory) Since(_ context.Context, id string, after uint64) ([][]byte, uint64, error) {
	defer m.mu.Unlock()
	if err := m.enter("since"); err != nil {
		return nil, after, err
	}
	all := m.events[id]
	return slices.Clone(all[after:]), uint64(len(all)), nil
}

func (m *memory) CreateMedia(context.Context, string, string, func() time.Time) (*store.MediaWriter, error) {
	return nil, errUnavailable
}

func (m *memory) PublishProgress(_ string, p store.Progress) error {
	m.mu.Lock()
	m.calls["publish progress"]++
	m.progress = append(m.progress, p)
	var listeners []func(store.Progress)
	for _, f := range m.listeners {
		listeners = append(listeners, f)
	}
	m.mu.Unlock()
	for _, f := range listeners {
		f(p)
	}
	return nil
}

func (m *memory) SubscribeProgress(_ string, f func(store.Progress)) (func(), error) {
	defer m.mu.Unlock()
	if err := m.enter("subscribe to progress"); err != nil {
		return nil, err
	}
	n := m.calls["subscribe to progress"]
	m.listeners[n] = f
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.listeners, n)
	}, nil
}

func (m *memory) PutSnapshot(_ context.Context, id string, snapshot []byte, received time.Duration) error {
	defer m.mu.Unlock()
	err := m.enter("put snapshot")
	if err == nil {
		m.snapshots[id], m.snapshotAt = bytes.Clone(snapshot), received
	}
	return err
}

func (m *memory) Snapshot(_ context.Context, id string) ([]byte, error) {
	defer m.mu.Unlock()
	if err := m.enter("snapshot"); err != nil {
		return nil, err
	}
	raw, ok := m.snapshots[id]
	if !ok {
		return nil, store.ErrNotFound
	}
	return raw, nil
}

// stored are the events of a stream as text.
func (m *memory) stored(id string) (out []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, raw := range m.events[id] {
		out = append(out, string(raw))
	}
	return out
}

// record is the record of a stream.
func (m *memory) record(id string) store.Stream {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[id]
}

// server runs streams and watchers on connections in memory.
type server struct {
	*memory
	t        testing.TB
	log      *slog.Logger
	counters Counters
	outbox   *Outbox
	ctx      context.Context
	cancel   context.CancelFunc
	drain    chan struct{}
	running  sync.WaitGroup
}

// newServer must be followed by close, and the test must run in a bubble.
func newServer(t testing.TB) *server {
	s := &server{memory: newMemory(), t: t, log: discard, drain: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.outbox = OpenOutbox(s.memory, "", false, &s.counters.Lost, discard)
	return s
}

// close disconnects what is open and waits for its end.
func (s *server) close() {
	s.cancel()
	s.running.Wait()
	s.outbox.Close(s.ctx)
}

// accept upgrades the server's end of a connection and gives it to handle.
func (s *server) accept(conn net.Conn, handle func(*websocket.Conn)) {
	s.running.Go(func() {
		ws, err := protocoltest.Accept(conn)
		if err != nil {
			s.t.Error(err)
			return
		}
		handle(ws)
	})
}

// dial returns the client's end of a WebSocket that handle serves.
func (s *server) dial(handle func(*websocket.Conn)) *websocket.Conn {
	s.t.Helper()
	near, far := net.Pipe()
	s.accept(far, handle)
	conn := testkit.Must(protocoltest.Dial(near))(s.t)
	return conn
}

// never is an API key that is not revoked.
func never() bool { return false }

// config is that of the stream testID.
func (s *server) config() Config {
	return Config{ID: testID, Log: s.log, Now: time.Now, Store: s.memory, Outbox: s.outbox, Counters: &s.counters, Revoked: never}
}

// run carries a stream on a connection to its end.
func (s *server) run(c Config, conn Socket, d Diarizer) {
	New(c, conn, d).Run(s.ctx, s.drain)
}

// open opens the stream testID.
func (s *server) open(d Diarizer, change ...func(*Config)) *client {
	s.t.Helper()
	c := s.config()
	for _, f := range change {
		f(&c)
	}
	s.begin(c.ID)
	return newClient(s.t, s.dial(func(conn *websocket.Conn) { s.run(c, conn, d) }))
}

// watch watches the stream testID.
func (s *server) watch(from int) *client {
	s.t.Helper()
	return newClient(s.t, s.dial(s.watcher(from)))
}

func (s *server) watcher(from int) func(*websocket.Conn) {
	return func(conn *websocket.Conn) {
		NewWatcher(WatcherConfig{ID: testID, From: from, Log: s.log, Store: s.memory, Counters: &s.counters, Revoked: never,
			Record: func(ctx context.Context) (store.Stream, error) { return s.Get(ctx, testID) }}, conn).Run(s.ctx, s.drain)
	}
}

// client is the client's end of a connection, which is read all the time.
type client struct {
	*websocket.Conn
	t    testing.TB
	done chan struct{} // closed at the end of the connection

	mu     sync.Mutex
	events []protocol.Event
	err    error
}

func newClient(t testing.TB, conn *websocket.Conn) *client {
	c := &client{Conn: conn, t: t, done: make(chan struct{})}
	go c.read()
	return c
}

func (c *client) read() {
	defer close(c.done)
	defer func() { _ = c.Close() }()
	for {
		_, raw, err := c.ReadMessage()
		e, bad := protocol.ParseEvent(raw)
		c.mu.Lock()
		switch {
		case err != nil:
			c.err = err
		case bad != nil:
			c.t.Errorf("message %q: %v", raw, bad)
		default:
			c.events = append(c.events, e)
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// received are the messages so far.
func (c *client) received() []protocol.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}

// states are the stream_state messages so far.
func (c *client) states() (states []protocol.StreamState) {
	for _, e := range c.received() {
		if e.State != nil {
			states = append(states, *e.State)
		}
	}
	return states
}

// own are the messages of the stream itself so far, as text.
func (c *client) own() (out []string) {
	for _, e := range c.received() {
		if e.Type != protocol.TypeStreamState {
			out = append(out, string(e.Raw))
		}
	}
	return out
}

// end waits for the end of the connection and returns the close frame; code is
// websocket.CloseAbnormalClosure without one.
func (c *client) end() (code int, text string) {
	<-c.done
	var closed *websocket.CloseError
	if errors.As(c.err, &closed) {
		return closed.Code, closed.Text
	}
	return websocket.CloseAbnormalClosure, ""
}

var quiet = make([]byte, protocol.ChunkBytes)

// chunks sends n chunks at once.
func (c *client) chunks(n int) {
	c.t.Helper()
	for range n {
		testkit.NoError(c.t, c.WriteMessage(websocket.BinaryMessage, quiet))
	}
}

func (c *client) text(m string) {
	c.t.Helper()
	testkit.NoError(c.t, c.WriteMessage(websocket.TextMessage, []byte(m)))
}

func (c *client) endOfStream() { c.t.Helper(); c.text(protocol.EndOfStreamMessage) }
