package localserver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"hubbub/protocol/testkit"
)

// The response to a body that does not arrive in time has its own time to be
// sent.
func TestLateBodyGetsAResponse(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := httptest.NewUnstartedServer(new(Server).handle(func(w http.ResponseWriter, r *http.Request) error {
				_, err := readBody(w, r, maxBody)
				if err == nil {
					t.Error("the body was read")
				}
				return err
			}))
			h.Config.ReadTimeout = 3 * time.Second // the handshake of TLS is included, also on a busy machine
			h.Config.WriteTimeout = h.Config.ReadTimeout
			h.EnableHTTP2 = http2
			h.StartTLS()
			defer h.Close()
			body, unsent := io.Pipe()
			defer unsent.Close()
			client := h.Client()
			client.Timeout = testkit.Timeout
			res, err := client.Post(h.URL, "", body)
			testkit.NoError(t, err)
			defer res.Body.Close()
			if res.StatusCode != http.StatusRequestTimeout || (res.ProtoMajor == 2) != http2 {
				t.Errorf("%s: status %d, want 408", res.Proto, res.StatusCode)
			}
		})
	}
}
