package localserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"hubbub/localserver/engine"
	"hubbub/protocol"
)

// mimic is a Diarizer whose speakers talk for a second each, in an order of its
// own; what it remembers is who has talked.
type mimic struct {
	fake
	order []int
	known string
}

func newMimic(orders <-chan []int) *mimic {
	m := &mimic{}
	m.push = func(n int, _ []float32) []engine.Event {
		if n == 1 {
			m.order = <-orders
		}
		i, at := (n-1)/10, time.Duration(n-1)*protocol.ChunkDuration
		if i >= len(m.order) || (n-1)%10 != 0 && (n-1)%10 != 5 {
			return nil
		}
		if (n-1)%10 == 5 {
			return []engine.Event{{Kind: engine.End, At: at, Speaker: m.order[i]}}
		}
		if !strings.Contains(m.known, fmt.Sprint(m.order[i])) {
			m.known += fmt.Sprint(m.order[i])
		}
		return []engine.Event{{Kind: engine.Start, At: at, Speaker: m.order[i]}}
	}
	return m
}

func (m *mimic) AppendVoices(out []byte) []byte { return append(out, "voices:"+m.known...) }

func (m *mimic) RestoreVoices(snapshot []byte) error {
	known, ok := strings.CutPrefix(string(snapshot), "voices:")
	if !ok {
		return errors.New("no voices")
	}
	m.known = known
	return nil
}

// mimics makes streams that hear one order after the other.
func mimics(orders ...[]int) func(*Options) {
	next := make(chan []int, len(orders))
	for _, o := range orders {
		next <- o
	}
	return func(o *Options) {
		o.Unpaced = true
		o.NewDiarizer = func() (Diarizer, error) { return newMimic(next), nil }
	}
}

// resume creates a stream that asks to go on with another one.
func (h *host) resume(key string, asked any) (l protocol.LiveStream) {
	h.t.Helper()
	body, err := json.Marshal(map[string]any{"resume": asked, "room": "B"})
	if err != nil {
		h.t.Fatal(err)
	}
	res := h.do("POST", "/v1/live", key, strings.NewReader(string(body)))
	if err := json.Unmarshal(res.body, &l); err != nil || res.StatusCode != 200 {
		h.t.Fatalf("create: %d %s", res.StatusCode, res.body)
	}
	var input map[string]any
	res = h.do("GET", "/v1/live/"+l.ID, key, nil)
	var s protocol.LiveStatus
	if err := errors.Join(json.Unmarshal(res.body, &s), json.Unmarshal(s.Input, &input)); err != nil || fmt.Sprint(input["resume"]) != fmt.Sprint(asked) || input["room"] != "B" {
		h.t.Errorf("input of a stream that asked to go on with %v: %s %v", asked, s.Input, err)
	}
	return l
}

func speakers(events []protocol.Event) (labels []string) {
	for _, e := range events {
		if e.Type == protocol.TypeSpeakerStart {
			labels = append(labels, e.Speaker)
		}
	}
	return labels
}

// TestStreamGoesOnWithTheVoicesOfAnother: labels of a lost stream stay with the
// engine's speakers in the one that takes it up, and new ones follow.
func TestStreamGoesOnWithTheVoicesOfAnother(t *testing.T) {
	log := &logbook{}
	h := serve(t, mimics([]int{5, 2}, []int{2, 7, 5}, []int{7, 1}), log.use)
	first := h.open()
	first.chunks(20)
	for range 4 {
		first.next()
	}
	cutOff(first.Conn)
	h.becomes(first.id, "error")

	l := h.resume(testKey, first.id)
	if !l.Resumed {
		t.Fatal("the first stream is not taken up")
	}
	second := h.openAt(l)
	second.chunks(30)
	second.end()
	events, _, _ := second.rest()
	if got := fmt.Sprint(speakers(events)); got != "[SPEAKER_01 SPEAKER_02 SPEAKER_00]" {
		t.Errorf("the second stream has %s", got)
	}

	// A stream that ended well can be taken up too, and what it took up lives on.
	h.becomes(second.id, "done")
	if l = h.resume(testKey, second.id); !l.Resumed {
		t.Fatal("the second stream is not taken up")
	}
	third := h.openAt(l)
	third.chunks(20)
	third.end()
	events, _, _ = third.rest()
	if got := fmt.Sprint(speakers(events)); got != "[SPEAKER_02 SPEAKER_03]" {
		t.Errorf("the third stream has %s", got)
	}
	if strings.Contains(log.String(), "voices:") {
		t.Error("a snapshot is in the log")
	}
}

