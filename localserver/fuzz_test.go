package localserver

import (
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
)

// Whatever is requested, the response is in JSON, and the store still responds.
func FuzzRequest(f *testing.F) {
	for _, path := range []string{"/", "/v1/test", "/v1/live", "/v1/live/x", "/v1/stream/x?token=y", "//", "/%00", "*", "/v1/../v1/test"} {
		for _, method := range []string{"GET", "POST", "HEAD", "OPTIONS", "CONNECT", "X"} {
			f.Add(method, path, "Bearer "+testKey, `{"a":1}`)
		}
	}
	f.Add("POST", "/v1/live", "Bearer "+testKey, "\x00[")
	f.Add("POST", "/v1/live", "Bearer", "{")
	for _, id := range []string{"*", ">", "a.*", "a..b", ".", " ", "a\r\nPING\r\n", "$JS.API.INFO", "\x00", strings.Repeat("A", 1500), strings.Repeat("é", 2000)} {
		for _, path := range []string{streamPath + id, "/v1/live/" + id, "/v1/live/" + id + "/events", "/v1/jobs/" + id, mediaPath + id} {
			f.Add("GET", path, "Bearer "+testKey, "")
		}
		f.Add("POST", "/v1/live", "Bearer "+testKey, fmt.Sprintf(`{"resume":%q}`, id))
		f.Add("POST", "/v1/media/output", "Bearer "+testKey, fmt.Sprintf(`{"url":"media://live/%s/turns.json"}`, id))
	}
	h := serve(f)
	routes := h.routes()
	f.Fuzz(func(t *testing.T, method, path, key, body string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Method, r.URL.Path = method, path
		r.Header.Set("Authorization", key)
		r.Body = io.NopCloser(&limited{text: body})
		w := httptest.NewRecorder()
		routes.ServeHTTP(w, r)
		if path == "/metrics" && w.Code == 200 {
			return // the one response that is text
		}
		if w.Code < 200 || w.Code == 500 || w.Header().Get("Content-Type") != "application/json" || len(w.Header().Get("X-Request-Id")) != 36 || h.store.Err() != nil {
			t.Errorf("%q %q: %d %v (%v)", method, path, w.Code, w.Header(), h.store.Err())
		}
	})
}

// limited is a body that arrives in small pieces.
type limited struct{ text string }

func (l *limited) Read(p []byte) (int, error) {
	if l.text == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 7)], l.text)
	l.text = l.text[n:]
	return n, nil
}
