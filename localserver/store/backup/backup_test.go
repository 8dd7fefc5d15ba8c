package backup

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubbub/localserver/store/datafolder"
	"hubbub/localserver/store/embedded"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// After all tests no goroutine may be left, including those of the NATS servers.
func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// connect starts a NATS server on a data folder, until the end of the test.
func connect(t *testing.T, dir string) jetstream.JetStream {
	t.Helper()
	server := testkit.Must(embedded.Start(dir, slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(func() { testkit.NoError(t, server.Stop()) })
	conn := testkit.Must(nats.Connect("", nats.InProcessServer(server)))(t)
	t.Cleanup(conn.Close)
	return testkit.Must(jetstream.New(conn))(t)
}

// filled is a data folder with a bucket, an empty stream and files, and its backup.
func filled(t *testing.T) (dir string, whole []byte) {
	t.Helper()
	ctx := context.Background()
	dir = t.TempDir()
	js := connect(t, dir)
	bucket := testkit.Must(js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "records"}))(t)
	for _, value := range []string{"old", "new"} {
		testkit.Must(bucket.Put(ctx, "a", []byte(value)))(t)
	}
	testkit.Must(js.CreateStream(ctx, jetstream.StreamConfig{Name: "EMPTY", Subjects: []string{"empty"}}))(t)
	for _, name := range []string{"keys/one.pem", "keys/.tmp-1", datafolder.Jobs + "/audio", datafolder.LockFile} {
		testkit.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		testkit.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("content of "+name), 0o600))
	}
	var out bytes.Buffer
	testkit.NoError(t, Write(ctx, js, dir, &out))
	return dir, out.Bytes()
}

// A folder that was made from a backup has what the first one had, except what is of
// no use to another process.
func TestWriteAndRestore(t *testing.T) {
	dir, whole := filled(t)
	file, to := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "new")
	testkit.NoError(t, os.WriteFile(file, whole, 0o600))
	testkit.NoError(t, Verify(file))
	if err := Verify(file + "x"); hint.Of(err) == "" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := Restore(file, dir, slog.New(slog.DiscardHandler)); err == nil || hint.Of(err) == "" || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("into a folder in use: %v", err)
	}
	testkit.Must(os.Stat(filepath.Join(dir, "keys", "one.pem")))(t)
	testkit.NoError(t, Restore(file, to, slog.New(slog.DiscardHandler)))
	var files []string
	err := filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && d.Name() == datafolder.JetStream {
			return fs.SkipDir
		}
		if !d.IsDir() {
			name, _ := filepath.Rel(to, path)
			files = append(files, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil || !slices.Equal(files, []string{"keys/one.pem", datafolder.LockFile}) {
		t.Errorf("files %q %v", files, err)
	}
	if raw, err := os.ReadFile(filepath.Join(to, "keys", "one.pem")); err != nil || string(raw) != "content of keys/one.pem" {
		t.Errorf("%q %v", raw, err)
	}
	js := connect(t, to)
	bucket := testkit.Must(js.KeyValue(context.Background(), "records"))(t)
	if entry, err := bucket.Get(context.Background(), "a"); err != nil || string(entry.Value()) != "new" || entry.Revision() != 2 {
		t.Errorf("%+v %v", entry, err)
	}
	if empty, err := js.Stream(context.Background(), "EMPTY"); err != nil || empty.CachedInfo().State.Msgs != 0 {
		t.Errorf("%+v %v", empty, err)
	}
}

// What is not a complete backup is refused, and leaves nothing behind.
func TestBackupThatIsNotComplete(t *testing.T) {
	_, whole := filled(t)
	archive := testkit.Must(zip.NewReader(bytes.NewReader(whole), int64(len(whole))))(t)
	cases := map[string][]byte{"empty": {}, "text": []byte("no backup"), "cut in half": whole[:len(whole)/2],
		"one byte short": whole[:len(whole)-1], "of another": bytes.Replace(whole, []byte(`"format": 1`), []byte(`"format": 9`), 1)}
	for _, f := range archive.File {
		at := testkit.Must(f.DataOffset())(t)
		changed := slices.Clone(whole)
		changed[at+int64(f.UncompressedSize64)/2] ^= 1
		cases["a changed "+f.Name] = changed
	}
	for name, h := range map[string]zip.FileHeader{
		"compressed":   {Method: zip.Deflate, UncompressedSize64: 1 << 20, CompressedSize64: 3},
		"overstated":   {Method: zip.Store, UncompressedSize64: 1 << 62, CompressedSize64: 3},
		"out of range": {Method: zip.Store, UncompressedSize64: 1<<64 - 1, CompressedSize64: 3},
	} {
		var out bytes.Buffer
		w := zip.NewWriter(&out)
		h.Name = manifestEntry
		entry := testkit.Must(w.CreateRaw(&h))(t)
		_, _ = entry.Write([]byte("\x03\x00\x00"))
		testkit.NoError(t, w.Close())
		cases[name] = out.Bytes()
	}
	for name, raw := range cases {
		parent := t.TempDir()
		file, to := filepath.Join(parent, "backup"), filepath.Join(parent, "new")
		testkit.NoError(t, os.WriteFile(file, raw, 0o600))
		if err := Restore(file, to, slog.New(slog.DiscardHandler)); hint.Of(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(parent); len(left) != 1 || err != nil {
			t.Errorf("%s leaves %v", name, left)
		}
	}
}

func TestEntriesOfABackup(t *testing.T) {
	for name, want := range map[string]bool{
		"streams/EVENTS": true, "streams/KV_sessions.json": true, "files/keys/a.pem": true, "files/tls.pem": true,
		"streams/": false, "streams/a/b": false, `streams/..\x`: false, "files/": false, "files/../x": false, "files//x": false,
		"files/jetstream/x": false, "files/lock": false, "x": false, "/etc/passwd": false, "files//etc/passwd": false,
	} {
		testkit.Equal(t, validEntry(name), want, name)
	}
}
