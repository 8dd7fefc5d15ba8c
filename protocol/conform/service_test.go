package conform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"hubbub/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a small one whose streams are right, but for what is set. Its
// engine hears a turn from the first loud sample on.
type service struct {
	say         func(size int) string // of a wrong size
	closeWrong  bool                  // a wrong size ends the stream
	countWrong  bool                  // a wrong size takes its time
	deafFinite  bool                  // nothing is said of a NaN
	skipFinite  bool                  // it takes no time
	deafText    bool
	ahead       time.Duration // that is too far
	aheadText   string
	aheadCode   int
	closeCode   int
	closeAfter  time.Duration
	stray       bool // an event without audio
	refuse      int  // the handshake
	status      int  // of POST /v1/live
	opened, now atomic.Int32
	most        atomic.Int32 // streams at once
	requests    atomic.Int32
}

func rightService() *service {
	return &service{say: func(int) string { return "Invalid chunk size" }, ahead: 5 * time.Second,
		aheadText: "too fast", aheadCode: 1008, closeCode: 1000}
}

func (s *service) start(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	var server *httptest.Server
	mux.HandleFunc("GET /v1/test", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer secret-key" {
			w.WriteHeader(401)
		}
		_, _ = io.WriteString(w, `{"status":"OK","message":"fine"}`)
	})
	mux.HandleFunc("POST /v1/live", func(w http.ResponseWriter, _ *http.Request) {
		if s.status != 0 {
			w.WriteHeader(s.status)
		}
		fmt.Fprintf(w, `{"id":"%s","url":"ws%s/stream?token=0123456789abcdef"}`, nowhere, strings.TrimPrefix(server.URL, "http"))
	})
	mux.HandleFunc("GET /v1/live/{id}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"%s","status":"done","input":{},"startedAt":"2026-01-01T10:00:00Z","completedAt":"2026-01-01T10:00:09Z"}`, nowhere)
	})
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		if s.refuse != 0 {
			http.Error(w, "no", s.refuse)
			return
		}
		upgrader := websocket.Upgrader{}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		s.opened.Add(1)
		for n := s.now.Add(1); ; {
			if m := s.most.Load(); n <= m || s.most.CompareAndSwap(m, n) {
				break
			}
		}
		defer s.now.Add(-1)
		s.stream(conn)
	})
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func (s *service) stream(conn *websocket.Conn) {
	tell := func(e protocol.Event) { _ = conn.WriteMessage(websocket.TextMessage, e.Raw) }
	bye := func(code int) {
		_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
		for {
			if _, _, err := conn.NextReader(); err != nil {
				return
			}
		}
	}
	began, clock, started := time.Now(), time.Duration(0), time.Duration(-1)
	if s.stray {
		tell(protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0, "SPEAKER_00"))
	}
	for {
		kind, raw, err := conn.ReadMessage()
		if err != nil {
			return
		}
		if kind == websocket.TextMessage {
			if protocol.ParseClientMessage(raw) == nil {
				break
			}
			if !s.deafText {
				tell(protocol.NewErrorEvent("what is that?"))
			}
			continue
		}
		samples := make([]float32, protocol.ChunkSamples)
		switch protocol.DecodeChunk(samples, raw) {
		case protocol.ErrChunkSize:
			if s.closeWrong {
				bye(1003)
				return
			}
			if m := s.say(len(raw)); m != "" {
				tell(protocol.NewErrorEvent(m))
			}
			if s.countWrong {
				clock += protocol.ChunkDuration
			}
			continue
		case protocol.ErrSampleValue:
			if !s.deafFinite {
				tell(protocol.NewErrorEvent("not a number"))
			}
			if s.skipFinite {
				continue
			}
		}
		clock += protocol.ChunkDuration
		if clock > time.Since(began)+s.ahead {
			if s.aheadText != "" {
				tell(protocol.NewErrorEvent(s.aheadText))
			}
			if s.aheadCode != 0 {
				bye(s.aheadCode)
				return
			}
		}
		if started < 0 && slices.Max(samples) > 0.5 {
			started = clock - protocol.ChunkDuration
			tell(protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, started.Seconds(), "SPEAKER_00"))
		}
	}
	if started >= 0 {
		tell(protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, clock.Seconds(), "SPEAKER_00"))
	}
	time.Sleep(s.closeAfter)
	if s.closeCode != 0 {
		bye(s.closeCode)
	}
}

// beeps are a second and a half of silence, then noise.
func beeps(d time.Duration) []float32 {
	out := make([]float32, int(d/protocol.ChunkDuration)*protocol.ChunkSamples)
	for i := 15 * protocol.ChunkSamples; i < len(out); i++ {
		out[i] = 0.9
	}
	return out
}

