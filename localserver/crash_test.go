package localserver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hubbub/localserver/certificate"
	"hubbub/localserver/stream"
	"hubbub/localserver/stream/streamtest"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// childDir is the environment variable that makes the test binary a server on
// the folder that it names, to be killed.
const childDir = "HUBBUB_SERVER_CHILD"

// childNATS makes it a node of a cluster.
const childNATS = "HUBBUB_SERVER_CHILD_NATS"

func childServer(dir string) {
	diarizer := streamtest.OneTurn
	if os.Getenv(childNATS) != "" {
		diarizer = streamtest.ManyTurns
	}
	s, err := Start(context.Background(), Options{Addr: "127.0.0.1:0", APIKeys: []string{testKey}, DataDir: dir, RatePerMinute: -1,
		NATS: os.Getenv(childNATS), WebhookTo: []string{"127.0.0.1"}, FetchFrom: []string{"127.0.0.1"}, NewDiarizer: func() (stream.Diarizer, error) { return diarizer(), nil }})
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println("ready", s.URL())
	_ = s.Wait()
}

// process starts a server on a folder in a process of its own, and returns the
// first line that it says and the means to kill it.
func process(t *testing.T, dir string, env ...string) (line string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childDir+"="+dir), env...)
	cmd.Stderr = os.Stderr
	out := testkit.Must(cmd.StdoutPipe())(t)
	testkit.Start(t, cmd)
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	lines := bufio.NewScanner(out)
	lines.Scan()
	return lines.Text(), kill
}

// clientOfProcess returns the clients of a server that process started on a
// folder; its certificate is the one in the folder.
func clientOfProcess(t *testing.T, dir, line string) *host {
	t.Helper()
	url, ready := strings.CutPrefix(line, "ready ")
	if !ready {
		t.Fatalf("the server says %q", line)
	}
	pair := testkit.Must(certificate.Create(dir, time.Now(), "127.0.0.1"))(t)
	return clientOf(t, url, pair.CAPEM())
}

// A server is killed while streams are open and an object is being uploaded, and started again
// on its folder: nothing acknowledged is lost, running streams read error and their events are
// complete, and streams that were not opened yet can be opened, once. Objects are complete,
// addresses are still valid, and the part of the upload that had arrived is no object.
func TestKilledServerComesBack(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a process")
	}
	dir := t.TempDir()
	line, kill := process(t, dir)
	h := clientOfProcess(t, dir, line)
	waiting, done, running := h.create(), h.open(), h.open()
	running.chunks(3)
	if e := running.next(); e.Type != protocol.TypeSpeakerStart {
		t.Fatalf("got %s", e.Raw)
	}
	done.chunks(1)
	done.end()
	done.closes(1000)
	h.put("media://x", "earlier")
	address, upload, end := h.ask("output", "media://x"), h.ask("input", "media://x"), make(chan struct{})
	body, fill := io.Pipe()
	request := testkit.Must(http.NewRequest("PUT", upload, body))(t)
	go func() {
		defer close(end)
		if res, err := h.http.Do(request); err == nil {
			_ = res.Body.Close()
			t.Errorf("half an upload returned %d", res.StatusCode)
		}
	}()
	noise := make([]byte, 3<<20)
	_, _ = rand.Read(noise)
	testkit.Must(fill.Write(noise))(t)
	// Events are stored independently of the client, objects in chunks: wait for the disk.
	for what, part := range map[string]string{"event": "hubbub.events." + running.id, "chunk": string(noise[2<<20+100:][:100])} {
		testkit.Eventually(t, what, func() bool { return onDisk(t, dir, part) })
	}
	kill()
	_ = fill.CloseWithError(io.ErrClosedPipe)
	<-end

	again := serve(t, func(o *setup) { o.DataDir = dir })
	for id, want := range map[string]string{waiting.ID: "created", done.id: "done", running.id: "error"} {
		testkit.Equal(t, again.status(id).Status, want, "status")
	}
	if got := again.stored(running.id); len(got) != 2 || !strings.Contains(got[0], "speaker_start") || !strings.Contains(got[1], "speaker_end") {
		t.Errorf("stored of the running one: %q", got)
	}
	if got := again.stored(done.id); len(got) != 2 {
		t.Errorf("stored of the finished one: %q", got)
	}
	testkit.Equal(t, again.get("media://x"), "earlier", "x holds")
	again.do("GET", address[strings.Index(address, "/v1/"):], "", nil).hasStatus(t, "the earlier address", 200)
	if l := again.listed(""); l.Used != int64(len("earlier")) || len(l.Media) != 1 {
		t.Errorf("the half upload counts: %+v", l)
	}
	waiting.URL = again.here(waiting.URL)
	_ = again.openNow(waiting).Close()
	again.refused(waiting.URL, 401)
}

// onDisk looks for a text in the files below a folder.
func onDisk(t *testing.T, dir, text string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // files come and go
		}
		raw, _ := os.ReadFile(path)
		found = found || bytes.Contains(raw, []byte(text))
		return nil
	})
	testkit.NoError(t, err)
	return found
}
