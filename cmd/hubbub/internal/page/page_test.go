package page

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/errno"
	"hubbub/protocol/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// talk is a session that a test changes.
type talk struct {
	mu          sync.Mutex
	title       string
	status      string
	annotations protocol.Annotations
	line        *protocol.Timeline
}

func newTalk() *talk { return &talk{title: "Monday", line: protocol.NewTimeline()} }

func (s *talk) state() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	snapshot := s.line.Snapshot()
	lanes, turns := Speakers(s.annotations.Speakers(snapshot))
	rate := 1.0
	if s.status == "ended" {
		rate = 0
	}
	return State{Title: s.title, Now: snapshot.Decided, Rate: rate, Status: s.status, Speakers: lanes, Turns: turns}
}

// turn adds a turn of a second, with a text or without.
func (s *talk) turn(speaker string, start float64, text string) {
	s.line.Apply(protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, start, speaker))
	for _, t := range s.line.Apply(protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, start+1, speaker)) {
		if t.Text = text; text != "" {
			s.line.SetText(t)
		}
	}
}

func (s *talk) setStatus(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = text
}

func (s *talk) annotate(t *testing.T, f func(protocol.Annotations) (protocol.Annotations, error)) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.annotations, err = f(s.annotations); err != nil {
		t.Fatal(err)
	}
}

func serve(t *testing.T, s *talk) *Server {
	t.Helper()
	server := testkit.Must(Listen("127.0.0.1:0", s.state))(t)
	t.Cleanup(func() {
		testkit.NoError(t, server.Close())
		http.DefaultClient.CloseIdleConnections()
	})
	return server
}

// client follows a page as the script of the page does.
type client struct {
	t        *testing.T
	lines    *bufio.Scanner
	messages int
	State
	turns map[int64]Turn
	ended bool
}

func follow(t *testing.T, url string) *client {
	t.Helper()
	r := testkit.Must(http.Get(url + "/events"))(t)
	t.Cleanup(func() { _ = r.Body.Close() })
	if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s, %s", r.Status, r.Header.Get("Content-Type"))
	}
	watchdog := time.AfterFunc(testkit.Timeout, func() { _ = r.Body.Close() })
	t.Cleanup(func() { watchdog.Stop() })
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 64<<20)
	return &client{t: t, lines: lines, turns: map[int64]Turn{}}
}

// until reads messages until what the client sees satisfies ok.
func (c *client) until(what string, ok func() bool) {
	c.t.Helper()
	for c.messages == 0 || !ok() {
		if !c.lines.Scan() {
			c.t.Fatalf("waited in vain for %s; speakers %+v, turns %v: %v", what, c.Speakers, c.turns, c.lines.Err())
		}
		if c.lines.Text() == "event: end" {
			c.ended = true
		}
		data, found := strings.CutPrefix(c.lines.Text(), "data: ")
		if !found || c.ended {
			continue
		}
		var m struct {
			State
			Reset bool
			Turns []struct {
				Turn
				ID int64 `json:"id"`
			}
		}
		testkit.NoError(c.t, json.Unmarshal([]byte(data), &m))
		if m.Reset {
			clear(c.turns)
		}
		for _, t := range m.Turns {
			c.turns[t.ID] = t.Turn
		}
		c.State, c.messages = m.State, c.messages+1
	}
}

// sees is what the client shows: each turn as NAME: TEXT, in order.
func (c *client) sees() (out []string) {
	turns := make([]Turn, 0, len(c.turns))
	for _, t := range c.turns {
		turns = append(turns, t)
	}
	slices.SortFunc(turns, func(a, b Turn) int { return int((a.Start - b.Start) * 1000) })
	for _, t := range turns {
		for _, s := range c.Speakers {
			if s.ID == t.Speaker {
				out = append(out, s.Name+": "+t.Text)
			}
		}
	}
	return out
}

func TestSession(t *testing.T) {
	s := newTalk()
	server := serve(t, s)
	c := follow(t, server.URL())
	shows := func(want ...string) {
		t.Helper()
		c.until(fmt.Sprint(want), func() bool { return slices.Equal(c.sees(), want) })
	}
	shows()
	s.turn("A", 1, "")
	shows("A: ")
	s.turn("B", 3, "hello")
	s.line.SetText(protocol.Turn{Speaker: "A", Start: 1, End: 2, Text: "late"})
	shows("A: late", "B: hello")
	s.annotate(t, func(a protocol.Annotations) (protocol.Annotations, error) { return a.Rename("B", "李雷") })
	shows("A: late", "李雷: hello")
	s.annotate(t, func(a protocol.Annotations) (protocol.Annotations, error) { return a.Merge("B", "A") })
	shows("李雷: late", "李雷: hello") // a merged speaker keeps the only name
	s.line.Apply(protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 7, "A"))
	c.until("an open turn", func() bool { return len(c.Speakers) == 1 && c.Speakers[0].Open && c.Speakers[0].Since == 7 })

	// One that comes late sees everything at once.
	late := follow(t, server.URL())
	late.until("the first message", func() bool { return true })
	if got := late.sees(); late.messages != 1 || !slices.Equal(got, []string{"李雷: late", "李雷: hello"}) {
		t.Errorf("%v after %d messages", got, late.messages)
	}

	// The end of the session includes what happened last.
	s.turn("A", 9, "bye")
	testkit.NoError(t, server.Close())
	for _, c := range []*client{c, late} {
		c.until("the end", func() bool { return c.ended })
		if got := c.sees(); c.Status != "ended" || c.Rate != 0 || got[len(got)-1] != "李雷: bye" {
			t.Errorf("%+v, %v", c.State, got)
		}
	}
}

