package conform

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/check"
	"hubbub/protocol/client"
	"hubbub/protocol/hint"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

func TestMain(m *testing.M) { testkit.Parallel(8); os.Exit(testkit.Run(m)) }

// service is a service whose streams are correct, except for what is set. A turn
// begins with the first loud sample.
type service struct {
	say           func(size int) string // the error message for a size; "" = none
	closeWrong    bool                  // a wrong size ends the stream
	countWrong    bool                  // a wrong size counts on the clock
	ignoreInvalid bool                  // no error message for a NaN
	skipFinite    bool                  // a NaN does not count on the clock
	ignoreText    bool
	ahead         time.Duration // the limit
	aheadText     string
	aheadCode     int
	closeCode     int
	closeAfter    time.Duration
	stray         bool         // an event without audio
	refuse        int          // the handshake
	status        int          // of POST /v1/live
	now, most     atomic.Int32 // concurrent streams
}

func correctService() *service {
	return &service{say: func(int) string { return "Invalid chunk size" }, ahead: 5 * time.Second,
		aheadText: "too fast", aheadCode: 1008, closeCode: 1000}
}

func (s *service) start(t *testing.T) string {
	t.Helper()
	fake := protocoltest.Service{
		Test: protocoltest.Respond(http.StatusOK, `{"status":"OK","message":"fine"}`, "Content-Type", "application/json"),
		Status: protocoltest.Respond(http.StatusOK, `{"id":"`+protocoltest.ID+`","status":"done","input":{},"startedAt":"2026-01-01T10:00:00Z","completedAt":"2026-01-01T10:00:09Z"}`,
			"Content-Type", "application/json"),
		Stream: func(conn *websocket.Conn) {
			for n := s.now.Add(1); ; {
				if m := s.most.Load(); n <= m || s.most.CompareAndSwap(m, n) {
					break
				}
			}
			defer s.now.Add(-1)
			s.stream(conn)
		},
	}
	if s.status != 0 {
		fake.Create = protocoltest.Respond(s.status, "")
	}
	if s.refuse != 0 {
		fake.Handshake = protocoltest.Respond(s.refuse, "no")
	}
	return protocoltest.Serve(t, fake.Handler())
}

func (s *service) stream(conn *websocket.Conn) {
	began, clock, started := time.Now(), time.Duration(0), time.Duration(-1)
	if s.stray {
		protocoltest.Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0, "SPEAKER_00"))
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
			if !s.ignoreText {
				protocoltest.Send(conn, protocol.NewErrorEvent("what is that?"))
			}
			continue
		}
		samples := make([]float32, protocol.ChunkSamples)
		switch protocol.DecodeChunk(samples, raw) {
		case protocol.ErrChunkSize:
			if s.closeWrong {
				protocoltest.CloseWith(conn, 1003, "")
				return
			}
			if m := s.say(len(raw)); m != "" {
				protocoltest.Send(conn, protocol.NewErrorEvent(m))
			}
			if s.countWrong {
				clock += protocol.ChunkDuration
			}
			continue
		case protocol.ErrSampleValue:
			if !s.ignoreInvalid {
				protocoltest.Send(conn, protocol.NewErrorEvent("not a number"))
			}
			if s.skipFinite {
				continue
			}
		}
		clock += protocol.ChunkDuration
		if clock > time.Since(began)+s.ahead {
			if s.aheadText != "" {
				protocoltest.Send(conn, protocol.NewErrorEvent(s.aheadText))
			}
			if s.aheadCode != 0 {
				protocoltest.CloseWith(conn, s.aheadCode, "")
				return
			}
		}
		if started < 0 && slices.Max(samples) > 0.5 {
			started = clock - protocol.ChunkDuration
			protocoltest.Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, started.Seconds(), "SPEAKER_00"))
		}
	}
	if started >= 0 {
		protocoltest.Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, clock.Seconds(), "SPEAKER_00"))
	}
	time.Sleep(s.closeAfter)
	if s.closeCode != 0 {
		protocoltest.CloseWith(conn, s.closeCode, "")
	}
}

