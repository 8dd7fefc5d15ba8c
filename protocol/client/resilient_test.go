package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// TestResumes loses a stream in the middle: to the outside there is one
// stream, nothing of the audio is missing, and each turn is there once.
func TestResumes(t *testing.T) {
	s := &lossyService{t: t, resumes: true}
	s.streams = []script{
		s.receives(0, 40, sending(cutConnection, "start 0.5 A", "end 1.5 A", "start 2 B")),
		// The clock of the second stream begins at chunk 10, a second before
		// the newest event of the first: its latency is so long that no pong
		// tells of more.
		s.receives(1, -1, sending(closeNormally, "start 0.1 A", "end 0.5 A", "start 0.9 B", "end 2.5 B")),
	}
	l := s.open(ResilientOptions{Limit: time.Minute, Unpaced: true, Latency: 5 * time.Second}, nil)
	sendChunks(t, l, 0, 45)
	testkit.Eventually(t, "the loss", func() bool { return l.State().Connection.Losses == 1 })
	sendChunks(t, l, 45, 60)
	testkit.NoError(t, l.EndOfStream())
	lines, changes, end := receiveAll(t, l)
	testkit.EqualSlices(t, lines, []string{"start 0.5 A", "end 1.5 A", "start 2 B", "end 3.5 B"}, "events")
	if end.Reason != Completed || end.Err != nil {
		t.Errorf("the end: %+v", end)
	}
	if len(changes) != 2 || changes[0].Lost == nil || changes[1].Lost != nil || !changes[1].Resumed || changes[1].Unrecognised || changes[1].Gap.End > changes[1].Gap.Start {
		t.Errorf("changes %+v", changes)
	}
	testkit.EqualSlices(t, s.asked, []string{"<nil>", "id0"}, "asked to go on with")
	var second []int64
	for seq := int64(10); seq < 60; seq++ {
		second = append(second, seq)
	}
	testkit.EqualSlices(t, s.got[1], second, "the second stream got")
	if st := l.State(); st.Dropped != 0 || len(st.Gaps) != 0 || st.Connection.Lost != nil || len(st.NewLabels) != 0 {
		t.Errorf("%+v", st)
	}
	if got := l.State().Sent; got != 6 {
		t.Errorf("sent up to %g s", got)
	}
}

// TestEventsAcrossALoss: each turn is there once and ends, whatever the lost stream has said.
func TestEventsAcrossALoss(t *testing.T) {
	for _, c := range []struct {
		name       string
		sent       int64
		received   int      // before the loss; -1 = all, and end_of_stream
		lost, next []string // events of both streams
		want       []string
		resent     int
	}{
		{"a time beyond the audio tells nothing of what is decided", 60, 40, []string{"start 0.5 A", "end 1.5 A", "start 3600 B", "start 3.5 C"},
			[]string{"start 1 C", "end 3 C"}, []string{"start 0.5 A", "end 1.5 A", "start 3600 B", "start 3.5 C", "end 5.5 C"}, 35},
		{"all was sent, but not all decided", 20, -1, []string{"start 0.5 A", "end 1 A"},
			[]string{"start 1.2 B", "end 1.9 B"}, []string{"start 0.5 A", "end 1 A", "start 1.2 B", "end 1.9 B"}, 20},
		{"the new stream does not have a turn that had just begun", 25, 20, []string{"start 1.9 A"},
			nil, []string{"start 1.9 A", "end 1.901 A"}, 17},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &lossyService{t: t, resumes: true}
			s.streams = []script{s.receives(0, c.received, sending(cutConnection, c.lost...)), s.receives(1, -1, sending(closeNormally, c.next...))}
			l := s.open(ResilientOptions{Limit: time.Minute, Unpaced: true, Latency: 5 * time.Second}, nil)
			sendChunks(t, l, 0, c.sent)
			_ = l.EndOfStream()
			if lines, _, end := receiveAll(t, l); !slices.Equal(lines, c.want) || end.Reason != Completed || len(l.State().NewLabels) > 0 {
				t.Errorf("%q, %+v, new labels %q", lines, end, l.State().NewLabels)
			}
			testkit.Equal(t, len(s.got[1]), c.resent, "the second stream got", s.got[1])
		})
	}
}

