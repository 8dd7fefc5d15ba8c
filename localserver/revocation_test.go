package localserver

import (
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/apikeys"
	"hubbub/protocol"
)

// openWithKey opens a stream with an API key.
func (h *host) openWithKey(key string) *testStream {
	h.t.Helper()
	return h.openNow(decoded[protocol.LiveStream](h.t, h.do("POST", "/v1/live", key, strings.NewReader("{}")), 200))
}

// A revoked key is refused, and so are the tokens that it got; its streams and
// watchers end. Another key of the account keeps working.
func TestRevokedKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := serve(t, func(o *setup) { o.DataDir, o.APIKeys = dir, nil })
	revoked, other := mustKey(t, dir, "a", apikeys.PlanPro, time.Now()), mustKey(t, dir, "a", apikeys.PlanPro, time.Now())
	ending := h.openWithKey(revoked)
	staying := h.openWithKey(other)
	unopened := decoded[protocol.LiveStream](t, h.do("POST", "/v1/live", revoked, nil), 200)
	endingWatcher, stayingWatcher := h.watchWith(revoked, staying.id, ""), h.watchWith(other, staying.id, "")

	if _, known, err := apikeys.Revoke(dir, revoked, time.Now()); err != nil || !known {
		t.Fatal(known, err)
	}
	events, code, text := ending.rest()
	if code != websocket.ClosePolicyViolation || text != "the API key was revoked" || len(events) != 1 || events[0].Type != protocol.TypeError {
		t.Errorf("the stream: %d %q %q", code, text, raws(events))
	}
	if w := endingWatcher.rest(); w.code != websocket.ClosePolicyViolation || w.text != "the API key was revoked" {
		t.Errorf("the watcher: %d %q", w.code, w.text)
	}
	if h.accepts(revoked) != 401 || h.accepts(other) != 200 {
		t.Error("the revoked key is accepted, or the other one refused")
	}
	h.refused(unopened.URL, 401)
	if st := decoded[protocol.LiveStatus](t, h.do("GET", "/v1/live/"+ending.id, other, nil), 200); st.Status != "error" {
		t.Errorf("%+v", st)
	}
	staying.chunks(1)
	staying.end()
	staying.closes(websocket.CloseNormalClosure)
	stayingWatcher.ends("the watcher of the other key", "done", "done")
}
