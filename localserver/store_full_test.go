package localserver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A store without room is said to be that: new streams are refused with 503,
// the server is not ready, and the streams that run go on.
func TestStoreIsFull(t *testing.T) {
	h := serve(t, func(o *Options) {
		o.DataDir, o.storeBytes, o.lateTimeout = t.TempDir(), 1<<20, 100*time.Millisecond
	})
	s := h.open()
	s.chunks(1)
	s.next()
	body := fmt.Sprintf(`{"note":%q}`, strings.Repeat("x", 200<<10))
	full := false
	for range 20 {
		res := h.do("POST", "/v1/live", testKey, strings.NewReader(body))
		if full = res.StatusCode != http.StatusOK; full {
			res.apiError(t, http.StatusServiceUnavailable)
			break
		}
	}
	if !full {
		t.Fatal("1 MiB took 4 MiB")
	}
	h.do("GET", "/readyz", "", nil).apiError(t, http.StatusServiceUnavailable)
	if res := h.do("GET", "/v1/test", testKey, nil); res.StatusCode != http.StatusOK {
		t.Errorf("test: %d", res.StatusCode)
	}
	if st := h.status(s.id); st.Status != "running" {
		t.Errorf("the stream reads %s", st.Status)
	}
	s.chunks(3)
	s.end()
	if events, code, _ := s.rest(); code != 1000 || len(events) != 1 {
		t.Errorf("code %d, %q", code, raws(events))
	}
}
