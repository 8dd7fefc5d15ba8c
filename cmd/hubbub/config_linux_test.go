package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/capture"
	"hubbub/protocol/testkit"
)

// TestRealKeyRing goes through a real secret service, on a session bus of its
// own: a key is stored, found by the program that streams, and forgotten.
func TestRealKeyRing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"dbus-run-session", "gnome-keyring-daemon"} {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("HUBBUB_REQUIRE_KEYRING") != "" {
				t.Fatalf("%s is not installed; make test installs it", name)
			}
			t.Skipf("%s is not installed; make test installs it", name)
		}
	}
	const secret = "b3Blbi-sesame"
	_, url := serve(t, "--api-key", secret, "--tls", "off")
	dir := testkit.ShortTempDir(t)
	for _, sub := range []string{"run", "home"} {
		testkit.NoError(t, os.Mkdir(filepath.Join(dir, sub), 0o700))
	}
	wav := filepath.Join(dir, "short.wav")
	writeWAV(t, wav, talk(t)[:capture.SampleRate])
	script := `
		set -e
		printf password | gnome-keyring-daemon --unlock --components=secrets >ring.log 2>&1
		echo ` + secret + ` | "$HUBBUB" config set-key "$URL"
		HUBBUB_SERVER=$URL "$HUBBUB" config | grep api-key
		"$HUBBUB" live --input "$WAV" --server "$URL" --output events
		echo streamed
		"$HUBBUB" config delete-key "$URL"
		HUBBUB_SERVER=$URL "$HUBBUB" config | grep api-key
		"$HUBBUB" config delete-key "$URL" || echo exit code $?
	`
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "dbus-run-session", "--", "sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), programEnv("HUBBUB="+testProgram(t), "URL="+url, "WAV="+wav,
		"HOME="+filepath.Join(dir, "home"), "XDG_RUNTIME_DIR="+filepath.Join(dir, "run"), "XDG_DATA_HOME="+filepath.Join(dir, "data"))...)
	cmd.WaitDelay = 5 * time.Second // daemons of the bus may hold the pipe
	raw, err := cmd.CombinedOutput()
	out := strings.Join(strings.Fields(string(raw)), " ") // columns may be of any width
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"is in the key ring", "api-key set", "streamed", "is no longer in the key ring", "api-key - ", "exit code 1"} {
		at := strings.Index(out, want)
		if at < 0 {
			t.Fatalf("%q is not printed:\n%s", want, raw)
		}
		out = out[at:]
	}
	if strings.Contains(string(raw), secret) {
		t.Errorf("the key is shown:\n%s", raw)
	}
}