// noise is a second and a half of silence, then noise.
func noise(d time.Duration) []float32 {
	out := make([]float32, int(d/protocol.ChunkDuration)*protocol.ChunkSamples)
	for i := 15 * protocol.ChunkSamples; i < len(out); i++ {
		out[i] = 0.9
	}
	return out
}

// runRules runs rules against an address.
func runRules(t *testing.T, address string, o Options) ([]Result, error) {
	t.Helper()
	o.Client, o.Key = connect(t, address, 30*time.Second), "secret-key"
	if o.Speech == nil {
		o.Speech = noise(4 * time.Second)
	}
	return Run(t.Context(), o)
}

// connect makes a client that waits so long for a response.
func connect(t *testing.T, address string, wait time.Duration) *client.Client {
	c := testkit.Must(client.New(client.Options{BaseURL: address, APIKey: "secret-key", Timeout: wait}))(t)
	t.Cleanup(c.Close)
	return c
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

// Each fault of a stream is found by its rule.
func TestStreamRules(t *testing.T) {
	for name, tt := range map[string]struct {
		wrong   func(*service)
		differs []string
		seen    string // by the first of them
	}{
		"correct":       {wrong: func(*service) {}},
		"other words":   {func(s *service) { s.say = func(int) string { return "bad frame" } }, []string{"stream/chunk-size-text"}, "bad frame"},
		"ignores sizes": {func(s *service) { s.say = func(int) string { return "" } }, []string{"stream/chunk-size", "stream/chunk-size-text"}, "no error message for a frame of 0 bytes"},
		"ignores one size": {func(s *service) {
			s.say = func(n int) string { return map[bool]string{false: "Invalid chunk size"}[n == 6399] }
		}, []string{"stream/chunk-size", "stream/chunk-size-text"}, "6399 bytes"},
		"closed by sizes":           {func(s *service) { s.closeWrong = true }, []string{"stream/chunk-size", "stream/chunk-size-clock", "stream/chunk-size-text"}, "closed with 1003"},
		"sizes counted":             {func(s *service) { s.countWrong = true }, []string{"stream/chunk-size-clock"}, "moved by 1s, not by 0s"},
		"ignores NaN":               {func(s *service) { s.ignoreInvalid = true }, []string{"stream/not-finite"}, "a chunk with NaN"},
		"NaN not counted":           {func(s *service) { s.skipFinite = true }, []string{"stream/not-finite-clock"}, "not by 1s"},
		"ignores text":              {func(s *service) { s.ignoreText = true }, []string{"stream/text"}, "hello"},
		"impatient":                 {func(s *service) { s.ahead = time.Second }, []string{"stream/pace"}, "too fast"},
		"never too fast":            {func(s *service) { s.ahead = time.Hour }, []string{"stream/ahead"}, "stayed open"},
		"no message about the pace": {func(s *service) { s.aheadText = "" }, []string{"stream/ahead"}, "sent no error message"},
		"other close of pace":       {func(s *service) { s.aheadCode = 1011 }, []string{"stream/ahead"}, "1011"},
		"other close":               {func(s *service) { s.closeCode = 1001 }, []string{"stream/end", "stream/end-empty"}, "1001"},
		"no close":                  {func(s *service) { s.closeCode = 0 }, []string{"stream/end", "stream/end-empty"}, "without a close frame"},
		"late close":                {func(s *service) { s.closeAfter = 3 * time.Second }, []string{"stream/end", "stream/end-empty"}, "s after end_of_stream"},
		"an event for nothing":      {func(s *service) { s.stray = true }, []string{"stream/end-empty"}, "SPEAKER_00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := correctService()
			tt.wrong(s)
			only := tt.differs // and all rules that are quick
			for _, r := range streamRules {
				if r.step == nil && s.closeAfter == 0 || name == "correct" && !r.Slow && r.Name != "stream/keep-alive" {
					only = append(only, r.Name)
				}
			}
			results := testkit.Must(runRules(t, s.start(t), Options{Only: only}))(t)
			got := differing(results)
			slices.Sort(got)
			for _, want := range tt.differs {
				if !slices.Contains(got, want) {
					t.Errorf("%s holds", want)
				}
			}
			// A wrong close also affects other rules.
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

// Without a stream the rules about streams are skipped with the reason; the rule
// about the cause differs.
func TestRulesWithoutStreams(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		wrong func(*service)
		rule  string
		why   string
	}{
		{func(s *service) { s.status = 500 }, "live/create", "none could be created"},
		{func(s *service) { s.refuse = 403 }, "token/opens", "returned 403"},
	} {
		s := correctService()
		tt.wrong(s)
		results := testkit.Must(runRules(t, s.start(t), Options{Only: []string{"stream", "events", "token/race", tt.rule}}))(t)
		testkit.EqualSlices(t, differing(results), []string{tt.rule}, "differs")
		for _, r := range results {
			if r.Name != tt.rule && r.Name != "stream/silence" && (r.Verdict != Skipped || !strings.Contains(r.Seen, tt.why)) {
				t.Errorf("%s %s: %s", r.Verdict, r.Name, r.Seen)
			}
		}
	}
}

// Of several differences a rule names the first: reports on one service are equal.
func TestTheFirstDifference(t *testing.T) {
	t.Parallel()
	open := probed(t, conversation, &exchange{messages: script(t, "+0@1", "+1@2", "+2@3", "+3@4", "+4@5")})
	s := correctService()
	s.refuse = 403
	address := s.start(t)
	for range 10 {
		if err := try(func() { checkOf("events/pairs")(open) }); err == nil || !strings.HasPrefix(err.seen, "SPEAKER_00 ") {
			t.Errorf("%v", err)
		}
		if r := testkit.Must(runRules(t, address, Options{Only: []string{"token/wrong"}}))(t)[0]; !strings.HasPrefix(r.Seen, "with a wrong token: ") {
			t.Errorf("%s: %s", r.Name, r.Seen)
		}
	}
}

// Where a step of an upload and download fails, the rule about it differs, and those that
// need the step are skipped with its name and its response.
func TestRulesWithoutAnObject(t *testing.T) {
	t.Parallel()
	steps := []string{"media/input", "media/put", "media/output", "media/get"}
	for i, broken := range steps {
		paths := map[string]string{"POST /v1/media/input": steps[0], "PUT /object": steps[1], "POST /v1/media/output": steps[2], "GET /object": steps[3]}
		address := protocoltest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch step := paths[r.Method+" "+r.URL.Path]; {
			case step == broken:
				w.WriteHeader(http.StatusInternalServerError)
			case step == "media/input", step == "media/output":
				w.WriteHeader(http.StatusCreated)
				fmt.Fprintf(w, `{"url":"http://%s/object"}`, r.Host)
			case step == "media/put":
				_, _ = io.WriteString(w, "{}")
			case r.URL.Path != "/v1/test":
				w.WriteHeader(http.StatusNotFound)
			}
		}))
		results, err := runRules(t, address, Options{Only: []string{broken, "media/headers", "media/range", "media/names", "media/replace", "jobs/succeeded", "jobs/exclusive"}})
		testkit.NoError(t, err)
		if got := differing(results); !slices.Equal(got, []string{broken}) {
			t.Errorf("without %s: %q differ", broken, got)
		}
		for _, r := range results {
			if i < 2 && r.Name != broken && (r.Verdict != Skipped || !strings.HasPrefix(r.Seen, "it needs what "+broken+" tests: ") || !strings.Contains(r.Seen, "returned 500")) {
				t.Errorf("without %s: %s %s: %s", broken, r.Verdict, r.Name, r.Seen)
			}
		}
	}
}