// TestWhatCannotBeTakenUp starts afresh, whatever is asked.
func TestWhatCannotBeTakenUp(t *testing.T) {
	dir := t.TempDir()
	h := serve(t, mimics([]int{3}), func(o *Options) { o.DataDir = dir })
	first := h.open()
	first.chunks(10)
	first.end()
	first.rest()
	h.becomes(first.id, "done")
	other := mustKey(t, dir, "other", PlanPro, time.Hour, time.Now())
	if h.resume(other, first.id).Resumed {
		t.Error("another account's stream was taken up")
	}
	never := h.create()
	for _, asked := range []any{"8c1f0a52-0000-4000-8000-000000000000", "", "x", "*", first.id + " ", strings.ToUpper(first.id), never.ID, 7.0, true, nil, []any{first.id}} {
		if h.resume(testKey, asked).Resumed {
			t.Errorf("%v was taken up", asked)
		}
	}
	// Damaged: the engine does not take it, and nobody is promised anything.
	for _, raw := range []string{"", "x", "\x01\x00\x00\x00\x00\x00\x00\x00\x00nonsense", "\x01\x02\x02\x00\x00\x00\x00\x00\x00voices:", "\x02\x00\x00\x00\x00\x00\x00\x00\x00voices:", "\x01\x09\x00\x00\x00\x00\x00\x00\x00voices:"} {
		if err := h.voices.KeepVoices(context.Background(), first.id, []byte(raw)); err != nil {
			t.Fatal(err)
		}
		if h.resume(testKey, first.id).Resumed {
			t.Errorf("voices of %q were taken up", raw)
		}
	}
}

// TestStreamTakenUpWhileOpen: a client that lost its stream is back before the
// server has noticed. The old stream ends, and what it knew to the last is
// there.
func TestStreamTakenUpWhileOpen(t *testing.T) {
	h := serve(t, mimics([]int{4, 6}, []int{6}))
	first := h.open()
	first.chunks(20)
	for range 4 {
		first.next()
	}
	l := h.resume(testKey, first.id)
	if !l.Resumed {
		t.Fatal("a stream that is open is not taken up")
	}
	if s := h.status(first.id); s.Status != "running" {
		t.Errorf("the first stream is %s before the second is opened", s.Status)
	}
	second := h.openAt(l)
	h.becomes(first.id, "error")
	second.chunks(10)
	second.end()
	events, _, _ := second.rest()
	if got := fmt.Sprint(speakers(events)); got != "[SPEAKER_01]" {
		t.Errorf("the second stream has %s", got)
	}
}

// TestALabelThatIsToldIsKeptAtOnce: should the server be killed before the next
// regular snapshot, a new stream would give the label to somebody else.
func TestALabelThatIsToldIsKeptAtOnce(t *testing.T) {
	k := newVoiceKeeper(nil, "", slog.New(slog.DiscardHandler))
	defer k.finish()
	k.next = time.Now().Add(time.Hour)
	for i, x := range []struct {
		labels int
		due    bool
	}{{0, false}, {1, true}, {1, false}, {2, true}, {2, false}} {
		if k.due(x.labels) != x.due {
			t.Errorf("call %d, %d labels: due is %v", i, x.labels, !x.due)
		}
		k.next = time.Now().Add(time.Hour)
	}
	k.next = time.Now()
	if !k.due(2) {
		t.Error("the time for a snapshot has come, and none is due")
	}
}

// TestAnotherNodeTakesAStreamUp: the voices are in the store that nodes share.
func TestAnotherNodeTakesAStreamUp(t *testing.T) {
	nats, err := natsserver.NewServer(&natsserver.Options{Port: -1, Host: "127.0.0.1", NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	nats.Start()
	t.Cleanup(func() { nats.Shutdown(); nats.WaitForShutdown() })
	if !nats.ReadyForConnections(patience) {
		t.Fatal("NATS does not start")
	}
	shared := func(o *Options) { o.NATS = nats.ClientURL() }
	a, b := serve(t, mimics([]int{5, 2}), shared), serve(t, mimics([]int{2, 5}), shared)
	first := a.open()
	first.chunks(20)
	first.end()
	first.rest()
	a.becomes(first.id, "done")
	l := b.resume(testKey, first.id)
	if !l.Resumed {
		t.Fatal("the stream of the other node is not taken up")
	}
	second := b.openAt(l)
	second.chunks(20)
	second.end()
	events, _, _ := second.rest()
	if got := fmt.Sprint(speakers(events)); got != "[SPEAKER_01 SPEAKER_00]" {
		t.Errorf("the second stream has %s", got)
	}
}