// playAgainst plays rules against an address.
func playAgainst(t *testing.T, address string, o Options) ([]Result, error) {
	t.Helper()
	client, err := protocol.NewClient(protocol.ClientOptions{BaseURL: address, APIKey: "secret-key", Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	o.Client, o.Key = client, "secret-key"
	if o.Speech == nil {
		o.Speech = beeps(4 * time.Second)
	}
	return Run(t.Context(), o)
}

// differing are the names of the rules that differ.
func differing(results []Result) (names []string) {
	for _, r := range results {
		if r.Verdict == Differs {
			names = append(names, r.Name)
		}
	}
	return names
}

// Each thing that a stream can do wrong is seen by its rule.
func TestStreamRules(t *testing.T) {
	for name, tt := range map[string]struct {
		wrong   func(*service)
		differs []string
		seen    string // by the first of them
	}{
		"right":         {wrong: func(*service) {}},
		"other words":   {func(s *service) { s.say = func(int) string { return "bad frame" } }, []string{"stream/chunk-size-text"}, "bad frame"},
		"deaf to sizes": {func(s *service) { s.say = func(int) string { return "" } }, []string{"stream/chunk-size", "stream/chunk-size-text"}, "nothing was said of a frame of 0 bytes"},
		"deaf to one size": {func(s *service) {
			s.say = func(n int) string { return map[bool]string{false: "Invalid chunk size"}[n == 6399] }
		}, []string{"stream/chunk-size", "stream/chunk-size-text"}, "6399 bytes"},
		"closed by sizes":      {func(s *service) { s.closeWrong = true }, []string{"stream/chunk-size", "stream/chunk-size-clock", "stream/chunk-size-text"}, "closed with 1003"},
		"sizes counted":        {func(s *service) { s.countWrong = true }, []string{"stream/chunk-size-clock"}, "moved by 1s, not by 0s"},
		"deaf to NaN":          {func(s *service) { s.deafFinite = true }, []string{"stream/not-finite"}, "holds NaN"},
		"NaN not counted":      {func(s *service) { s.skipFinite = true }, []string{"stream/not-finite-clock"}, "not by 1s"},
		"deaf to text":         {func(s *service) { s.deafText = true }, []string{"stream/text"}, "hello"},
		"impatient":            {func(s *service) { s.ahead = time.Second }, []string{"stream/pace"}, "too fast"},
		"never too fast":       {func(s *service) { s.ahead = time.Hour }, []string{"stream/ahead"}, "stayed open"},
		"no word of pace":      {func(s *service) { s.aheadText = "" }, []string{"stream/ahead"}, "said nothing"},
		"other close of pace":  {func(s *service) { s.aheadCode = 1011 }, []string{"stream/ahead"}, "1011"},
		"other close":          {func(s *service) { s.closeCode = 1001 }, []string{"stream/end", "stream/end-empty"}, "1001"},
		"no close":             {func(s *service) { s.closeCode = 0 }, []string{"stream/end", "stream/end-empty"}, "without a close frame"},
		"late close":           {func(s *service) { s.closeAfter = 3 * time.Second }, []string{"stream/end", "stream/end-empty"}, "s after end_of_stream"},
		"an event for nothing": {func(s *service) { s.stray = true }, []string{"stream/end-empty"}, "SPEAKER_00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := rightService()
			tt.wrong(s)
			only := tt.differs // and what takes no time of its own
			for _, r := range streamRules {
				if longActs[r.Name] == "" && (s.closeAfter == 0) {
					only = append(only, r.Name)
				}
			}
			if name == "right" {
				only = []string{"stream"}
			}
			results, err := playAgainst(t, s.start(t), Options{Only: only})
			if err != nil {
				t.Fatal(err)
			}
			got := differing(results)
			slices.Sort(got)
			for _, want := range tt.differs {
				if !slices.Contains(got, want) {
					t.Errorf("%s holds", want)
				}
			}
			// A close that is wrong is also seen behind other things.
			if !slices.Equal(got, tt.differs) && s.closeCode == 1000 && !s.stray && s.closeAfter == 0 && s.ahead >= 5*time.Second {
				t.Errorf("differs: %q, want %q", got, tt.differs)
			}
			for _, r := range results {
				if len(tt.differs) > 0 && r.Name == tt.differs[0] && !strings.Contains(r.Seen, tt.seen) {
					t.Errorf("%s: seen %q, want %q", r.Name, r.Seen, tt.seen)
				}
			}
			if t.Failed() {
				for _, r := range results {
					t.Logf("%-11s %-24s %s", r.Verdict, r.Name, r.Seen)
				}
			}
			if n := s.most.Load(); n > 4 {
				t.Errorf("%d streams at once", n)
			}
		})
	}
}

// Where there is no stream the rules about streams are skipped, and say why;
// the rule about the cause differs.
func TestRulesWithoutStreams(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		wrong func(*service)
		rule  string
		why   string
	}{
		{func(s *service) { s.status = 500 }, "live/create", "none could be created"},
		{func(s *service) { s.refuse = 403 }, "token/opens", "answered 403"},
	} {
		s := rightService()
		tt.wrong(s)
		results, err := playAgainst(t, s.start(t), Options{Only: []string{"stream", "events", tt.rule}})
		if err != nil {
			t.Fatal(err)
		}
		if got := differing(results); !slices.Equal(got, []string{tt.rule}) {
			t.Errorf("differs: %q", got)
		}
		for _, r := range results {
			if r.Name != tt.rule && r.Name != "stream/silence" && (r.Verdict != Skipped || !strings.Contains(r.Seen, tt.why)) {
				t.Errorf("%s %s: %s", r.Verdict, r.Name, r.Seen)
			}
		}
	}
}