// Results never contain secrets, whatever the service returns.
func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	server := protocoltest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":%q,"url":"https://x.invalid/sealed-address-of-media-0123456789?token=tokentoken","status":"your key is %s"}`,
			r.URL.Path, r.Header.Get("Authorization"))
	}))
	results := testkit.Must(runRules(t, server, Options{OtherKey: "other-key", UnpaidKey: "unpaid-key", ExpiredKey: "expired-key"}))(t)
	var out strings.Builder
	report := NewReport(server, "test", time.Now(), results)
	testkit.NoError(t, report.Table(&out, check.Style{}))
	testkit.NoError(t, report.JSON(&out))
	for _, secret := range []string{"secret-key", "other-key ", "unpaid-key ", "expired-key ", "tokentoken", "sealed-address"} {
		if i := strings.Index(out.String(), secret); i >= 0 && !strings.Contains(out.String()[max(0, i-3):i], "--") {
			t.Errorf("%q is in the report: %s", secret, out.String()[max(0, i-200):i+40])
		}
	}
	if report.OK || report.Summary["differs"] < 20 {
		t.Errorf("so many rules should differ: %v", report.Summary)
	}
}

// Who asks too much is told about the wait, and the table fits the terminal.
func TestWaitsAndWidth(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := protocoltest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 2 { // the first request finds out whether there is a service
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		_, _ = io.WriteString(w, strings.Repeat("no JSON ", 40))
	}))
	var waits []time.Duration
	results, err := runRules(t, server, Options{Only: []string{"test/body"}, Waiting: func(d time.Duration) { waits = append(waits, d) }})
	testkit.NoError(t, err)
	testkit.EqualSlices(t, waits, []time.Duration{time.Second}, "waits of")
	var out strings.Builder
	testkit.NoError(t, NewReport("x", "test", time.Now(), results).Table(&out, check.Style{Width: 80}))
	for line := range strings.Lines(out.String()) {
		if len(line) > 80 {
			t.Errorf("%d cells: %s", len(line), line)
		}
	}
	if !strings.Contains(out.String(), "\n"+strings.Repeat(" ", seenColumn)+"no JSON") || len(results) != 1 || results[0].Verdict != Differs {
		t.Error(out.String())
	}
}

