package localserver

import (
	"log/slog"
	"testing"
	"time"
)

// Chunks that are late for seconds are an overload; a pause of the machine and a
// stream that is slow by itself are not. It ends when nearly all are in time.
func TestOverload(t *testing.T) {
	t.Parallel()
	const slow, quick = time.Second, 20 * time.Millisecond
	clock := newClock()
	var log logBuffer
	o := newOverload(clock.now, slog.New(slog.NewTextHandler(&log, nil)))
	second := func(late, inTime int) bool {
		for range late {
			o.observe(slow)
		}
		for range inTime {
			o.observe(quick)
		}
		now := o.current()
		clock.move(time.Second)
		return now
	}
	for i, s := range []struct {
		late, inTime int
		want         bool
	}{
		{0, 0, false}, {0, 300, false}, {0, 300, false}, {0, 300, false}, {0, 300, false},
		{240, 60, false}, {0, 300, false}, {0, 300, false}, {0, 300, false}, {0, 300, false}, // a pause
		{20, 280, false}, {20, 280, false}, {20, 280, false}, {20, 280, false}, {20, 280, false}, // one slow stream
		{300, 0, false}, {300, 0, false}, {300, 0, true}, {300, 0, true}, {300, 0, true},
		{0, 300, true}, {0, 300, true}, {0, 300, true}, {0, 300, true}, {0, 300, false},
		{300, 0, false}, {300, 0, false}, {300, 0, true}, {0, 0, true}, {0, 0, true}, {0, 0, true}, {0, 0, true}, {0, 0, false}, // its streams end
	} {
		if got := second(s.late, s.inTime); got != s.want {
			t.Errorf("second %d: %v, want %v", i, got, s.want)
		}
	}
	if log.count("no new ones are accepted") != 2 || log.count("accepted again") != 2 {
		t.Error(log.String())
	}
}

// An overloaded node refuses new streams and nothing else.
func TestOverloadedNodeRefusesStreams(t *testing.T) {
	t.Parallel()
	clock := newClock()
	h := serve(t, clock.use, func(o *setup) { o.MaxStreams = 100 })
	late := func() {
		clock.move(time.Second)
		for range 10_000 {
			h.overload.observe(2 * time.Second)
		}
	}
	created := h.create()
	var open []*testStream
	for range overloadStreams {
		late()
		open = append(open, h.open())
	}
	late()
	res := h.do("POST", "/v1/live", testKey, nil)
	res.apiError(t, 429)
	if res.Header.Get("Retry-After") != overloadedRetry {
		t.Errorf("Retry-After %q", res.Header.Get("Retry-After"))
	}
	for range 2 {
		_, res, err := h.dial.Dial(created.URL, nil)
		if err == nil {
			t.Fatal("a stream is opened")
		}
		read(t, res).apiError(t, 429)
	}
	if h.metric("hubbub_engine_overloaded") != 1 || h.status(created.ID).Status != "created" {
		t.Error("not as described")
	}
	for _, s := range open { // with their last chunks the overload is over
		s.chunks(3)
		s.end()
		if _, code, text := s.rest(); code != 1000 {
			t.Errorf("an open stream was closed with %d %s", code, text)
		}
	}
	eventually(t, "the end of the streams", func() bool { return h.streams.count() == 0 })
	conn, _, err := h.dial.Dial(created.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}