// TestGap keeps a live source without a service for longer than a new
// stream lets one catch up. A service that resumes streams is told where each new one begins after the one before.
func TestGap(t *testing.T) {
	t.Run("new labels", func(t *testing.T) { testGap(t, false, false, 2, 0.1, "A#2", "A#2") })
	t.Run("resumed", func(t *testing.T) { testGap(t, true, false, 4, 67.3, "A") })
	t.Run("slow again", func(t *testing.T) { testGap(t, true, true, 4, 0.1, "A") }) // and so would be the next attempt
}

func testGap(t *testing.T, resumes, slow bool, requests int, begins float64, label string, newLabels ...string) {
	t.Parallel()
	release := make(chan struct{})
	s := &lossyService{t: t, resumes: resumes}
	s.creates = []func(http.ResponseWriter) bool{nil, func(w http.ResponseWriter) bool {
		<-release
		return false
	}, func(http.ResponseWriter) bool {
		if slow {
			<-t.Context().Done()
		}
		return slow
	}}
	s.streams = []script{
		s.receives(0, 20, sending(cutConnection, "start 0.2 A", "end 1.1 A")),
		s.receives(1, -1, sending(closeNormally, "start 0 A", "end 1 A")),
	}
	if resumes {
		s.streams[1] = s.receives(1, int(maxAhead/protocol.ChunkDuration), sending(cutConnection, "start 0 A", "end 1 A"))
		s.streams = append(s.streams, s.receives(2, -1, closeNormally))
	}
	l := s.open(ResilientOptions{Limit: time.Minute, Live: true, Latency: time.Second}, nil)
	sendChunks(t, l, 0, 20)
	testkit.Eventually(t, "a request", func() bool { return s.requests() == 2 })
	if got := l.State().Sent; got != 1.1 {
		t.Errorf("without a stream, sent up to %g s: what the lost one had not decided is retransmitted", got)
	}
	sendChunks(t, l, 20, 20+liveBuffer+100) // more than is kept at all
	close(release)
	testkit.Eventually(t, "the catching up", func() bool { return s.count(1) >= int(maxAhead/protocol.ChunkDuration) })
	testkit.NoError(t, l.EndOfStream())
	lines, changes, end := receiveAll(t, l)
	first := int64(20 + liveBuffer + 100 - int(maxAhead/protocol.ChunkDuration))
	if len(s.got[1]) == 0 || s.got[1][0] != first {
		t.Fatalf("the second stream got %v, want from %d on", s.got[1], first)
	}
	at := protocol.Round1ms(chunkTime(first))
	if resumes {
		begins = protocol.Round1ms(chunkTime(s.got[2][0]) - begins)
	}
	testkit.Equal(t, s.begins, any(begins), "what watchers are told")
	testkit.Equal(t, s.requests(), requests, "requests")
	testkit.EqualSlices(t, lines, []string{"start 0.2 A", "end 1.1 A", fmt.Sprintf("start %g %s", at, label), fmt.Sprintf("end %g %s", at+1, label)}, "events")
	if gaps := l.State().Gaps; len(gaps) != 1 || gaps[0].Start != 1.1 || gaps[0].End != at || changes[1].Gap.End != at {
		t.Errorf("gaps %v, change %v, want 1.1 to %g", gaps, changes[1].Gap, at)
	}
	if want := first - 20; l.State().Dropped != want || !slices.Equal(l.State().NewLabels, newLabels) {
		t.Errorf("%d dropped, want %d; new labels %q", l.State().Dropped, want, l.State().NewLabels)
	}
	if end.Err != nil {
		t.Error(end.Err)
	}
}

