package localserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"hubbub/localserver/apikeys"
	"hubbub/localserver/engine"
	"hubbub/localserver/stream/streamtest"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// recallingStreams configures diarizers whose speakers talk for a second each, in the next
// order for each stream.
func recallingStreams(orders ...[]int) func(*setup) {
	next := make(chan []int, len(orders))
	for _, o := range orders {
		next <- o
	}
	return func(o *setup) {
		o.Unpaced = true
		withEngine(func() *streamtest.Diarizer {
			var order []int
			return &streamtest.Diarizer{State: "any", OnPush: func(n int, _ []float32) []engine.Event {
				if n == 1 {
					order = <-next
				}
				i, at := (n-1)/10, time.Duration(n-1)*protocol.ChunkDuration
				kind := map[int]engine.Kind{0: engine.Start, 5: engine.End}[(n-1)%10]
				if i >= len(order) || kind == 0 {
					return nil
				}
				return []engine.Event{{Kind: kind, At: at, Speaker: order[i]}}
			}}
		})(o)
	}
}

// resume creates a stream that is to resume another one.
func (h *host) resume(key string, asked any) (l protocol.LiveStream) {
	h.t.Helper()
	body := testkit.Must(json.Marshal(map[string]any{"resume": asked, "room": "B"}))(h.t)
	res := h.do("POST", "/v1/live", key, strings.NewReader(string(body)))
	l = decoded[protocol.LiveStream](h.t, res, 200)
	var input map[string]any
	res = h.do("GET", "/v1/live/"+l.ID, key, nil)
	var s protocol.LiveStatus
	if err := errors.Join(json.Unmarshal(res.body, &s), json.Unmarshal(s.Input, &input)); err != nil || fmt.Sprint(input["resume"]) != fmt.Sprint(asked) || input["room"] != "B" {
		h.t.Errorf("input of a stream that was to resume %v: %s %v", asked, s.Input, err)
	}
	return l
}

// speakers sends n chunks and the end, and returns the speakers of the turns that
// start.
func (s *testStream) speakers(n int) string {
	s.t.Helper()
	s.chunks(n)
	s.end()
	events, _, _ := s.rest()
	var labels []string
	for _, e := range events {
		if e.Type == protocol.TypeSpeakerStart {
			labels = append(labels, e.Speaker)
		}
	}
	return fmt.Sprint(labels)
}

// The labels of a lost stream stay with the engine's speakers in the one that
// resumes it, and new ones follow.
func TestResume(t *testing.T) {
	t.Parallel()
	log := &logBuffer{}
	h := serve(t, recallingStreams([]int{5, 2}, []int{2, 7, 5}, []int{7, 1}), log.use)
	first := h.open()
	first.chunks(20)
	for range 4 {
		first.next()
	}
	_ = first.NetConn().Close()
	h.becomes(first.id, "error")
	if s := h.status(first.id); !s.Resumable || s.ResumedBy != "" {
		t.Errorf("a lost stream reads %+v", s)
	}

	l := h.resume(testKey, first.id)
	if !l.Resumed {
		t.Fatal("the first stream is not resumed")
	}
	second := h.openAt(l)
	if s := h.status(first.id); s.Resumable || s.ResumedBy != second.id {
		t.Errorf("a resumed stream reads %+v, want %s", s, second.id)
	}
	testkit.Equal(t, second.speakers(30), "[SPEAKER_01 SPEAKER_02 SPEAKER_00]", "the second stream has")

	// A stream that is done can be resumed too, with the labels that it resumed.
	h.becomes(second.id, "done")
	if s := h.status(second.id); s.Resumable || s.ResumedBy != "" {
		t.Errorf("a stream that is done reads %+v", s)
	}
	if l = h.resume(testKey, strings.ToUpper(second.id)); !l.Resumed {
		t.Fatal("the second stream is not resumed")
	}
	third := h.openAt(l)
	testkit.Equal(t, third.speakers(20), "[SPEAKER_02 SPEAKER_03]", "the third stream has")
	if strings.Contains(log.String(), "state:") {
		t.Error("a snapshot is in the log")
	}

	// A stream can be resumed from the moment in which its client knows that it is open.
	l = h.resume(testKey, third.id)
	_, token, _ := strings.Cut(l.URL, "?token=")
	rec, _, _, err := h.begin(t.Context(), l.ID, token)
	testkit.NoError(t, err)
	defer h.streams.Release(rec.Account)
	defer h.releaseStream(rec.Account, l.ID)
	if !h.resume(testKey, l.ID).Resumed {
		t.Error("a stream that has just begun is not resumed")
	}
}

