package localserver

import (
	"bufio"
	"context"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A server is killed in the middle of an upload and started again on its
// folder: what was stored before is whole, addresses are still good, and what
// had arrived of the upload is removed when nobody can be writing it any more.
func TestKilledInTheMiddleOfAnUpload(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "ready ") {
		t.Fatalf("the server says %q", lines.Text())
	}
	pair, err := selfSigned(dir, time.Now(), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	h := clientOf(t, strings.TrimPrefix(lines.Text(), "ready "), pair.caPEM)
	h.put("media://x", "earlier")
	address, before := h.ask("output", "media://x"), onDiskBytes(t, dir)

	body, fill := io.Pipe()
	request, err := http.NewRequest("PUT", h.ask("input", "media://x"), body)
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if res, err := h.http.Do(request); err == nil {
			_ = res.Body.Close()
			t.Errorf("half an upload was answered with %d", res.StatusCode)
		}
	}()
	noise := make([]byte, 3<<20)
	for i := range noise {
		noise[i] = byte(i * i >> 7)
	}
	if _, err := fill.Write(noise); err != nil {
		t.Fatal(err)
	}
	eventually(t, "chunks on disk", func() bool { return onDiskBytes(t, dir) > before+2<<20 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	_ = fill.CloseWithError(io.ErrClosedPipe)
	<-sent

	again := serve(t, func(o *Options) { o.DataDir = dir })
	if got := again.get("media://x"); got != "earlier" {
		t.Errorf("x holds %d bytes", len(got))
	}
	if res := again.do("GET", address[strings.Index(address, "/v1/"):], "", nil); string(res.body) != "earlier" {
		t.Errorf("the address of before gives %d %s", res.StatusCode, res.body)
	}
	swept, err := again.media.SweepMedia(context.Background(), time.Now().Add(10*time.Minute))
	if swept != 1 || err != nil {
		t.Errorf("swept %d, %v", swept, err)
	}
	if got := again.get("media://x"); got != "earlier" {
		t.Errorf("after the sweep x holds %d bytes", len(got))
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
