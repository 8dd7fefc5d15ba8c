package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ring "github.com/zalando/go-keyring"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/keyring"
	"hubbub/protocol/testkit"
)

// mockRing gives the test a key ring in memory.
func mockRing(t *testing.T) {
	t.Helper()
	ring.MockInit()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/none") // without one, Linux has no key ring
	t.Setenv(apiKeyEnv, "")
	t.Setenv("HUBBUB_SERVER", "")
}

// inProcess runs the program inside the test, with text on standard input, and checks its exit code.
func inProcess(t *testing.T, code int, stdin string, args ...string) (stdout, stderr string) {
	t.Helper()
	in := testkit.Must(os.Create(filepath.Join(t.TempDir(), "stdin")))(t)
	defer in.Close()
	testkit.Must(in.WriteString(stdin))(t)
	testkit.Must(in.Seek(0, 0))(t)
	var out, errs bytes.Buffer
	got := (&App{Args: args, Stdin: in, Stdout: &out, Stderr: &errs}).Main()
	testkit.Equal(t, got, code, "exit code of", args, out.String(), errs.String())
	return out.String(), errs.String()
}

// TestKeyRing stores a key, uses it for a server, and forgets it; it is found
// under every spelling of the address, and shown nowhere.
func TestKeyRing(t *testing.T) {
	mockRing(t)
	const secret = "c2VzYW1l-open"
	if _, stderr := inProcess(t, 0, secret+"\n", "config", "set-key", "https://Example.Invalid/"); strings.Contains(stderr, secret) {
		t.Errorf("%q", stderr)
	}
	if key, err := keyring.Key("HTTPS://example.invalid"); err != nil || key != secret {
		t.Errorf("the key is %q, %v", key, err)
	}
	t.Setenv("HUBBUB_SERVER", "https://user:"+secret+"@example.invalid")
	stdout, stderr := inProcess(t, 0, "", "config")
	if !strings.Contains(stdout, "key ring") || strings.Contains(stdout+stderr, secret) {
		t.Errorf("%q", stdout+stderr)
	}
	t.Setenv("HUBBUB_SERVER", "")
	longest := strings.Repeat("k", maxKey)
	for _, wrong := range []string{"", "two words", "snow☃", longest + "k", longest + longest + "\n"} {
		inProcess(t, 1, wrong, "config", "set-key", "https://example.invalid")
	}
	inProcess(t, 0, longest+"\r\n", "config", "set-key", "https://example.invalid")
	inProcess(t, 0, "", "config", "delete-key", "https://example.invalid")
	if _, err := keyring.Key("https://example.invalid"); err != keyring.ErrNoKey {
		t.Errorf("the key is still there: %v", err)
	}
	inProcess(t, 1, "", "config", "delete-key", "https://example.invalid")
}

// TestKeyStaysSecret records a session of a server whose key comes out of the
// ring, and looks for the key in everything that the session leaves behind.
func TestKeyStaysSecret(t *testing.T) {
	mockRing(t)
	const secret = "e5f0c2-not-to-be-seen"
	server, url := serve(t, "--api-key", secret, "--tls", "off")
	inProcess(t, 0, secret, "config", "set-key", url)
	wav := filepath.Join(t.TempDir(), "short.wav")
	writeWAV(t, wav, talk(t)[:capture.SampleRate])
	dir := filepath.Join(t.TempDir(), "rec")
	withPassword := strings.Replace(url, "http://", "http://somebody:"+secret+"@", 1)
	for address, code := range map[string]int{url: exitOK, withPassword: exitUsage} {
		stdout, stderr := inProcess(t, code, "", "live", "--input", wav, "--server", address, "--record", dir)
		if strings.Contains(stdout+stderr, secret) {
			t.Errorf("the key is printed: %s", stdout+stderr)
		}
		dir += "-2"
	}
	if strings.Contains(server.output()+server.errors(), secret) {
		t.Error("the key is in the server's log")
	}
	files := 0
	err := filepath.WalkDir(filepath.Dir(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("the key is in %s", filepath.Base(path))
		}
		return err
	})
	if err != nil || files < 5 {
		t.Errorf("%d files were looked at, %v", files, err)
	}
}
