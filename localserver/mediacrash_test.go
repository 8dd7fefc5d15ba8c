package localserver

import (
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"hubbub/protocol/testkit"
)

// A server is killed in the middle of an upload and started again on its
// folder: objects are complete, addresses are still valid, and the part of the
// upload that had arrived is removed.
func TestKilledInTheMiddleOfAnUpload(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a process")
	}
	dir := t.TempDir()
	line, kill := process(t, dir)
	h := clientOfProcess(t, dir, line)
	h.put("media://x", "earlier")
	address, before := h.ask("output", "media://x"), onDiskBytes(t, dir)

	body, fill := io.Pipe()
	request := testkit.Must(http.NewRequest("PUT", h.ask("input", "media://x"), body))(t)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if res, err := h.http.Do(request); err == nil {
			_ = res.Body.Close()
			t.Errorf("half an upload returned %d", res.StatusCode)
		}
	}()
	noise := make([]byte, 3<<20)
	for i := range noise {
		noise[i] = byte(i * i >> 7)
	}
	testkit.Must(fill.Write(noise))(t)
	testkit.Eventually(t, "chunks on disk", func() bool { return onDiskBytes(t, dir) > before+2<<20 })
	kill()
	_ = fill.CloseWithError(io.ErrClosedPipe)
	<-sent

	again := serve(t, func(o *setup) { o.DataDir = dir })
	if got := again.get("media://x"); got != "earlier" {
		t.Errorf("x holds %d bytes", len(got))
	}
	if res := again.do("GET", address[strings.Index(address, "/v1/"):], "", nil); string(res.body) != "earlier" {
		t.Errorf("the earlier address returns %d %s", res.StatusCode, res.body)
	}
	if l := again.listed(""); l.Used != int64(len("earlier")) || len(l.Media) != 1 {
		t.Errorf("the half upload is still there: %+v", l)
	}
}

// onDiskBytes is the size of a folder.
func onDiskBytes(t *testing.T, dir string) (size int64) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // files come and go
		}
		if info, err := d.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	return size
}