// For watchers a session begins with its first chunk, whatever its number and its stream.
func TestLossBeforeTheFirstChunk(t *testing.T) {
	s := &lossyService{t: t, resumes: true}
	s.streams = []script{cutConnection, s.receives(1, 10, cutConnection), s.receives(2, -1, closeNormally)}
	l := s.open(ResilientOptions{Limit: time.Minute, Live: true, Latency: time.Second}, nil)
	testkit.Eventually(t, "a request without audio", func() bool { return s.requests() == 2 })
	s.mu.Lock()
	testkit.Equal(t, s.begins, nil, "what watchers are told of a session without audio")
	s.mu.Unlock()
	sendChunks(t, l, 90, 100)
	testkit.Eventually(t, "the third stream", func() bool { return s.requests() == 3 })
	testkit.NoError(t, l.EndOfStream())
	receiveAll(t, l)
	testkit.Equal(t, s.begins, any(0.0), "what watchers are told of chunk 90")
}

// TestKeepsThePace sends a file that was held up: never more than 5 s ahead
// of what the new stream's clock allows, and nothing of it is lost.
func TestKeepsThePace(t *testing.T) {
	t.Parallel()
	s := &lossyService{t: t, resumes: true}
	s.streams = []script{s.receives(0, 5, cutConnection), s.receives(1, -1, closeNormally)}
	l := s.open(ResilientOptions{Limit: time.Minute}, nil)
	go func() {
		defer func() { _ = l.EndOfStream() }()
		for seq := range int64(60) {
			if l.Send(seq, marked(seq)) != nil {
				return
			}
		}
	}()
	_, _, end := receiveAll(t, l)
	if end.Err != nil {
		t.Fatal(end.Err)
	}
	for n, at := range s.at {
		if ahead := time.Duration(n+1)*protocol.ChunkDuration - at.Sub(s.at[0]); ahead > 5*time.Second {
			t.Errorf("chunk %d is %v ahead of real time", n, ahead)
		}
	}
	if n := len(s.got[1]); n != 60 || s.got[1][0] != 0 || s.got[1][n-1] != 59 {
		t.Errorf("the second stream got %v", s.got[1])
	}
}

