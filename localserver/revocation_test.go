package localserver

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/apikeys"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
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
	h := serve(t, signedOnly(dir))
	revoked, other := mustKey(t, dir, "a", apikeys.PlanPro, time.Now()), mustKey(t, dir, "a", apikeys.PlanPro, time.Now())
	ending := h.openWithKey(revoked)
	staying := h.openWithKey(other)
	unopened := decoded[protocol.LiveStream](t, h.do("POST", "/v1/live", revoked, nil), 200)
	watch := func(key string) *testStream {
		t.Helper()
		conn, _, err := h.dial.Dial(strings.Replace(h.url, "https", "wss", 1)+"/v1/live/"+staying.id+"/events", http.Header{"Authorization": {"Bearer " + key}})
		testkit.NoError(t, err)
		return &testStream{newClientConn(t, conn), t, staying.id}
	}
	endingWatcher, stayingWatcher := watch(revoked), watch(other)

	if _, known, err := apikeys.Revoke(dir, revoked, time.Now()); err != nil || !known {
		t.Fatal(known, err)
	}
	events, code, text := ending.rest()
	if code != websocket.ClosePolicyViolation || text != "the API key was revoked" || len(events) != 1 || events[0].Type != protocol.TypeError {
		t.Errorf("the stream: %d %q %q", code, text, raws(events))
	}
	if _, code, text := endingWatcher.rest(); code != websocket.ClosePolicyViolation || text != "the API key was revoked" {
		t.Errorf("the watcher: %d %q", code, text)
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
	if _, code, text := stayingWatcher.rest(); code != websocket.CloseNormalClosure || text != "done" {
		t.Errorf("the watcher of the other key: %d %q", code, text)
	}
}