// Secrets come back in no result, whatever the service says.
func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":%q,"url":"https://x.invalid/sealed-address-of-media-0123456789?token=tokentoken","status":"your key is %s"}`,
			r.URL.Path, r.Header.Get("Authorization"))
	}))
	t.Cleanup(server.Close)
	results, err := playAgainst(t, server.URL, Options{OtherKey: "other-key", UnpaidKey: "unpaid-key", ExpiredKey: "expired-key"})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	report := NewReport(server.URL, "test", time.Now(), results)
	if err := report.Table(&out); err != nil {
		t.Fatal(err)
	}
	if err := report.JSON(&out); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"secret-key", "other-key ", "unpaid-key ", "expired-key ", "tokentoken", "sealed-address"} {
		if i := strings.Index(out.String(), secret); i >= 0 && !strings.Contains(out.String()[max(0, i-3):i], "--") {
			t.Errorf("%q is in the report: %s", secret, out.String()[max(0, i-200):i+40])
		}
	}
	if report.OK || report.Summary["differs"] < 20 {
		t.Errorf("such a service is no service: %v", report.Summary)
	}
}

// Without a service, or with a key that it does not take, there is nothing to
// play.
func TestNothingToPlay(t *testing.T) {
	t.Parallel()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>hello") }))
	t.Cleanup(page.Close)
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }))
	t.Cleanup(locked.Close)
	for address, want := range map[string]string{
		"http://127.0.0.1:1": "refuses connections", page.URL: "web page", locked.URL: "does not take the API key",
	} {
		_, err := playAgainst(t, address, Options{})
		var h interface{ Hint() string }
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &h) || h.Hint() == "" {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := playAgainst(t, page.URL, Options{Only: []string{"nonsense"}}); err == nil {
		t.Error("an unknown rule was played")
	}
}

// An interrupted play says what it did not get to, and leaves nothing behind.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	s := rightService()
	client, err := protocol.NewClient(protocol.ClientOptions{BaseURL: s.start(t), APIKey: "secret-key"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	results, err := Run(ctx, Options{Client: client, Key: "secret-key", Speech: beeps(30 * time.Second), Slow: true, Only: []string{"test", "events", "stream"},
		Begun: func(_, _ int, name string) {
			if name == "stream/chunk" {
				time.AfterFunc(200*time.Millisecond, cancel)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if want := map[bool]Verdict{true: Holds, false: Skipped}[i < 2]; r.Verdict != want {
			t.Errorf("%s %s: %s", r.Verdict, r.Name, r.Seen)
		}
	}
}

// Every rule has what a reader needs, once.
func TestRules(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range Rules() {
		group, name, ok := strings.Cut(r.Name, "/")
		if !ok || group == "" || name == "" || len(r.Name) > 24 || seen[r.Name] {
			t.Errorf("name %q", r.Name)
		}
		seen[r.Name] = true
		if r.Expected == "" || !strings.HasPrefix(r.Source, specification+" ") && !strings.HasPrefix(r.Source, contract+" ") || r.check == nil {
			t.Errorf("%+v", r)
		}
	}
	for name := range longActs {
		if !seen[name] {
			t.Errorf("there is no rule %s", name)
		}
	}
	for _, r := range eventRules {
		if longActs[r.Name] == "" {
			t.Errorf("%s does not start the conversation", r.Name)
		}
	}
	spec, err := Select(Options{SpecOnly: true})
	if err != nil || len(spec) == 0 || len(spec) == len(Rules()) {
		t.Errorf("%d of %d rules, %v", len(spec), len(Rules()), err)
	}
	var list strings.Builder
	if err := List(&list, Rules(), true); err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if json.Unmarshal([]byte(list.String()), &rows) != nil || len(rows) != len(Rules()) {
		t.Errorf("%s", list.String())
	}
}