// refuse responds to a request with an error.
func refuse(status int, header ...string) func(http.ResponseWriter) bool {
	return func(w http.ResponseWriter) bool {
		if len(header) == 2 {
			w.Header().Set(header[0], header[1])
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"requestId":"r","message":"no"}`)
		return true
	}
}

// TestFirstStreamObeysRetryAfter: a service that cannot open the first stream yet is asked once more.
func TestFirstStreamObeysRetryAfter(t *testing.T) {
	for refusals, want := range []string{"", "waits 1s", "waits 1s, then 503"} {
		asked := 0
		address, ca := protocoltest.ServeTLS(t, protocoltest.Service{Handshake: func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked <= refusals {
				refuse(503, "Retry-After", "1")(w)
			} else if conn := protocoltest.Upgrade(w, r); conn != nil {
				defer conn.Close()
				protocoltest.Drain(conn)
			}
		}}.Handler(), nil)
		c := newTestClient(t, Options{BaseURL: address, CACert: ca})
		got := ""
		c.wait = func(_ context.Context, d time.Duration) error { got += fmt.Sprint("waits ", d); return nil }
		l, err := c.OpenResilient(t.Context(), ResilientOptions{})
		if err == nil {
			l.Close()
		} else if response, ok := errors.AsType[*ResponseError](err); ok {
			got += fmt.Sprint(", then ", response.Status)
		} else {
			t.Error(err)
		}
		testkit.Equal(t, got, want, refusals, "refusals")
	}
}

// TestSourceThatPausesOften: a stream that the service closed for want of audio is replaced once there is some. Pauses after
// less audio than a stream decides are no outage, however long they are together.
func TestSourceThatPausesOften(t *testing.T) {
	const pauses = 4
	lost := make(chan *Stream)
	s := &lossyService{t: t, resumes: true}
	for i := range pauses {
		s.streams = append(s.streams, s.receives(i, i+1, func(_ *testing.T, conn *websocket.Conn) {
			paused := <-lost
			paused.mu.Lock()
			paused.lastBegun = paused.lastBegun.Add(-idleTimeout)
			paused.mu.Unlock()
			protocoltest.CloseWith(conn, 1008, "no audio for 60 s")
		}))
	}
	s.streams = append(s.streams, s.receives(pauses, -1, closeNormally))
	l := s.open(ResilientOptions{Limit: time.Minute, Unpaced: true}, func(c *config) {
		c.backOff = func(attempt int, _ error) time.Duration { return time.Duration(attempt-1) * time.Hour } // one attempt for each outage
	})
	for i := range pauses {
		goesOn := time.Now()
		sendChunks(t, l, int64(i), int64(i+1))
		testkit.Eventually(t, "the chunks", func() bool { return s.count(i) == i+1 && l.current().Stats().ChunksSent == int64(i+1) })
		if s.when[i].Before(goesOn) && i > 0 {
			t.Errorf("stream %d was asked for %v before the source went on", i, goesOn.Sub(s.when[i]))
		}
		lost <- l.current()
		testkit.Eventually(t, "the loss", func() bool { return l.State().Connection.Losses == i+1 })
		for range 5 { // time for a next stream that is too early
			_, _ = l.client.StreamStatus(t.Context(), "id0")
		}
	}
	sendChunks(t, l, pauses, pauses+1)
	testkit.NoError(t, l.EndOfStream())
	if _, changes, end := receiveAll(t, l); end.Err != nil || len(changes) != 2*pauses {
		t.Errorf("%+v, %v", changes, end.Err)
	}
}

// TestEndThatIsAlwaysLost: a service that loses each stream after the end of the input, however late,
// is given up at the limit.
func TestEndThatIsAlwaysLost(t *testing.T) {
	t.Parallel()
	s := &lossyService{t: t, resumes: true}
	for i := range 10_000 {
		s.streams = append(s.streams, s.receives(i, -1, cutConnection))
	}
	l := s.open(ResilientOptions{Limit: time.Second, Unpaced: true}, func(c *config) { c.minUptime = 0 })
	sendChunks(t, l, 0, 50)
	_ = l.EndOfStream() // each stream may be lost before it is known that it was sent
	if _, _, end := receiveAll(t, l); !errors.Is(end.Err, errNotResumed) {
		t.Error(end.Err)
	}
}

// TestReconnectLimit ends with the reason, and does not try what is refused for
// good.
func TestReconnectLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit    time.Duration
		create   func(http.ResponseWriter) bool
		end      script
		requests int    // 0 = several
		text     string // a regular expression
	}{
		"after its limit":       {time.Second, refuse(503), cutConnection, 0, "not replaced within 1s: the connection ended without a close; the last attempt failed: the service returned 503"},
		"never begun":           {0, refuse(503), cutConnection, 1, "the connection ended without a close"},
		"wait beyond the limit": {time.Minute, refuse(429, "Retry-After", "600"), cutConnection, 2, `the service asks to wait 10m0s and \S+ are left: the service returned 429`},
		"no subscription":       {time.Minute, refuse(402), cutConnection, 2, "the service refuses a new one: the service returned 402"},
		"key":                   {time.Minute, refuse(401), cutConnection, 2, "the service refuses a new one: the service returned 401"},
		"our own fault": {time.Minute, refuse(503), func(_ *testing.T, conn *websocket.Conn) { protocoltest.CloseWith(conn, 1008, "too far ahead") }, 1,
			`the service closed the stream: against the service's rules \(1008 "too far ahead"\)`},
		"service restarts": {time.Second, refuse(503), func(_ *testing.T, conn *websocket.Conn) { protocoltest.CloseWith(conn, 1001, "bye") }, 0, "1001"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &lossyService{t: t}
			s.creates = append([]func(http.ResponseWriter) bool{nil}, slices.Repeat([]func(http.ResponseWriter) bool{c.create}, 1000)...)
			s.streams = []script{s.receives(0, 3, sending(c.end, "start 0.1 A"))}
			l := s.open(ResilientOptions{Limit: c.limit, Unpaced: true}, func(conf *config) { conf.backOff = backOffOf(20 * time.Millisecond) })
			for seq := int64(0); seq < 10 && l.Send(seq, marked(seq)) == nil; seq++ {
			}
			lines, _, end := receiveAll(t, l)
			if end.Err == nil || !regexp.MustCompile(c.text).MatchString(end.Err.Error()) || hint.Of(end.Err) == "" {
				t.Errorf("the end: %v (hint %q), want %q", end.Err, hint.Of(end.Err), c.text)
			}
			if failed := (&ResponseError{Status: 503}).Hint(); name == "after its limit" && !strings.HasSuffix(hint.Of(end.Err), failed) {
				t.Errorf("the hint %q does not say what to do about the last attempt", hint.Of(end.Err))
			}
			if n := s.requests(); c.requests > 0 && n != c.requests || c.requests == 0 && n < 2 {
				t.Errorf("%d requests", n)
			}
			// An open turn has its end where somebody else would not give it one.
			testkit.Equal(t, slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "end") }), c.requests != 1, "events", lines)
			if err := l.Send(10, marked(10)); !errors.Is(err, ErrStreamOver) {
				t.Errorf("sending afterwards: %v", err)
			}
			if err := l.EndOfStream(); !errors.Is(err, ErrStreamOver) {
				t.Errorf("ending afterwards: %v", err)
			}
		})
	}
}