// A rate limit that a slow connection cannot exceed is not missing.
func TestUnrefusedRequests(t *testing.T) {
	for took, want := range map[time.Duration]Verdict{59 * time.Second: Differs, 61 * time.Second: Skipped} {
		testkit.Equal(t, try(func() { unrefused(took) }).verdict, want, took)
	}
}

// Without a service, or with a key that it rejects, no rule is tested.
func TestNoService(t *testing.T) {
	t.Parallel()
	addresses := map[string]string{"refuses connections": "http://127.0.0.1:1"}
	for want, h := range map[string]http.Handler{
		"web page": protocoltest.Respond(200, "<html>hello"), "returned 401": protocoltest.Respond(401, ""),
		`403 Forbidden: a web page, "Access denied"`: protocoltest.Respond(403, "<html><title>Access denied</title>", "Content-Type", "text/html"),
		"HTTPS server": protocoltest.Respond(400, "Client sent an HTTP request to an HTTPS server.\n"), // as net/http responds to plain HTTP
		"redirects":    http.RedirectHandler("/elsewhere/v1/test", http.StatusFound),
	} {
		addresses[want] = protocoltest.Serve(t, h)
	}
	for want, address := range addresses {
		_, err := runRules(t, address, Options{})
		if err == nil || !strings.Contains(err.Error(), want) || hint.Of(err) == "" {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := runRules(t, addresses["web page"], Options{Only: []string{"nonsense"}}); err == nil {
		t.Error("an unknown rule was run")
	}
}

// A service whose handshakes get no response is not waited for with each rule.
func TestHandshakesHang(t *testing.T) {
	t.Parallel()
	var handshakes atomic.Int32
	address := protocoltest.Serve(t, protocoltest.Service{Handshake: func(_ http.ResponseWriter, r *http.Request) {
		handshakes.Add(1)
		<-r.Context().Done()
	}}.Handler())
	results, err := Run(t.Context(), Options{Client: connect(t, address, 2*time.Second), Key: "secret-key", Speech: noise(time.Second), Only: []string{"stream/chunk-size", "stream/text", "stream/ping", "stream/end-empty"}})
	testkit.NoError(t, err)
	for _, r := range results {
		if r.Verdict != Skipped || !strings.Contains(r.Seen, "no response from") {
			t.Errorf("%s %s: %s", r.Verdict, r.Name, r.Seen)
		}
	}
	testkit.Equal(t, handshakes.Load(), 1, "handshakes for", len(results), "rules")
}

// Of a service that has opened streams, one handshake without a response fails its own rule only.
func TestAHandshakeHangs(t *testing.T) {
	t.Parallel()
	var handshakes atomic.Int32
	s := correctService()
	address := protocoltest.Serve(t, protocoltest.Service{Handshake: func(w http.ResponseWriter, r *http.Request) {
		if handshakes.Add(1) == 2 {
			<-r.Context().Done()
		} else if conn := protocoltest.Upgrade(w, r); conn != nil {
			defer conn.Close()
			s.stream(conn)
		}
	}}.Handler())
	results, err := Run(t.Context(), Options{Client: connect(t, address, 2*time.Second), Key: "secret-key", Speech: noise(time.Second), Only: []string{"stream/chunk-size", "stream/end", "stream/end-empty"}})
	testkit.NoError(t, err)
	skips := 0
	for _, r := range results {
		if strings.Contains(r.Seen, "no response from") {
			skips++
		}
	}
	if n := handshakes.Load(); skips != 1 || n != 3 {
		t.Errorf("%d handshakes, %+v", n, results)
	}
}

// After an interrupt the remaining rules are skipped, and nothing keeps running.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	s := correctService()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	results, err := Run(ctx, Options{Client: connect(t, s.start(t), 0), Key: "secret-key", Speech: noise(30 * time.Second), Slow: true, Only: []string{"test", "events", "stream"},
		Begin: func(_, _ int, name string) {
			if name == "stream/chunk" {
				time.AfterFunc(200*time.Millisecond, cancel)
			}
		}})
	testkit.NoError(t, err)
	for i, r := range results {
		testkit.Equal(t, r.Verdict, map[bool]Verdict{true: Holds, false: Skipped}[i < 2], r.Name, r.Seen)
	}
}