// A client is expected to resume a lost stream for two minutes. Then it is over for its watchers, too.
func TestResumableForTwoMinutes(t *testing.T) {
	t.Parallel()
	clock := newClock()
	h := serve(t, recallingStreams([]int{1}), clock.use)
	s := h.open()
	s.chunks(10)
	s.next()
	_ = s.NetConn().Close()
	h.becomes(s.id, "error")
	for _, want := range []bool{true, false} {
		testkit.Equal(t, h.status(s.id).Resumable, want, "resumable")
		clock.move(resumeWindow + time.Second)
	}
}

// A stream that cannot be resumed is replaced by a new one.
func TestWhatCannotBeResumed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := serve(t, recallingStreams([]int{3}), func(o *setup) { o.DataDir = dir })
	first := h.open()
	first.chunks(10)
	first.end()
	first.rest()
	h.becomes(first.id, "done")
	other := mustKey(t, dir, "other", apikeys.PlanPro, time.Now())
	if h.resume(other, first.id).Resumed {
		t.Error("another account's stream was resumed")
	}
	never := h.create()
	for _, asked := range []any{"8c1f0a52-0000-4000-8000-000000000000", "", "x", "*", first.id + " ", never.ID, 7.0, true, nil, []any{first.id}} {
		if h.resume(testKey, asked).Resumed {
			t.Errorf("%v was resumed", asked)
		}
	}
	// "Resume" is a field of the client's own.
	if res := h.do("POST", "/v1/live", testKey, strings.NewReader(`{"Resume":"`+first.id+`"}`)); res.StatusCode != 200 || strings.Contains(string(res.body), "resumed") {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	// A damaged snapshot is not resumed; package stream tests what is damaged.
	testkit.NoError(t, h.store.PutSnapshot(context.Background(), first.id, []byte("damaged"), 0))
	if h.resume(testKey, first.id).Resumed {
		t.Error("a damaged snapshot was resumed")
	}
}

// A client that lost its stream can resume it before the server has noticed. The
// old stream ends, and its last snapshot is used.
func TestResumeWhileOpen(t *testing.T) {
	t.Parallel()
	h := serve(t, recallingStreams([]int{4, 6}, []int{6}))
	first := h.open()
	first.chunks(20)
	for range 4 {
		first.next()
	}
	l := h.resume(testKey, first.id)
	if !l.Resumed {
		t.Fatal("a stream that is open is not resumed")
	}
	if s := h.status(first.id); s.Status != "running" {
		t.Errorf("the first stream is %s before the second is opened", s.Status)
	}
	second := h.openAt(l)
	h.becomes(first.id, "error")
	testkit.Equal(t, second.speakers(10), "[SPEAKER_01]", "the second stream has")
}

// Another node can resume a stream: nothing of it is in the node that ran it.
func TestResumeOnAnotherNode(t *testing.T) {
	t.Parallel()
	nats, err := natsserver.NewServer(&natsserver.Options{Port: -1, Host: "127.0.0.1", NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir()})
	testkit.NoError(t, err)
	nats.Start()
	t.Cleanup(func() { nats.Shutdown(); nats.WaitForShutdown() })
	shared := func(o *setup) { o.NATS = nats.ClientURL() }
	a, b := serve(t, recallingStreams([]int{5, 2}), shared), serve(t, recallingStreams([]int{2, 5}), shared)
	first := a.open()
	first.chunks(20)
	first.end()
	first.rest()
	a.becomes(first.id, "done")
	second := b.openAt(b.resume(testKey, first.id))
	if s := a.status(first.id); s.ResumedBy != second.id {
		t.Errorf("on the first node its stream reads %+v", s)
	}
	testkit.Equal(t, second.speakers(20), "[SPEAKER_01 SPEAKER_00]", "the second stream has")
}