// TestServiceWithoutResume leaves the field out that the specification does
// not have, and gives labels that nobody vouches for names of their own.
func TestServiceWithoutResume(t *testing.T) {
	s := &lossyService{t: t}
	s.creates = []func(http.ResponseWriter) bool{nil, refuse(400)}
	s.streams = []script{
		s.receives(0, 10, sending(cutConnection, "start 0.1 SPEAKER_00", "end 0.6 SPEAKER_00")),
		s.receives(1, -1, sending(closeNormally, "start 1 SPEAKER_00", "end 1.5 SPEAKER_00")),
	}
	l := s.open(ResilientOptions{Limit: time.Minute, Unpaced: true}, nil)
	sendChunks(t, l, 0, 30)
	_ = l.EndOfStream()
	lines, changes, end := receiveAll(t, l)
	if end.Err != nil || len(lines) != 4 || !strings.HasSuffix(lines[2], " SPEAKER_00#2") || changes[1].Resumed {
		t.Errorf("%q %+v %v", lines, changes, end.Err)
	}
	testkit.EqualSlices(t, s.asked, []string{"<nil>", "id0", "<nil>"}, "asked")
}

// TestRefusedVoiceprints: a service that refuses the voiceprints of a session that lost its
// stream, because it has another engine now, continues without them, and this is said. They
// are sent again when it refuses something else.
func TestRefusedVoiceprints(t *testing.T) {
	for _, c := range []struct {
		refused int
		asked   []string
	}{
		{1, []string{"id0 with voiceprints", "id0"}},
		{2, []string{"id0 with voiceprints", "id0", "<nil> with voiceprints"}},
	} {
		s := &lossyService{t: t, resumes: true}
		s.creates = append([]func(http.ResponseWriter) bool{nil}, slices.Repeat([]func(http.ResponseWriter) bool{refuse(400)}, c.refused)...)
		s.streams = []script{s.receives(0, 20, cutConnection), s.receives(1, -1, closeNormally)}
		people := &protocol.Enrolment{Voiceprints: []protocol.LabelledVoiceprint{{Label: "Sam", Voiceprint: "v"}}}
		l := s.open(ResilientOptions{Limit: time.Minute, Unpaced: true, Enrolment: people}, nil)
		sendChunks(t, l, 0, 25)
		testkit.NoError(t, l.EndOfStream())
		_, changes, end := receiveAll(t, l)
		if len(changes) != 2 || changes[1].Unrecognised != (c.refused == 1) || changes[1].Resumed != (c.refused == 1) || end.Err != nil {
			t.Errorf("%d refused: %+v, %v", c.refused, changes, end.Err)
		}
		testkit.EqualSlices(t, s.asked[1:], c.asked, c.refused, "refused: asked", s.asked)
	}
}

