package localserver

import (
	"testing"
	"time"

	"hubbub/protocol/testkit"
)

// An overloaded node refuses new streams and nothing else.
func TestOverloadedNodeRefusesStreams(t *testing.T) {
	t.Parallel()
	clock := newClock()
	h := serve(t, clock.use, func(o *setup) { o.MaxStreams = 100 })
	late := func() {
		clock.move(time.Second)
		for range 10_000 {
			h.overload.Observe(2 * time.Second)
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
	testkit.Equal(t, res.Header.Get("Retry-After"), overloadedRetry, "Retry-After")
	for range 2 {
		h.refused(created.URL, 429)
	}
	if h.metric("hubbub_engine_overloaded") != 1 || h.status(created.ID).Status != "created" {
		t.Error("not as described")
	}
	for _, s := range open { // with their last chunks the overload is over
		s.chunks(3)
		s.end()
		s.closes(1000)
	}
	testkit.Eventually(t, "the end of the streams", func() bool { return h.streams.Count() == 0 })
	_ = h.openNow(created).Close()
}

// The metric shows the overload of a node that has no room for another stream anyway.
func TestOverloadOfAFullNode(t *testing.T) {
	t.Parallel()
	clock := newClock()
	h := serve(t, clock.use, func(o *setup) { o.MaxStreams = overloadStreams })
	for range overloadStreams {
		h.open()
	}
	h.do("POST", "/v1/live", testKey, nil).apiError(t, 429)
	testkit.Equal(t, h.metric("hubbub_engine_overloaded"), 0, "overloaded before a chunk is late")
	clock.move(time.Second)
	for range 10_000 {
		h.overload.Observe(2 * time.Second)
	}
	testkit.Equal(t, h.metric("hubbub_engine_overloaded"), 1, "not overloaded")
}
