package localserver

import (
	"io"
	"strings"
	"testing"

	"hubbub/protocol/testkit"
)

// unread are requests that net/http rejects by itself, or that have a limit of this server.
// Package httpconn tests more of them, with TLS as well, and after other requests.
var unread = map[string]struct {
	request string
	status  int
}{
	"two lengths":   {"POST /v1/live HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
	"large headers": {"GET /v1/test HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", maxHeader) + "\r\n\r\n", 431},
	"very large":    {"GET /v1/test HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", maxHeaderRead+8<<10) + "\r\n\r\n", 431},
	"version":       {"GET /v1/test HTTP/3.7\r\nHost: x\r\n\r\n", 505},
}

// A request that cannot be read is rejected like any other that is refused: in
// JSON, with a request id that is in the log, and counted.
func TestUnreadRequests(t *testing.T) {
	t.Parallel()
	var log logBuffer
	h := serve(t, log.use, plain, limitOf(100))
	for name, c := range unread {
		t.Run(name, func(t *testing.T) {
			conn := h.connect()
			go func() { _, _ = io.WriteString(conn, c.request) }()
			res := conn.response()
			e := res.apiError(t, c.status)
			if !res.Close || res.Header.Get("Date") == "" || res.Header.Get("X-RateLimit-Remaining") != "100" {
				t.Errorf("%v", res.Header)
			}
			testkit.Eventually(t, "a line in the log", func() bool { return log.count("request="+e.RequestID) == 1 })
		})
	}
	testkit.Equal(t, h.metric(`hubbub_requests_total{code="505",method="other",route="none"}`), 1, "responses with 505 are counted")
}
