package localserver

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/localserver/certificate"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

func plain(o *setup) { o.TLS.Mode = certificate.Off }

// raw sends bytes over a connection of its own and reads one response. It returns
// whether the connection is open afterwards.
func (h *host) raw(text string, halfClose bool) (res reply, open bool) {
	h.t.Helper()
	conn := h.connect()
	defer conn.Close()
	testkit.Must(io.WriteString(conn, text))(h.t)
	if halfClose {
		conn.CloseWrite()
	}
	res = conn.response()
	if !res.Close { // what announces that it closes is waited for
		_ = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	}
	_, err := conn.in.Peek(1)
	return res, isTimeout(err)
}

// A client that was permitted to send a long body may send all of it before it reads why it is
// refused.
func TestBodyThatWasPermitted(t *testing.T) {
	t.Parallel()
	h := serve(t, plain)
	conn := h.connect()
	body := strings.Repeat("x", 32<<20) // more than the buffers of a connection have room for
	testkit.Must(fmt.Fprintf(conn, "POST /v1/live HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", testKey, len(body)))(t)
	conn.response().hasStatus(t, "the permission", http.StatusContinue)
	testkit.Must(io.WriteString(conn, body))(t)
	conn.response().hasStatus(t, "the response", http.StatusRequestEntityTooLarge)
}

// A client may send all of a long body before it reads the response, also if it ends its
// connection with the request, and if nothing reads the body.
func TestBodyThatNothingReads(t *testing.T) {
	t.Parallel()
	h := serve(t, func(o *setup) { o.MaxMedia = 1 << 20 })
	used, unused := h.ask("input", "media://x"), h.ask("input", "media://y")
	h.at("PUT", used, strings.NewReader("body")).hasStatus(t, "an upload", 200)
	body := strings.Repeat("x", 2<<20)
	const key = "Authorization: Bearer " + testKey + "\r\n"
	for _, c := range []struct {
		request, header string
		want            int
	}{
		{"POST /v1/live", "", 401},
		{"POST /v1/live", key, 413},
		{"GET /v1/media?after=%zz", key, 400},
		{"GET /v1/test", key, 200},
		{"GET /v1/live/" + strings.Repeat("x", maxTarget), "", 414},
		{"PATCH /v1/live", "", 405},
		{"POST /v1/nothing", "", 404},
		{"PUT " + mediaPath + "x", "", 403},
		{"PUT " + strings.TrimPrefix(used, h.url), "", 403},
		{"PUT " + strings.TrimPrefix(unused, h.url), "", 413},
		{"GET /healthz", "", 200},
	} {
		for _, header := range []string{c.header, c.header + "Connection: close\r\n"} {
			conn := h.connect()
			testkit.Must(fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s", c.request, header, len(body), body))(t)
			conn.response().hasStatus(t, c.request, c.want)
		}
	}
}

// A client may close its side after its request.
func TestHalfClosedConnection(t *testing.T) {
	t.Parallel()
	h := serve(t, plain)
	address := h.ask("input", "media://x")
	h.at("PUT", address, strings.NewReader(strings.Repeat("x", 2<<20)))
	out := strings.TrimPrefix(h.ask("output", "media://x"), h.url)
	for range 20 {
		for _, request := range []string{"POST /v1/live", "GET /v1/media", "GET " + out} {
			res, _ := h.raw(request+" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+testKey+"\r\nContent-Length: 0\r\n\r\n", true)
			if res.StatusCode != 200 {
				t.Fatalf("%.20s: %d %s", request, res.StatusCode, res.body)
			}
		}
	}
}

// Where a request with two lengths ends is not certain: nothing follows it.
func TestTwoLengthsCloseTheConnection(t *testing.T) {
	t.Parallel()
	h := serve(t, plain)
	const head = "POST /v1/live HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + testKey + "\r\n"
	for lengths, want := range map[string]bool{"Content-Length: 2\r\n\r\n{}": true,
		"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n": false} {
		if res, open := h.raw(head+lengths, false); res.StatusCode != 200 || open != want {
			t.Errorf("%q: %d, open %v", lengths, res.StatusCode, open)
		}
	}
}

func TestWarningAboutWritableFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "[1]") // a pattern that does not match itself
	mustKey(t, dir, "a", "pro", time.Now())
	files := testkit.Files(t, dir, "keys/*.pem")
	if len(files) != 1 {
		t.Fatal(files)
	}
	warnings := func(want int) {
		t.Helper()
		var log logBuffer
		h := serve(t, log.use, func(o *setup) { o.DataDir = dir })
		testkit.Equal(t, log.count("other users of this machine can change"), want, "warnings", log.String())
		testkit.NoError(t, h.Shutdown(t.Context()))
	}
	_ = os.Chmod(dir, 0o700)
	warnings(0)
	for path, mode := range map[string]os.FileMode{dir: 0o777, filepath.Join(dir, "keys"): 0o770, files[0]: 0o620, filepath.Join(dir, certificate.File): 0o602} {
		testkit.NoError(t, os.Chmod(path, mode))
	}
	warnings(4)
}

// A stream whose voices cannot be read now does not use up its token.
func TestUnreadableVoicesUseNoToken(t *testing.T) {
	t.Parallel()
	h := serve(t, recallingStreams([]int{0}, []int{0}, []int{0}))
	first := h.open()
	first.chunks(12)
	first.end()
	first.rest()
	_ = first.Close()
	second := h.resume(testKey, first.id)
	if !second.Resumed {
		t.Fatal("the stream is not resumed")
	}
	snapshot, _, err := h.store.Snapshot(t.Context(), first.id)
	testkit.NoError(t, err)
	testkit.NoError(t, h.store.PutSnapshot(t.Context(), first.id, []byte("damaged"), 0))
	for range 2 {
		h.refused(second.URL, 503)
	}
	testkit.Equal(t, h.status(second.ID).Status, "created", "status")
	testkit.NoError(t, h.store.PutSnapshot(t.Context(), first.id, snapshot, 0))
	_ = h.openNow(second).Close()
}

// A client that sends audio before the response to its handshake, which RFC 6455 forbids,
// is disconnected, and the log says why.
func TestAudioBeforeTheHandshake(t *testing.T) {
	t.Parallel()
	book := &logBuffer{}
	h := serve(t, plain, book.use)
	conn := h.connect()
	_, err := io.WriteString(conn, "GET "+strings.TrimPrefix(h.create().URL, "ws://"+h.Addr().String())+" HTTP/1.1\r\nHost: "+h.Addr().String()+
		"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "+
		base64.StdEncoding.EncodeToString(make([]byte, 16))+"\r\n\r\n\x82\xfe\x19\x00\x00\x00\x00\x00"+strings.Repeat("\x00", protocol.ChunkBytes))
	testkit.NoError(t, err)
	if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	testkit.Eventually(t, "the log", func() bool { return strings.Contains(book.String(), "client sent data before handshake is complete") })
}
