package localserver

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	natsserver "github.com/nats-io/nats-server/v2/server"

	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// upgrade is the head of a request that opens a WebSocket.
var upgrade = http.Header{
	"Connection": {"Upgrade"}, "Upgrade": {"websocket"},
	"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
}

// unknownID is an id that no stream has.
const unknownID = "00000000-0000-4000-8000-000000000000"

// An id is accepted only in the form in which the service issued it, in letters of
// either case. Any other text is refused without a call of the store.
func TestIDsHaveOneSpelling(t *testing.T) {
	t.Parallel()
	h := serve(t)
	id := h.create().ID
	testkit.Equal(t, h.status(strings.ToUpper(id)).ID, id, strings.ToUpper(id), "is")
	testkit.NoError(t, h.store.Close())
	ask := func(path, key string) reply {
		r := testkit.Must(http.NewRequest("GET", h.URL()+path, nil))(t)
		r.Header = upgrade.Clone()
		r.Header.Set("Authorization", "Bearer "+key)
		return h.send(r)
	}
	ask("/v1/live/"+unknownID, testKey).apiError(t, 503)
	for _, id := range []string{"x", "%7B" + id + "%7D", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), id + "%20", id + "%00", id + "0", "*", ">", strings.Repeat("A", 1900)} {
		ask("/v1/stream/"+id+"?token=x", "").apiError(t, 401)
		ask("/v1/live/"+id, testKey).apiError(t, 404)
		ask("/v1/live/"+id+"/events", testKey).apiError(t, 404)
		ask("/v1/jobs/"+id, testKey).apiError(t, 404)
	}
	for _, id := range []string{"x", unknownID + "0", strings.Repeat("A", 200)} {
		h.do("POST", "/v1/media/output", testKey, strings.NewReader(`{"url":"media://live/`+id+`/turns.rttm"}`)).apiError(t, 404)
	}
}

// A server that can never reach its store again reports it and ends.
func TestServerEndsWithoutStore(t *testing.T) {
	t.Parallel()
	o := &natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, NoSigs: true, JetStream: true, StoreDir: t.TempDir()}
	n := testkit.Must(natsserver.NewServer(o))(t)
	n.Start()
	defer n.WaitForShutdown()
	defer n.Shutdown()
	if !n.ReadyForConnections(testkit.Timeout) {
		t.Fatal("nats-server does not start")
	}
	h := serve(t, func(o *setup) { o.NATS = n.ClientURL() })
	s := h.open()
	s.chunks(1)
	s.next()

	// The client closes its connection for good when its credentials are refused. The server is another one, because
	// nats-server reloads its options with a data race.
	closed := *o
	closed.Port = n.Addr().(*net.TCPAddr).Port
	closed.Authorization = "another token"
	n.Shutdown()
	n.WaitForShutdown()
	refusing, err := natsserver.NewServer(&closed)
	testkit.NoError(t, err)
	refusing.Start()
	defer refusing.WaitForShutdown()
	defer refusing.Shutdown()
	testkit.Eventually(t, "the end of the store", func() bool { return h.store.Err() != nil })
	w := httptest.NewRecorder()
	h.routes().ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
	testkit.Equal(t, w.Code, http.StatusServiceUnavailable, "/healthz")
	err = h.Wait()
	if err == nil || !strings.Contains(err.Error(), "store") || hint.Of(err) == "" {
		t.Errorf("the server ended with %v", err)
	}
	s.closes(websocket.CloseGoingAway)
}
