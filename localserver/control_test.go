package localserver

import (
	"bytes"
	"crypto/rand"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/localserver/store/backup"
	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// A running server is backed up, with a stream open; the stream is not affected,
// and a server with the restored folder knows everything.
func TestBackupOfARunningServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keep := func(dir string) func(*setup) { return func(o *setup) { o.DataDir = dir } }
	h := serve(t, keep(dir))
	key := mustKey(t, dir, "team", "pro", time.Now())
	first := h.open()
	first.chunks(5)
	first.end()
	first.rest()
	object := bytes.Repeat([]byte("an object\n"), 100_000)
	h.at("PUT", h.ask("input", "media://x"), bytes.NewReader(object))
	address := h.ask("output", "media://x")
	turns := h.at("GET", h.ask("output", "media://live/"+first.id+"/turns.json"), nil).body
	running := h.open()
	running.chunks(3)
	running.next() // its start

	testkit.HasMode(t, filepath.Join(dir, controlFile), 0o600)
	backUp := func() string {
		t.Helper()
		var raw bytes.Buffer
		testkit.NoError(t, Backup(t.Context(), dir, &raw))
		file := filepath.Join(t.TempDir(), "backup")
		testkit.NoError(t, os.WriteFile(file, raw.Bytes(), 0o600))
		return file
	}
	file := backUp()
	running.chunks(3)
	running.end()
	running.closes(1000)
	restore := func(file string) *host {
		t.Helper()
		to := filepath.Join(t.TempDir(), "new")
		testkit.NoError(t, backup.Restore(file, to, slog.New(slog.DiscardHandler)))
		return serve(t, keep(to))
	}
	check := func(h2 *host, open string) {
		t.Helper()
		if got := h2.status(first.id); got.Status != protocol.StatusDone {
			t.Errorf("%+v", got)
		}
		testkit.Equal(t, h2.status(running.id).Status, open, "the open stream reads")
		if got := h2.at("GET", h2.ask("output", "media://live/"+first.id+"/turns.json"), nil).body; !bytes.Equal(got, turns) {
			t.Errorf("turns %s, before %s", got, turns)
		}
		// Addresses and keys that were given out are valid on it.
		_, path, _ := strings.Cut(address, mediaPath)
		if res := h2.at("GET", h2.url+mediaPath+path, nil); !bytes.Equal(res.body, object) {
			t.Errorf("%d, %d bytes", res.StatusCode, len(res.body))
		}
		testkit.Equal(t, h2.accepts(key), 200, "a request with the key returns")
		next := h2.open()
		next.chunks(1)
		next.end()
		next.rest()
	}
	check(restore(file), "error")
	testkit.NoError(t, h.Shutdown(t.Context()))
	check(restore(backUp()), protocol.StatusDone) // of a stopped server
}

// duringBackup is a writer of a backup. It calls itself once, while the server waits for the rest to be read.
type duringBackup func()

func (f *duringBackup) Write(p []byte) (int, error) {
	if do := *f; do != nil {
		*f = nil
		do()
	}
	return len(p), nil
}

// A server makes a backup also while it makes another one.
func TestBackupDuringAnotherOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := serve(t, func(o *setup) { o.DataDir = dir })
	noise := make([]byte, 8<<20) // more than a connection buffers
	_, _ = rand.Read(noise)
	h.upload("x", noise)
	second := duringBackup(func() { testkit.NoError(t, Backup(t.Context(), dir, io.Discard)) })
	testkit.NoError(t, Backup(t.Context(), dir, &second))
}

// A server that cannot create its socket works without it.
func TestServerWithoutControl(t *testing.T) {
	t.Parallel()
	var log logBuffer
	dir := t.TempDir()
	testkit.NoError(t, os.MkdirAll(filepath.Join(dir, controlFile, "x"), 0o700))
	h := serve(t, log.use, func(o *setup) { o.DataDir = dir })
	h.do("GET", "/v1/test", testKey, nil).hasStatus(t, "test", 200)
	if log.count("cannot be backed up while the server runs") != 1 {
		t.Error(log.String())
	}
	if err := Backup(t.Context(), dir, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Error(err)
	}
}

// A server that accepts the connection and does not respond is not waited for. One that ends the
// connection, because the backup has failed, uses the folder, which is no reason to open it.
func TestBackupOfAServerThatFails(t *testing.T) {
	dir := testkit.ShortTempDir(t)
	l := testkit.Must(net.Listen("unix", filepath.Join(dir, controlFile)))(t)
	t.Cleanup(func() { _ = l.Close() })
	check := func(limit time.Duration, want string) {
		t.Helper()
		err := backUpWithin(t.Context(), dir, &bytes.Buffer{}, limit)
		if err == nil || !strings.Contains(err.Error(), want) || hint.Of(err) == "" {
			t.Error(err)
		}
	}
	check(50*time.Millisecond, "does not respond")
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			_ = conn.Close()
		}
	}()
	check(time.Minute, "cut off")
}