// Every rule is complete and names a section of the document.
func TestRules(t *testing.T) {
	t.Parallel()
	doc := testkit.Must(os.ReadFile("../../" + document))(t)
	sections := map[string]bool{}
	for line := range strings.Lines(string(doc)) {
		if title := strings.TrimLeft(line, "#"); title != line {
			sections[strings.TrimSpace(title)] = true
		}
	}
	seen := map[string]bool{}
	for _, r := range Rules() {
		group, name, ok := strings.Cut(r.Name, "/")
		if !ok || group == "" || name == "" || len(r.Name) > 24 || seen[r.Name] {
			t.Errorf("name %q", r.Name)
		}
		seen[r.Name] = true
		if r.Expected == "" || !sections[r.Section] || r.check == nil {
			t.Errorf("%+v", r)
		}
	}
	for _, r := range eventRules {
		if r.step == nil {
			t.Errorf("%s does not start the conversation", r.Name)
		}
	}
	required, err := Select(Options{RequiredOnly: true})
	if err != nil || len(required) == 0 || len(required) == len(Rules()) {
		t.Errorf("%d of %d rules, %v", len(required), len(Rules()), err)
	}
	var list strings.Builder
	testkit.NoError(t, List(&list, Rules(), true))
	var rows []map[string]any
	if json.Unmarshal([]byte(list.String()), &rows) != nil || len(rows) != len(Rules()) {
		t.Errorf("%s", list.String())
	}
}