// TestLastAttempt has one more try for a user who wants to go.
func TestLastAttempt(t *testing.T) {
	s := &lossyService{t: t}
	s.creates = append([]func(http.ResponseWriter) bool{nil}, slices.Repeat([]func(http.ResponseWriter) bool{refuse(503)}, 10)...)
	s.streams = []script{s.receives(0, 3, cutConnection)}
	ending := make(chan struct{})
	l := s.open(ResilientOptions{Limit: time.Hour, Ending: ending}, func(c *config) {
		c.backOff = func(tries int, _ error) time.Duration {
			if tries == 1 {
				return 0
			}
			return time.Hour / 2
		}
	})
	sendChunks(t, l, 0, 5)
	testkit.Eventually(t, "the back-off", func() bool { return l.State().Connection.Attempts == 2 })
	blocked := make(chan error, 1)
	go func() { // a source that waits for room is let go as well
		for seq := int64(5); seq < 2*waitingBuffer; seq++ {
			if err := l.Send(seq, marked(seq)); err != nil {
				blocked <- err
				return
			}
		}
		blocked <- nil
	}()
	close(ending)
	_, _, end := receiveAll(t, l)
	if err := <-blocked; err != nil && !errors.Is(err, ErrStreamOver) {
		t.Error(err)
	}
	if n := s.requests(); end.Err == nil || n != 3 {
		t.Errorf("%d requests, %v", n, end.Err)
	}
}

// brokenService accepts streams and closes them at once.
func brokenService(t *testing.T) *lossyService {
	broken := func(_ *testing.T, conn *websocket.Conn) { protocoltest.CloseWith(conn, 1011, "broken") }
	return &lossyService{t: t, streams: slices.Repeat([]script{broken}, 10)}
}

// TestLastAttemptThatIsLost: a service that accepts streams and closes them at once is left
// after one more.
func TestLastAttemptThatIsLost(t *testing.T) {
	s := brokenService(t)
	ending := make(chan struct{})
	l := s.open(ResilientOptions{Limit: time.Hour, Ending: ending}, func(c *config) {
		c.backOff = func(int, error) time.Duration { return time.Hour / 2 }
	})
	sendChunks(t, l, 0, 5)
	testkit.Eventually(t, "the back-off", func() bool { return l.State().Connection.Attempts == 1 })
	close(ending)
	_, _, end := receiveAll(t, l)
	if n := s.requests(); n != 2 || !errors.Is(end.Err, errNotResumed) || !strings.Contains(end.Err.Error(), "1011") {
		t.Errorf("%d requests, %v", n, end.Err)
	}
}

// A service that ends each stream at once needs its operator, not more time.
func TestStreamsThatAreLostAtOnce(t *testing.T) {
	s := brokenService(t)
	l := s.open(ResilientOptions{Limit: time.Second}, func(c *config) {
		c.backOff = func(try int, _ error) time.Duration { return map[bool]time.Duration{true: time.Hour}[try > 3] }
	})
	sendChunks(t, l, 0, 5)
	_, _, end := receiveAll(t, l)
	if n := s.requests(); n != 5 || !errors.Is(end.Err, errNotResumed) || !strings.Contains(hint.Of(end.Err), "tell the operator of the service") {
		t.Errorf("%d requests, %v; %s", n, end.Err, hint.Of(end.Err))
	}
}

