package localserver

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// A full store is reported: new streams are refused with 503, the server is not
// ready, and the streams that run go on. They are not closed with 1000, because
// their records are not stored.
func TestStoreIsFull(t *testing.T) {
	t.Parallel()
	h := serve(t, func(o *setup) { o.Unpaced = true })
	s := h.open()
	s.chunks(1)
	s.next()
	filler := [][]byte{bytes.Repeat([]byte("x"), 900<<10)}
	var err error
	for n := 0; err == nil; n++ {
		if n > 1000 {
			t.Fatal("the store has no limit")
		}
		s.chunks(1) // a stream without audio for a minute ends
		err = h.store.Append(t.Context(), unknownID, n, filler)
	}
	if !store.Full(err) {
		t.Fatal(err)
	}
	filler[0] = filler[0][:200<<10] // what is left has no room for a record of this size
	for n := 0; ; n++ {
		s.chunks(1)
		if err := h.store.Append(t.Context(), "filler", n, filler); err != nil {
			break
		}
	}
	if e := h.do("POST", "/v1/live", testKey, strings.NewReader(`{"note":"`+strings.Repeat("x", 200<<10)+`"}`)).apiError(t, http.StatusServiceUnavailable); e.Message != storeFull {
		t.Error(e.Message)
	}
	if e := h.at("PUT", h.ask("input", "media://x"), strings.NewReader("x")).apiError(t, http.StatusServiceUnavailable); e.Message != storeFull {
		t.Errorf("upload: %s", e.Message)
	}
	h.do("GET", "/readyz", "", nil).apiError(t, http.StatusServiceUnavailable)
	h.do("GET", "/v1/test", testKey, nil).hasStatus(t, "test", http.StatusOK)
	testkit.Equal(t, h.status(s.id).Status, "running", "the stream reads")
	s.chunks(3)
	s.end()
	if events, code, _ := s.rest(); code != 1011 || len(events) != 2 || events[1].Type != protocol.TypeError {
		t.Errorf("code %d, %q", code, raws(events))
	}
	// The server would try to store the end of the stream for a while.
	soon, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := h.Shutdown(soon); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// On a full disk what needs no new space in the end, but some meanwhile, is refused at
// once: the embedded NATS server does not respond to a write that fails.
func TestDeletionsOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := testkit.SmallDisk(t, "64m")
	h := serve(t, func(o *setup) { o.DataDir, o.Jobs = filepath.Join(disk, "data"), -1 })
	h.upload("x", []byte("x"))
	job := h.submit("diarize", `{"url":"media://x"}`)
	filler := testkit.FillDisk(t, disk)
	deletions := map[string]int{"/v1/media?url=media://x": http.StatusNoContent, "/v1/jobs/" + job.JobID: http.StatusOK}
	for path := range deletions {
		testkit.Equal(t, h.do("DELETE", path, testKey, nil).apiError(t, http.StatusServiceUnavailable).Message, storeFull, path)
	}
	testkit.NoError(t, os.Remove(filler))
	for path, status := range deletions {
		h.do("DELETE", path, testKey, nil).hasStatus(t, path, status)
	}
}
