package protocol

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// losing is a service whose streams end as a script says, on real sockets over
// TLS.
type losing struct {
	t       *testing.T
	creates []func(w http.ResponseWriter) bool // of the n-th request: true = answered
	streams []script                           // of the n-th stream
	known   bool                               // says that it knows the voices

	mu     sync.Mutex
	asked  []string // bodies of the requests
	when   []time.Time
	opened int
	got    [][]int64 // chunks of each stream
}

func (s *losing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		s.mu.Lock()
		n := len(s.asked)
		s.asked = append(s.asked, fmt.Sprint(body["resume"]))
		s.when = append(s.when, time.Now())
		s.mu.Unlock()
		if n < len(s.creates) && s.creates[n] != nil && s.creates[n](w) {
			return
		}
		_ = json.NewEncoder(w).Encode(LiveStream{ID: fmt.Sprint("id", n), URL: "wss://" + r.Host + "/stream", Resumed: s.known && body["resume"] != nil})
		return
	}
	conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	s.mu.Lock()
	n := s.opened
	s.opened++
	s.got = append(s.got, nil)
	s.mu.Unlock()
	if n < len(s.streams) {
		s.streams[n](s.t, conn)
	} else {
		s.t.Errorf("stream %d was not expected", n)
	}
}

// hears is a script that takes n chunks (n < 0: up to end_of_stream) and then
// goes on.
func (s *losing) hears(stream, n int, then script) script {
	return func(t *testing.T, conn *websocket.Conn) {
		for n < 0 || s.count(stream) < n {
			kind, payload, err := conn.ReadMessage()
			if err != nil {
				t.Errorf("server, stream %d: %v", stream, err)
				return
			}
			if kind == websocket.TextMessage {
				break
			}
			seq := int64(math.Float32frombits(binary.LittleEndian.Uint32(payload)))
			s.mu.Lock()
			s.got[stream] = append(s.got[stream], seq)
			s.mu.Unlock()
		}
		then(t, conn)
	}
}

func (s *losing) count(stream int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stream >= len(s.got) {
		return 0
	}
	return len(s.got[stream])
}

func (s *losing) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// telling sends events, then goes on.
func telling(then script, events ...string) script {
	return func(t *testing.T, conn *websocket.Conn) {
		for _, text := range events {
			var word, label string
			var at float64
			_, _ = fmt.Sscan(text, &word, &at, &label)
			say(t, conn, string(NewSpeakerEvent("diarization_speaker_"+word, at, label).Raw))
		}
		then(t, conn)
	}
}

// cutOffNow ends the connection without a close. What was said before arrives,
// which a reset might prevent.
func cutOffNow(_ *testing.T, conn *websocket.Conn) {
	_ = tcpOf(conn).CloseWrite()
	drain(conn)
}

func endWell(t *testing.T, conn *websocket.Conn) { closeWith(conn, websocket.CloseNormalClosure, "") }

// link opens a link to the service.
func (s *losing) link(o LinkOptions, change func(*streamConfig)) *Link {
	s.t.Helper()
	address, ca := serve(s.t, s, nil)
	c := newTestClient(s.t, ClientOptions{BaseURL: address, CACert: ca})
	c.stream.backOff = func(tries int, err error) time.Duration { return min(backOff(tries, err), 50*time.Millisecond) }
	if change != nil {
		change(&c.stream)
	}
	l, err := c.OpenLink(context.Background(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = l.Close() })
	return l
}

// marked is a chunk that says which one it is.
func marked(seq int64) []float32 {
	x := make([]float32, ChunkSamples)
	x[0] = float32(seq)
	return x
}

func put(t *testing.T, l *Link, from, to int64) {
	t.Helper()
	for seq := from; seq < to; seq++ {
		if err := l.Send(context.Background(), seq, marked(seq)); err != nil {
			t.Fatal(err)
		}
	}
}

// everything receives until the link is over.
func everything(t *testing.T, l *Link) (lines []string, changes []LinkChange, end CloseInfo) {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case u, ok := <-l.Updates():
			if !ok {
				return lines, changes, l.Wait()
			}
			if u.Change != nil {
				changes = append(changes, *u.Change)
			} else {
				lines = append(lines, fmt.Sprintf("%s %g %s", strings.TrimPrefix(u.Event.Type, "diarization_speaker_"), u.Event.Timestamp, u.Event.Speaker))
			}
		case <-limit:
			t.Fatal("the link did not end")
		}
	}
}

func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
