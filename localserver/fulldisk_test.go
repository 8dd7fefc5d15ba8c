package localserver

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// Uploads fill a small disk, something else fills the rest, and the server is
// killed: streams are not refused because of the uploads, the server starts as
// soon as there is space, and what was running reads error.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a process")
	}
	disk := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", disk).Run() })
	dir, filler := filepath.Join(disk, "data"), filepath.Join(disk, "filler")
	line, kill := process(t, dir)
	h := clientOfProcess(t, dir, line)
	left := h.open()
	left.chunks(1)
	if e := left.next(); e.Type != protocol.TypeSpeakerStart {
		t.Fatalf("got %s", e.Raw)
	}
	full := false
	for i := 0; i < 100 && !full; i++ {
		r, err := http.NewRequest("PUT", h.ask("input", fmt.Sprint("media://o", i)), strings.NewReader(strings.Repeat("x", 700_000)))
		testkit.NoError(t, err)
		res := h.send(r)
		if full = res.StatusCode != http.StatusOK; full {
			res.apiError(t, http.StatusServiceUnavailable)
		}
	}
	if !full {
		t.Fatal("64 MiB took 70 MB")
	}
	h.do("GET", "/readyz", "", nil).hasStatus(t, "full of uploads: readyz", http.StatusOK)
	done := h.open()
	done.chunks(1)
	done.end()
	done.closes(1000)

	f, err := os.Create(filler)
	testkit.NoError(t, err)
	defer func() { _ = f.Close() }()
	size := int64(0)
	for block := make([]byte, 4096); ; size += int64(len(block)) {
		if _, err := f.Write(block); err != nil {
			break
		}
	}
	h.do("GET", "/readyz", "", nil).apiError(t, http.StatusServiceUnavailable)
	h.do("POST", "/v1/live", testKey, nil).apiError(t, http.StatusServiceUnavailable)
	kill()

	if line, kill = process(t, dir); !strings.HasPrefix(line, "failed: ") || !strings.Contains(line, "is full") {
		t.Errorf("on a full disk the server says %q", line)
	}
	kill()
	testkit.NoError(t, f.Truncate(size-8<<20))
	line, kill = process(t, dir)
	h = clientOfProcess(t, dir, line)
	for id, want := range map[string]string{left.id: "error", done.id: "done"} {
		if st := h.status(id); st.Status != want {
			t.Errorf("status %s, want %s", st.Status, want)
		}
	}
	testkit.NoError(t, f.Truncate(0))
	h.create()
	kill()
}