// A session may be over for long when its user quits: clients learn the end, too.
func TestEndWithoutAChange(t *testing.T) {
	s := newTalk()
	server := serve(t, s)
	c := follow(t, server.URL())
	s.setStatus("ended")
	c.until("the end of the session", func() bool { return c.Status == "ended" })
	testkit.NoError(t, server.Close())
	c.until("the end", func() bool { return c.ended })
}

// A client that is behind gets one message with all that it has missed.
func TestClientsSkipStates(t *testing.T) {
	s := newTalk()
	b := &board{state: s.state, changed: make(chan struct{})}
	b.refresh()
	first, seen, changed, _ := b.since(0)
	if first == nil {
		t.Fatal("nothing at first")
	}
	for i := range 200 {
		s.turn("A", float64(2*i), "words")
		b.refresh()
	}
	<-changed
	message, version, _, _ := b.since(seen)
	if n := strings.Count(string(message), `"id"`); n != 201 { // and that of the speaker
		t.Errorf("%d ids", n)
	}
	s.line.SetText(protocol.Turn{Speaker: "A", Start: 100, End: 101, Text: "corrected"})
	b.refresh()
	message, version, _, _ = b.since(version)
	if n := strings.Count(string(message), `"id"`); n != 2 || !strings.Contains(string(message), "corrected") {
		t.Errorf("a change of one turn is %s", message)
	}
	b.refresh()
	if message, _, _, _ := b.since(version); message != nil {
		t.Errorf("no change is %s", message)
	}
}

func TestRequests(t *testing.T) {
	server := serve(t, newTalk())
	address := strings.TrimSuffix(server.URL(), "/"+server.secret)
	for _, c := range []struct {
		method, url, host string
		status            int
	}{
		{"GET", server.URL(), "", 200},
		{"GET", server.URL() + "/?captions", "", 200},
		{"HEAD", server.URL() + "/events", "", 200},
		{"GET", server.URL(), "laptop.local:8800", 200},
		{"GET", address, "", 404},
		{"GET", address + "/events", "", 404},
		{"GET", server.URL() + "x", "", 404},
		{"GET", server.URL() + "/other", "", 404},
		{"POST", server.URL(), "", 405},
	} {
		r := testkit.Must(http.NewRequestWithContext(t.Context(), c.method, c.url, nil))(t)
		r.Host = c.host
		w := testkit.Must(http.DefaultClient.Do(r))(t)
		body, _ := io.ReadAll(w.Body)
		_ = w.Body.Close()
		testkit.Equal(t, w.StatusCode, c.status, c.method, c.url, c.host)
		if p := w.Header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none'; ") || strings.Contains(p, "unsafe") {
			t.Errorf("%s: policy %q", c.url, p)
		}
		if c.status != 200 && strings.Contains(string(body), server.secret) {
			t.Errorf("%s: the response has the path: %s", c.url, body)
		}
	}
}

func TestClientsAreLimited(t *testing.T) {
	s := newTalk()
	server := serve(t, s)
	server.clients.Add(maxClients)
	r := testkit.Must(http.Get(server.URL() + "/events"))(t)
	_ = r.Body.Close()
	if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Errorf("%s", r.Status)
	}
	server.clients.Add(-maxClients)
	c := follow(t, server.URL())
	c.until("the first message", func() bool { return true })
}

func TestAddresses(t *testing.T) {
	for given, want := range map[string]string{
		"8800": "127.0.0.1:8800", ":8800": "127.0.0.1:8800", "0": "127.0.0.1:0", "0.0.0.0:8800": "0.0.0.0:8800",
		"[::1]:80": "[::1]:80", "laptop.local:8800": "laptop.local:8800",
		"localhost": "", "70000": "", "host:port": "", "": "",
	} {
		if got, err := ParseAddress(given); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", given, got, err, want)
		}
	}
	taken := serve(t, newTalk())
	address := strings.TrimPrefix(strings.TrimSuffix(taken.URL(), "/"+taken.secret), "http://")
	if _, err := Listen(address, newTalk().state); !errno.Is(err, syscall.EADDRINUSE) {
		t.Error(err)
	}
}