// The network that broke a stream may have broken the idle connections as well, which
// nobody has noticed: no attempt uses one.
func TestAttemptsUseNewConnections(t *testing.T) {
	s := &lossyService{t: t, creates: []func(http.ResponseWriter) bool{nil, refuse(503)}}
	s.streams = []script{s.receives(0, 3, cutConnection), s.receives(1, -1, closeNormally)}
	l := s.open(ResilientOptions{Limit: time.Hour}, nil)
	sendChunks(t, l, 0, 3)
	testkit.Eventually(t, "the loss", func() bool { return l.State().Connection.Losses == 1 })
	_ = l.EndOfStream()
	if _, _, end := receiveAll(t, l); end.Reason != Completed {
		t.Fatalf("%+v", end)
	}
	if from := slices.Compact(s.from); len(from) != 3 {
		t.Errorf("3 requests over %q", from)
	}
}

// TestCloseDuringBackOff ends in the middle of the back-off.
func TestCloseDuringBackOff(t *testing.T) {
	s := &lossyService{t: t}
	s.creates = []func(http.ResponseWriter) bool{nil, refuse(503)}
	s.streams = []script{s.receives(0, 3, cutConnection)}
	l := s.open(ResilientOptions{Limit: time.Hour}, func(c *config) {
		c.backOff = func(tries int, _ error) time.Duration { return time.Duration(tries-1) * time.Hour / 3 }
	})
	sendChunks(t, l, 0, 5)
	testkit.Eventually(t, "the back-off", func() bool { return l.State().Connection.Attempts == 2 })
	l.Close()
	if _, _, end := receiveAll(t, l); end.Reason != Cancelled || !errors.Is(end.Err, context.Canceled) {
		t.Errorf("%+v", end)
	}
}

// A file loses nothing, however large the latency of the service.
func TestFileLosesNothingOfAnUnknownLatency(t *testing.T) {
	s := &lossyService{t: t, resumes: true}
	s.streams = []script{
		s.receives(0, 45, func(t *testing.T, conn *websocket.Conn) {
			pings, answer := 0, conn.PingHandler()
			conn.SetPingHandler(func(p string) error {
				if pings++; pings == 2 { // sent after all chunks
					_ = answer(p)
					return io.EOF
				}
				return answer(p)
			})
			_, _, _ = conn.ReadMessage()
			cutConnection(t, conn)
		}),
		s.receives(1, -1, closeNormally),
	}
	l := s.open(ResilientOptions{Limit: time.Minute, Unpaced: true}, nil)
	sendChunks(t, l, 0, 45)
	testkit.Eventually(t, "the loss", func() bool { return l.State().Connection.Losses == 1 })
	_ = l.EndOfStream()
	if _, _, end := receiveAll(t, l); end.Reason != Completed {
		t.Fatalf("%+v", end)
	}
	if len(s.got[1]) == 0 || s.got[1][0] != 0 {
		t.Errorf("of 4.5 s that a latency of 5 s has not decided, the second stream got %v", s.got[1])
	}
}

// Audio before a gap that is not decided does not count as decided because audio
// after the gap has arrived.
func TestDecidedBeforeAGap(t *testing.T) {
	s := &Stream{config: defaultConfig(), sendingState: sendingState{acked: 101}}
	for n := range int64(100) {
		s.clock.add(n, n)
	}
	s.clock.add(100, 700)
	r := &ResilientStream{o: ResilientOptions{Latency: time.Second}, streamSession: streamSession{merger: newEventMerger()}}
	if got := r.decided(s); math.Abs(got-8.6) > 1e-9 {
		t.Errorf("decided up to %g s, want 8.6", got)
	}
}
